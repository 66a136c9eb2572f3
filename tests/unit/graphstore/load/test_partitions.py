from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.histories import LongRun
from tests.support.words import naming
from vizpub.graphstore.load.partitions import (
    COPY_TYPES,
    MOST_PARTITIONS,
    MOST_READ,
    PARTITIONED_ROWS,
    Partitions,
    choose_partitions,
    copies,
    copy_types,
    narrow_to_partitions,
    partitions_of,
)
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import UseError

PAGE = Path(__file__).parents[4] / "docs/history.md"


def spans(*rows: tuple[int, int]) -> pa.RecordBatch:
    valid_from, valid_to = (pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1))
    return pa.record_batch(
        {"id": pa.array(range(len(rows))), "valid_from": valid_from, "valid_to": valid_to}
    )


@pytest.mark.parametrize(
    ("intervals", "count"), [(1, 0), (7, 0), (8, 2), (9, 3), (12, 3), (13, 4), (400, 100)]
)
def test_run_shorter_than_two_partitions_has_none(intervals: int, count: int) -> None:
    assert partitions_of(Clock(1, None, 5, 4 + intervals), 4).count == count


@pytest.mark.parametrize("ticks", [1, 3])
@pytest.mark.parametrize("first", [0, 5])
def test_row_is_copied_into_every_partition_of_its_validity_period(first: int, ticks: int) -> None:
    clock = Clock(ticks, None, first, first + 9)
    partitions = partitions_of(clock, 3)
    begin, end = first * ticks, (first + 10) * ticks
    every = [
        (valid_from, valid_to)
        for valid_from in range(begin, end)
        for valid_to in (*range(valid_from + 1, end + 1), OPEN)
    ]
    found = copies(spans(*every), partitions).to_pylist()
    expected = [
        (id, partition)
        for id, (valid_from, valid_to) in enumerate(every)
        for partition in range(4)
        if any(
            valid_from <= t < valid_to
            for t in range(begin, end)
            if (t - begin) // (3 * ticks) == partition
        )
    ]
    assert [(row["id"], row["partition"]) for row in found] == expected
    assert all((row["valid_from"], row["valid_to"]) == every[row["id"]] for row in found)
    assert [partitions.at(t) for t in range(begin, end)] == [
        (t - begin) // (3 * ticks) for t in range(begin, end)
    ]


def test_times_outside_the_run_belong_to_outer_partitions() -> None:
    partitions = Partitions(Clock(5, None, 2, 4), 1)
    found = copies(spans((0, 3), (40, 50), (24, 99)), partitions)
    assert list(zip(found["id"].to_pylist(), found["partition"].to_pylist(), strict=True)) == [
        (0, 0), (1, 2), (2, 2),
    ]  # fmt: skip
    assert [partitions.at(t) for t in (0, 9, 10, 24, 25, 99)] == [0, 0, 0, 2, 2, 2]


def test_run_without_partitions_has_no_copies() -> None:
    found = copies(spans((0, 3)), partitions_of(Clock(1, None, 0, 3)))
    assert found.num_rows == 0
    assert found.schema.names == ["id", "valid_from", "valid_to", "partition"]


class Sizes:
    """Tables of so many links, and as many subscriptions."""

    def __init__(self, links: int) -> None:
        self._rows = {"links": links, "subscriptions": links}

    def rows(self, name: str) -> int:
        return self._rows[name]

    def row_groups(self, name: str) -> list[Any]:
        raise AssertionError("nothing is read")


@pytest.mark.parametrize(
    ("links", "intervals", "partitions"),
    [
        (499_999, 1_000, 0),
        (500_000, 1_000, 8),
        (500_000, 255, 0),
    ],
)
def test_run_is_partitioned_by_its_size_and_length(
    links: int, intervals: int, partitions: int
) -> None:
    clock = Clock(1, None, 0, intervals - 1)
    assert choose_partitions(clock, Sizes(links), None).count == partitions


def test_partitions_are_a_choice() -> None:
    clock = Clock(1, None, 0, 299)
    assert choose_partitions(clock, Sizes(1), 128).count == 3
    assert choose_partitions(clock, Sizes(500_000), 0).count == 0
    with pytest.raises(UseError, match=naming("300", "400", "--partitioned")):
        choose_partitions(clock, Sizes(500_000), 200)


def test_partitions_of_a_very_long_run_are_longer() -> None:
    assert partitions_of(Clock(1, None, 0, 4 * MOST_PARTITIONS - 1), 4) == Partitions(
        Clock(1, None, 0, 4 * MOST_PARTITIONS - 1), 4
    )
    longer = partitions_of(Clock(1, None, 0, 4 * MOST_PARTITIONS), 4)
    assert longer.intervals == 8
    assert longer.count == MOST_PARTITIONS // 2 + 1


