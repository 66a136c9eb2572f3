"""Versions against naive references, tick by tick.

Every random history is a key of its own in one table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.texts import given, made
from vizpub.analytics.steps import view_step
from vizpub.ingest.tasks.staged import ingest_step
from vizpub.model.clock import OPEN

HISTORIES = 400
LAST = 40
"""Random ticks end here; what is alive after it is open."""
Span = tuple[int, int]
Spans = dict[Any, list[Span]]


def ticks(spans: Iterable[Span]) -> set[int]:
    """The ticks of the spans, the open end as the ticks up to one after the last."""
    return {t for valid_from, valid_to in spans for t in range(valid_from, min(valid_to, LAST + 2))}


def runs_of(alive: set[int]) -> list[Span]:
    """Ticks as maximal spans."""
    starts = sorted(t for t in alive if t - 1 not in alive)
    ends = sorted(t + 1 for t in alive if t + 1 not in alive)
    return [
        (valid_from, OPEN if valid_to > LAST + 1 else valid_to)
        for valid_from, valid_to in zip(starts, ends, strict=True)
    ]


def random_span(rng: np.random.Generator) -> Span:
    valid_from = int(rng.integers(0, LAST))
    valid_to = valid_from + int(rng.integers(1, 2 + int(rng.choice([2, 10, LAST]))))
    return valid_from, OPEN if valid_to > LAST or rng.random() < 0.1 else valid_to


def random_spans(rng: np.random.Generator) -> list[Span]:
    """None to a dozen spans that overlap, touch and repeat."""
    spans = [random_span(rng) for _ in range(rng.integers(0, 12))]
    return spans + spans[: int(rng.integers(0, 3))]


TYPES = {"layer": pa.string(), "valid_from": pa.int64(), "valid_to": pa.int64()}


def rows_of(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """In no order, as any task would find them."""
    schema = pa.schema([(name, TYPES.get(name, pa.int32())) for name in names])
    records = [dict(zip(names, row, strict=True)) for row in rows]
    order = np.random.default_rng(23).permutation(len(records))
    return pa.Table.from_pylist([records[at] for at in order], schema)


def spans_of(rows: pa.Table, *keys: str) -> Spans:
    """key → its spans in order."""
    found: Spans = defaultdict(list)
    for row in rows.to_pylist():
        found[tuple(row[key] for key in keys)].append((row["valid_from"], row["valid_to"]))
    return {key: sorted(value) for key, value in found.items()}


def check_maximal(spans: Spans) -> None:
    for of_one in spans.values():
        assert all(valid_from < valid_to for valid_from, valid_to in of_one)
        assert all(a[1] < b[0] for a, b in pairwise(of_one))


def drawn(seed: int) -> np.random.Generator:
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.fixture
def rng() -> np.random.Generator:
    return drawn(20)


def keyed(histories: Iterable[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Rows of all histories under a key of two columns, one of which may be null."""
    return [
        (i, None if i % 3 == 0 else i % 3, *row) for i, rows in enumerate(histories) for row in rows
    ]


def key_of(i: int) -> tuple[int, int | None]:
    return i, None if i % 3 == 0 else i % 3


def maximal(rows: pa.Table, *keys: str, **variables: int) -> Spans:
    """The maximal periods of rows."""
    key = ", ".join(f"'{name}': {name}" for name in keys)
    joined = view_step("keyed", f"SELECT {{{key}}} AS key, valid_from, valid_to FROM observed.rows")
    found = view_step("found", "SELECT key.*, valid_from, valid_to FROM maximal('keyed')")
    chosen = [joined, replace(found, whole=("keyed",))]
    return spans_of(made("found", chosen, {"observed/rows": rows}, given(**variables)), *keys)


def test_coalesced_spans_equal_the_maximal_runs_of_their_ticks(rng: np.random.Generator) -> None:
    histories = [random_spans(rng) for _ in range(HISTORIES)]
    rows = rows_of(["peer", "topic", "valid_from", "valid_to"], keyed(histories))
    found = maximal(rows, "peer", "topic")
    assert found == {key_of(i): runs_of(ticks(h)) for i, h in enumerate(histories) if h}
    check_maximal(found)


def test_maximal_versions_are_unchanged_by_coalesce(rng: np.random.Generator) -> None:
    histories = [runs_of(ticks(random_spans(rng))) for _ in range(50)]
    rows = rows_of(["peer", "topic", "valid_from", "valid_to"], keyed(histories))
    expected = {key_of(i): h for i, h in enumerate(histories) if h}
    assert maximal(rows, "peer", "topic") == expected
    assert maximal(rows, "peer", "topic", are_maximal=True) == expected


PEERS = 12
LINK = ["src", "dst", "layer", "topic"]


@pytest.fixture(scope="module")
def stays() -> dict[int, list[Span]]:
    """Maximal stays; the last peer is never there."""
    rng = drawn(21)
    found = {peer: runs_of(ticks(random_spans(rng))) for peer in range(PEERS - 1)}
    return {**found, 0: [(0, OPEN)]}


