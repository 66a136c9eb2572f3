from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import Batches
from vizpub.graphstore.load.batches import RunRows, level, sampled_spans
from vizpub.graphstore.load.partitions import NONE
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.steps import ROWS_PER_BATCH, row_batches, steps_by_table
from vizpub.model.clock import OPEN, Clock
from vizpub.model.tables import table

SPANS = st.tuples(st.integers(0, 60), st.integers(1, 40), st.booleans()).map(
    lambda s: (s[0], OPEN if s[2] else s[0] + s[1])
)
CLOCKS = st.tuples(st.integers(1, 7), st.integers(0, 3), st.integers(0, 9)).map(
    lambda c: Clock(c[0], None, c[1], c[1] + c[2])
)
ROWS = RunRows("r", Clock(), ("alpha", "beta"), {0: (2, 5)})


def rows_of(statement: str, columns: dict[str, list[Any]]) -> list[Any]:
    """The rows of a load statement for these columns; what is not told is null."""
    step = next(
        step
        for steps in steps_by_table(NONE).values()
        for step in steps
        if step.statement == statement
    )
    length = len(next(iter(columns.values())))
    told = {
        field.name: pa.array(columns.get(field.name, [None] * length), field.type)
        for field in table(step.table).arrow
    }
    return step.rows(ROWS, pa.RecordBatch.from_pydict(told))


@given(st.integers(0, OPEN - 2), st.integers(0, OPEN))
def test_level_is_the_power_of_two_below_the_length(valid_from: int, beyond: int) -> None:
    valid_to = valid_from + 1 + beyond % (OPEN - 1 - valid_from)
    assert (
        2 ** level(valid_from, valid_to)
        <= valid_to - valid_from
        < 2 ** (level(valid_from, valid_to) + 1)
    )
    assert level(valid_from, valid_to) < 63
    assert level(valid_from, OPEN) == 63


@given(st.lists(SPANS, min_size=1), CLOCKS)
def test_sampled_spans_equal_those_of_the_clock(spans: list[tuple[int, int]], clock: Clock) -> None:
    valid_from, valid_to = (np.array(side, np.int64) for side in zip(*spans, strict=True))
    for span, first, last in zip(spans, *sampled_spans(valid_from, valid_to, clock), strict=True):
        assert list(range(first, last + 1)) == list(clock.sampled(*span))


def test_captions_are_names_or_the_ends_of_long_ones() -> None:
    names = ["", "sixsix", "seven77", "é🜁é🜁é🜁", "abc🜁é🜁é"]
    for statement, number in (("peers", "peer"), ("messages", "message")):
        rows = rows_of(statement, {number: list(range(5)), "name": names})
        assert [r["caption"] for r in rows] == ["", "sixsix", "…en77", "é🜁é🜁é🜁", "…🜁é🜁é"]
    topics = rows_of("topics", {"topic": [0, 1], "name": ["twelve " * 2, "x" * 12]})
    assert [r["caption"] for r in topics] == ["…lve ", "x" * 12]


def test_link_rows_have_keys_topic_and_level() -> None:
    columns: dict[str, list[Any]] = {
        "src": [1, 2], "dst": [2, 1], "layer": ["mesh", "tree"], "topic": [1, None],
        "valid_from": [3, 4], "valid_to": [8, OPEN],
    }  # fmt: skip
    assert rows_of("links", columns) == [
        ["r/1", "r/2", "mesh", 1, "beta", 3, 8, 2],
        ["r/2", "r/1", "tree", None, None, 4, OPEN, 63],
    ]


def test_receptions_without_previous_hop_have_their_own_statement() -> None:
    columns: dict[str, list[Any]] = {
        "message": [7, 7], "peer": [1, 2], "previous_hop": [0, None], "time_us": [5, None],
        "first": [True, False], "hop": [1, None], "subscribed": [None, True],
    }  # fmt: skip
    assert rows_of("hops", columns) == [["r/0", "r/1", 7, 1, 5, True, None]]
    assert rows_of("arrived-from-unknown", columns) == [["r/7", "r/2", 7, None, None, False, True]]


def test_roles_belong_to_a_topic_or_to_the_run() -> None:
    columns: dict[str, list[Any]] = {
        "peer": [1, 2], "topic": [1, None], "role": ["a", "b"],
        "valid_from": [3, 4], "valid_to": [8, OPEN],
    }  # fmt: skip
    assert rows_of("roles", columns) == [["r/1", "r/1", "a", 3, 8], ["r/2", None, "b", 4, OPEN]]
    assert rows_of("presence", columns) == [["r/1", 3, 8, 2], ["r/2", 4, OPEN, 63]]


def test_peer_never_sampled_has_no_first_and_last_interval() -> None:
    rows = rows_of("peers", {"peer": [0, 1], "name": ["a", "b"], "reports": [True, False]})
    assert [(r["name"], r["first"], r["last"]) for r in rows] == [("a", 2, 5), ("b", None, None)]


@given(st.lists(st.tuples(st.integers(0, 3), SPANS), max_size=10), CLOCKS)
def test_peers_have_their_first_and_last_sampled_interval(
    periods: list[tuple[int, tuple[int, int]]], clock: Clock
) -> None:
    rows = [
        {"peer": p, "valid_from": valid_from, "valid_to": valid_to}
        for p, (valid_from, valid_to) in periods
    ]
    found = TableReader(Batches({"presence": rows}), clock).run_rows("r", NONE).sampled
    for peer in range(4):
        sampled = [i for p, span in periods if p == peer for i in clock.sampled(*span)]
        assert found.get(peer) == ((min(sampled), max(sampled)) if sampled else None)


def test_parts_have_unique_labels_and_keep_all_rows() -> None:
    sizes = [0, 1, ROWS_PER_BATCH, 2 * ROWS_PER_BATCH + 5]

    class Sized(Batches):
        def row_groups(self, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
            for n in sizes:
                yield f"f#{n}", pa.record_batch({"x": list(range(n))})

    found = list(row_batches(Sized({}), "links"))
    assert len({label for label, _ in found}) == len(found) == 5
    assert max(part.num_rows for _, part in found) == ROWS_PER_BATCH
    assert [x for _, part in found for x in part["x"].to_pylist()] == [
        x for n in sizes for x in range(n)
    ]