def test_history_page_states_the_sizes_of_partitions() -> None:
    page = " ".join(PAGE.read_text("utf-8").split())
    (long,) = re.findall(r"in a run of (\d+) intervals or more", page)
    (rows,) = re.findall(r"with ([\d,]+) links and subscriptions or more", page)
    assert int(rows.replace(",", "")) == PARTITIONED_ROWS
    (most,) = re.findall(r"at most (\d+) partitions; in longer runs they are longer", page)
    (read,) = re.findall(r"in more than (\d+) the links themselves", page)
    clocks = [Clock(1, None, 0, last) for last in (int(long) - 2, int(long) - 1, 10**6)]
    assert [partitions_of(clock).count for clock in clocks[:2]] == [0, 2]
    assert int(most) / 2 < partitions_of(clocks[2]).count <= int(most)
    assert int(read) == MOST_READ


def test_copy_types_are_of_the_closed_list() -> None:
    types = copy_types("LINK", pa.array([0, 7, MOST_PARTITIONS - 1])).to_pylist()
    assert types == ["LINK_P0", "LINK_P7", f"LINK_P{MOST_PARTITIONS - 1}"]
    assert {*types, "SUBSCRIBES_P0"} <= set(COPY_TYPES)


TEXT = """// Of :LINK and $at.
MATCH (t)<-[s:SUBSCRIBES]-(p), q = ((a)-[:LINK*0..]->(b))-[r:LINKED]->(c:LINK_P1)
"""
PARTITIONS = Partitions(Clock(1, None, 0, 9), 2)


@pytest.mark.parametrize(
    ("stretches", "links", "subscriptions"),
    [
        ([(0, 0)], "LINK_P0", "SUBSCRIBES_P0"),
        ([(9, 9)], "LINK_P4", "SUBSCRIBES_P4"),
        ([(5, 5), (0, 0), (1, 1)], "LINK_P0|LINK_P2", "SUBSCRIBES_P0|SUBSCRIBES_P2"),
        ([(3, 6)], "LINK_P1|LINK_P2|LINK_P3", "SUBSCRIBES_P1|SUBSCRIBES_P2|SUBSCRIBES_P3"),
        ([(0, 2), (3, 3)], "LINK_P0|LINK_P1", "SUBSCRIBES_P0|SUBSCRIBES_P1"),
    ],
)
def test_query_text_is_narrowed_to_partitions_of_its_times(
    stretches: list[tuple[int, int]], links: str, subscriptions: str
) -> None:
    found = narrow_to_partitions(TEXT, PARTITIONS, stretches)
    expected = TEXT.replace(":SUBSCRIBES]", f":{subscriptions}]").replace(":LINK*", f":{links}*")
    assert found == expected.replace(":LINK and", f":{links} and")


def test_query_text_without_times_or_partitions_is_unchanged() -> None:
    assert narrow_to_partitions(TEXT, PARTITIONS, []) == TEXT
    assert narrow_to_partitions(TEXT, Partitions(PARTITIONS.clock), [(3, 3)]) == TEXT


def test_query_text_over_too_many_partitions_is_unchanged() -> None:
    partitions = Partitions(Clock(1, None, 0, 2 * MOST_READ), 2)
    assert narrow_to_partitions(TEXT, partitions, [(0, 2 * MOST_READ)]) == TEXT
    assert narrow_to_partitions(TEXT, partitions, [(0, 2 * MOST_READ - 1)]) != TEXT


def test_link_pattern_with_an_index_hint_is_not_narrowed() -> None:
    text = (
        "MATCH (a)-[r:LINK]->(b) USING INDEX r:LINK(run, valid_from) MATCH (a)-[:SUBSCRIBES]->(t)"
    )
    assert narrow_to_partitions(text, PARTITIONS, [(3, 3)]) == text.replace(
        ":SUBSCRIBES", ":SUBSCRIBES_P1"
    )


def test_history_page_states_the_counted_relationships_and_copies() -> None:
    """Of the run that docs/history.md measures: its relationships, and those with copies."""
    run = LongRun(1_000)
    partitions = partitions_of(run.facts.clock)

    copied = sum(
        copies(batch, partitions).num_rows
        for name in ("links", "subscriptions")
        for _, batch in run.row_groups(name)
    )
    # A publication is two: by its publisher, and on its topic.
    names = ("links", "subscriptions", "presence", "receptions", "publications", "publications")
    without = sum(map(run.rows, names))
    told = f"has {without + copied:,} relationships with copies and {without:,} without"
    assert told in " ".join(PAGE.read_text("utf-8").split())