@pytest.fixture(scope="module")
def links() -> Spans:
    """Maximal lives of links, also of peers that are absent."""
    rng = drawn(22)
    found: Spans = {}
    for _ in range(HISTORIES):
        src, dst = (int(x) for x in rng.choice(PEERS, 2, replace=False))
        topic = int(rng.integers(0, 2)) if rng.random() < 0.5 else None
        if spans := runs_of(ticks(random_spans(rng))):
            found[src, dst, str(rng.choice(["mesh", "tree"])), topic] = spans
    return found


def unkeyed(spans: Spans) -> list[tuple[Any, ...]]:
    return [(*key, *span) for key, of_one in spans.items() for span in of_one]


PERIOD = ["valid_from", "valid_to"]
Clipped = Callable[..., dict[str, Spans]]


@pytest.fixture(scope="module")
def clipped(stays: dict[int, list[Span]]) -> Clipped:
    """Periods → what the texts make of them."""
    presence = rows_of(["peer", *PERIOD], unkeyed({(p,): s for p, s in stays.items()}))
    key = "{'src': src, 'dst': dst, 'layer': layer, 'topic': topic}"
    joined = view_step(
        "joined_links", f"SELECT {key} AS key, valid_from, valid_to FROM observed.rows"
    )

    def clip(links: Spans) -> dict[str, Spans]:
        tables = {"observed/rows": rows_of([*LINK, *PERIOD], unkeyed(links)), "stays": presence}
        chosen = [joined, ingest_step("clipped_links"), ingest_step("dangling_links")]
        return {
            name: spans_of(made(name, chosen, tables, given()), *LINK)
            for name in ("links", "dangling_links")
        }

    return clip


def alive_of(link: tuple[Any, ...], links: Spans, stays: dict[int, list[Span]]) -> set[int]:
    ends = (ticks(stays.get(peer, ())) for peer in link[:2])
    return ticks(links[link]).intersection(*ends)


def test_links_are_clipped_to_the_presence_of_both_ends(
    clipped: Clipped, links: Spans, stays: dict[int, list[Span]]
) -> None:
    found = clipped(links)["links"]
    expected = {link: runs_of(alive_of(link, links, stays)) for link in links}
    assert found == {link: spans for link, spans in expected.items() if spans}
    check_maximal(found)


def test_dangling_links_are_the_rest(
    clipped: Clipped, links: Spans, stays: dict[int, list[Span]]
) -> None:
    found = clipped(links)["dangling_links"]
    for link in links:
        kept = alive_of(link, links, stays)
        rest = ticks(found.get(link, ()))
        assert rest | kept == ticks(links[link])
        assert not rest & kept
    assert set(found) <= set(links)
    check_maximal(found)
    nowhere = [link for link in links if PEERS - 1 in link[:2]]
    assert nowhere
    assert all(found[link] == links[link] for link in nowhere)


def test_links_within_presence_leave_nothing(clipped: Clipped, links: Spans) -> None:
    within = clipped(links)["links"]
    assert clipped(within) == {"links": within, "dangling_links": {}}


def test_subscriptions_are_clipped_to_the_presence_of_their_peer(
    rng: np.random.Generator, stays: dict[int, list[Span]]
) -> None:
    every = [(peer, topic) for peer in range(PEERS) for topic in range(8)]
    taken = {key: runs_of(ticks(random_spans(rng))) for key in every}
    named = {(f"p{peer}", f"t{topic}"): spans for (peer, topic), spans in taken.items()}
    observed = [(*key, *span) for key, spans in named.items() for span in spans]
    columns = zip(*observed, strict=True)
    names = ("peer", "topic", *PERIOD)
    tables = {
        "observed/subscriptions": pa.table(dict(zip(names, map(list, columns), strict=True))),
        "peers": pa.table({"peer": [*range(PEERS)], "name": [f"p{n}" for n in range(PEERS)]}),
        "topics": pa.table({"topic": [*range(8)], "name": [f"t{n}" for n in range(8)]}),
        "stays": rows_of(["peer", *PERIOD], unkeyed({(p,): s for p, s in stays.items()})),
    }
    chosen = [ingest_step("mine"), ingest_step("subscriptions")]
    found = spans_of(made("subscriptions", chosen, tables, given()), "peer", "topic")
    alive = {key: ticks(taken[key]) & ticks(stays.get(key[0], ())) for key in taken}
    assert found == {key: runs_of(here) for key, here in alive.items() if here}


def test_open_spans_close_at_the_end_of_the_run() -> None:
    rows = rows_of(["peer", *PERIOD], [(0, 3, OPEN), (1, 3, 7), (2, 9, 10), (3, 0, 10)])
    expected = {(0,): [(3, 10)], (1,): [(3, 7)], (2,): [(9, 10)], (3,): [(0, 10)]}
    for are_maximal in (True, False):
        assert maximal(rows, "peer", close_at=10, are_maximal=are_maximal) == expected


def test_spans_that_reach_the_end_of_the_run_are_open() -> None:
    rows = rows_of(["peer", *PERIOD], [(0, 3, 10), (1, 3, 9), (2, 3, 11), (3, 3, OPEN)])
    text = "SELECT * REPLACE (open_at_end(valid_to) AS valid_to) FROM observed.rows"
    found = made("found", [view_step("found", text)], {"observed/rows": rows}, given(end=10))
    assert spans_of(found, "peer") == {
        (0,): [(3, OPEN)],
        (1,): [(3, 9)],
        (2,): [(3, 11)],
        (3,): [(3, OPEN)],
    }
