"""Versions against naive references, tick by tick.

Every random history is a key of its own in one table, so that one Spark job judges hundreds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from ingest.periods import clip, close_at, coalesce, open_at, outside, without
from model.clock import OPEN

pytestmark = pytest.mark.spark

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


def frame(spark: SparkSession, names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> DataFrame:
    types = {"topic": pa.int32(), "peer": pa.int32(), "src": pa.int32(), "dst": pa.int32()}
    types |= {"opens": pa.bool_(), "layer": pa.string()}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in names])
    records = [dict(zip(names, row, strict=True)) for row in rows]
    # In several partitions and in no order, as any stage would find them.
    made = spark.createDataFrame(pa.Table.from_pylist(records, schema))
    return made.repartition(3, *([names[0]] if records else []))


def collected(spans: DataFrame, keys: Sequence[str]) -> Spans:
    """key → its spans in order; the columns are the keys and the two ends."""
    assert spans.columns == [*keys, "valid_from", "valid_to"]
    found: Spans = defaultdict(list)
    for row in spans.collect():
        found[tuple(row[key] for key in keys)].append((row.valid_from, row.valid_to))
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


def test_coalesced_spans_equal_the_maximal_runs_of_their_ticks(
    spark: SparkSession, rng: np.random.Generator
) -> None:
    histories = [random_spans(rng) for _ in range(HISTORIES)]
    spans = frame(spark, ["peer", "topic", "valid_from", "valid_to"], keyed(histories))
    found = collected(coalesce(spans, ["peer", "topic"]), ["peer", "topic"])
    assert found == {key_of(i): runs_of(ticks(h)) for i, h in enumerate(histories) if h}
    check_maximal(found)


def test_maximal_versions_are_unchanged_by_coalesce(
    spark: SparkSession, rng: np.random.Generator
) -> None:
    histories = [runs_of(ticks(random_spans(rng))) for _ in range(50)]
    spans = frame(spark, ["peer", "topic", "valid_from", "valid_to"], keyed(histories))
    found = collected(coalesce(spans, ["peer", "topic"]), ["peer", "topic"])
    assert found == {key_of(i): h for i, h in enumerate(histories) if h}


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


@pytest.fixture(scope="module")
def presence(spark: SparkSession, stays: dict[int, list[Span]]) -> DataFrame:
    return frame(
        spark, ["peer", "valid_from", "valid_to"], unkeyed({(p,): s for p, s in stays.items()})
    )


@pytest.fixture(scope="module")
def clipped(spark: SparkSession, presence: DataFrame, links: Spans) -> tuple[DataFrame, DataFrame]:
    """(the links, their parts in which both ends are present)."""
    spans = frame(spark, [*LINK, "valid_from", "valid_to"], unkeyed(links)).cache()
    return spans, clip(clip(spans, presence, "src"), presence, "dst").cache()


def alive_of(link: tuple[Any, ...], links: Spans, stays: dict[int, list[Span]]) -> set[int]:
    ends = (ticks(stays.get(peer, ())) for peer in link[:2])
    return ticks(links[link]).intersection(*ends)


def test_links_are_clipped_to_the_presence_of_both_ends(
    clipped: tuple[DataFrame, DataFrame], links: Spans, stays: dict[int, list[Span]]
) -> None:
    found = collected(clipped[1], LINK)
    expected = {link: runs_of(alive_of(link, links, stays)) for link in links}
    assert found == {link: spans for link, spans in expected.items() if spans}
    check_maximal(found)


def test_spans_without_the_clipped_parts_are_the_rest(
    clipped: tuple[DataFrame, DataFrame], links: Spans, stays: dict[int, list[Span]]
) -> None:
    found = collected(without(*clipped, LINK), LINK)
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


def test_spans_without_themselves_are_empty(clipped: tuple[DataFrame, DataFrame]) -> None:
    assert without(clipped[0], clipped[0], LINK).count() == 0


def test_spans_without_an_empty_table_stay_whole(
    clipped: tuple[DataFrame, DataFrame], links: Spans
) -> None:
    assert collected(without(clipped[0], clipped[0].limit(0), LINK), LINK) == links


def test_links_outside_presence_equal_the_parts_clipped_off(
    clipped: tuple[DataFrame, DataFrame], presence: DataFrame
) -> None:
    found = collected(outside(clipped[0], presence, "src", "dst"), LINK)
    assert found == collected(without(*clipped, LINK), LINK)
    assert found


def test_subscriptions_are_clipped_to_the_presence_of_their_peer(
    spark: SparkSession, rng: np.random.Generator, presence: DataFrame, stays: Any
) -> None:
    every = [(peer, topic) for peer in range(PEERS) for topic in range(8)]
    taken = {key: runs_of(ticks(random_spans(rng))) for key in every}
    rows = frame(spark, ["peer", "topic", "valid_from", "valid_to"], unkeyed(taken))
    found = collected(clip(rows, presence, "peer"), ["peer", "topic"])
    alive = {key: ticks(taken[key]) & ticks(stays.get(key[0], ())) for key in taken}
    assert found == {key: runs_of(here) for key, here in alive.items() if here}


def test_open_spans_close_at_the_end_of_the_run(spark: SparkSession) -> None:
    spans = frame(
        spark, ["peer", "valid_from", "valid_to"], [(0, 3, OPEN), (1, 3, 7), (2, 9, 10), (3, 0, 10)]
    )
    assert collected(close_at(spans, 10), ["peer"]) == {
        (0,): [(3, 10)],
        (1,): [(3, 7)],
        (2,): [(9, 10)],
        (3,): [(0, 10)],
    }


def test_spans_that_reach_the_end_of_the_run_are_open(spark: SparkSession) -> None:
    spans = frame(
        spark, ["peer", "valid_from", "valid_to"], [(0, 3, 10), (1, 3, 9), (2, 3, 11), (3, 3, OPEN)]
    )
    assert collected(open_at(spans, 10), ["peer"]) == {
        (0,): [(3, OPEN)],
        (1,): [(3, 9)],
        (2,): [(3, 11)],
        (3,): [(3, OPEN)],
    }
