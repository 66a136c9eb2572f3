"""The engine `graphframes` against `kernels` and networkx, wherever GraphFrames' jars are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import nan
from random import Random
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.metrics import structure_of
from vizpub.analytics import structure
from vizpub.analytics.engines import measure_with_graphframes
from vizpub.analytics.graphframes import engine
from vizpub.analytics.graphframes.graphs import load_graphframes, motifs_by_topic, union_graph
from vizpub.analytics.options import Measures
from vizpub.analytics.structure import STRUCTURE_SCHEMA, Versions, largest_interval
from vizpub.machine.jvm.artifacts import missing
from vizpub.model.clock import OPEN, Clock

pytestmark = [pytest.mark.spark, pytest.mark.graphframes]

PEERS = 25
CLOCK = Clock(ticks_per_interval=1, first=3, last=10)
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Overlay:
    """One interval: peers of any number, one-way links, and subscriptions."""

    peers: set[int]
    links: set[tuple[int, int]]
    subscriptions: set[tuple[int, int]]

    @property
    def graph(self) -> nx.DiGraph[int]:
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(sorted(self.peers))
        graph.add_edges_from((a, b) for a, b in self.links if a != b and {a, b} <= self.peers)
        return graph

    def subscribers(self, topic: int) -> set[int]:
        return {p for p, t in self.subscriptions if t == topic} & self.peers


def _drawn(rng: Random, n: int, links: int) -> Overlay:
    """Some links have an end that is not there, some subscribers are not there either."""
    peers = set(rng.sample(range(PEERS), n))
    known = [*peers, *rng.sample(range(PEERS), 2)]
    pairs = {(rng.choice(known), rng.choice(known)) for _ in range(links)}
    return Overlay(peers, pairs, {(rng.choice(known), rng.randrange(3)) for _ in range(n)})


def _drawn_overlays() -> list[Overlay]:
    rng = Random(11)
    sizes = [(20, 60), (0, 0), (1, 1), (2, 2), (3, 5), (20, 18), (18, 200)]
    ring = Overlay(set(range(9)), {*pairwise(range(9)), (8, 0), (4, 3)}, {(p, 0) for p in range(9)})
    return [*(_drawn(rng, *size) for size in sizes), ring]


OVERLAYS = _drawn_overlays()


def _frame(spark: SparkSession, rows: Iterator[tuple[int, ...]], *names: str) -> DataFrame:
    """The rows, which end with the interval they are alive in, as spans."""
    types = [(name, pa.int32()) for name in names] + [
        ("valid_from", pa.int64()),
        ("valid_to", pa.int64()),
    ]
    records = [
        dict(zip([*names, "valid_from", "valid_to"], (*row, row[-1] + 1), strict=True))
        for row in rows
    ]
    return spark.createDataFrame(pa.Table.from_pylist(records, pa.schema(types)))


@pytest.fixture(scope="module")
def versions(spark: SparkSession) -> Versions:
    """A span per interval, and one that is open and overlaps what it repeats."""
    overlays = list(enumerate(OVERLAYS, CLOCK.first))
    late = {p for p in OVERLAYS[-1].peers if p < 4}
    stays = [(p, i) for i, o in overlays for p in o.peers]
    links = [(*pair, i) for i, o in overlays for pair in o.links]
    taken = [(*pair, i) for i, o in overlays for pair in o.subscriptions]
    presence = _frame(spark, iter(stays), "peer")
    opened = spark.createDataFrame(
        [(p, CLOCK.last, OPEN) for p in late], "peer int, valid_from long, valid_to long"
    )
    return Versions(
        presence.unionAll(opened),
        _frame(spark, iter(links * 2), "src", "dst"),  # as of two layers
        _frame(spark, iter(taken), "peer", "topic"),
    )


@pytest.fixture(scope="module")
def graphframes(spark: SparkSession) -> Iterator[None]:
    """Skips where the classes cannot be loaded; nothing is fetched for a test."""
    if not os.environ.get("VIZPUB_GRAPHFRAMES_JARS") and missing("graphframes"):
        pytest.skip(
            "GraphFrames' jars are not here; VIZPUB_GRAPHFRAMES_JARS=a.jar,b.jar names some"
        )
    load_graphframes(spark)
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 1)  # hundreds of small jobs
    yield
    spark.conf.set("spark.sql.shuffle.partitions", usual or "")


def _sorted_rows(frame: DataFrame) -> Rows:
    return sorted(frame.toArrow().to_pylist(), key=lambda row: (row["interval"], row["peer"]))


@pytest.fixture(scope="module")
def rows(graphframes: None, versions: Versions) -> Rows:
    """What the engine says, in two graphs rather than one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_ROWS_PER_GRAPH", 5 * sum(largest_interval(versions, CLOCK)))
        return _sorted_rows(measure_with_graphframes(versions, CLOCK, Measures()))


def _flat(value: Any) -> Iterator[float]:
    """The numbers of a row in order, those in lists of topics and intervals too; NaN for null."""
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield nan if value is None else value


def test_graphframes_metrics_equal_those_of_kernels(versions: Versions, rows: Rows) -> None:
    names = ("presence", "links", "subscriptions")
    tables = {name: getattr(versions, name).toArrow() for name in names}
    expected = structure_of(CLOCK, tables).to_pylist()
    assert [list(row) for row in rows[:1]] == [STRUCTURE_SCHEMA.names]
    assert len(rows) == len(expected) == sum(len(o.peers) for o in OVERLAYS)
    for mine, theirs in zip(rows, expected, strict=True):
        found, meant = list(_flat(mine)), list(_flat(theirs))
        assert found == pytest.approx(meant, rel=1e-7, nan_ok=True), mine


def test_graphframes_metrics_equal_networkx(rows: Rows) -> None:
    for interval, overlay in enumerate(OVERLAYS, CLOCK.first):
        found = {row["peer"]: row for row in rows if row["interval"] == interval}
        graph = overlay.graph
        plain = graph.to_undirected()
        ranks = nx.pagerank(graph, alpha=0.85, tol=1e-14, max_iter=1000) if found else {}
        expected: dict[str, Any] = {
            "in_degree": dict(graph.in_degree()),
            "out_degree": dict(graph.out_degree()),
            "degree": dict(plain.degree()),
            "clustering": nx.clustering(plain),
            "component": _named(nx.weakly_connected_components(graph)),
            "strong_component": _named(nx.strongly_connected_components(graph)),
            "pagerank": ranks,
        }
        for name, values in expected.items():
            assert {p: row[name] for p, row in found.items()} == pytest.approx(values, rel=1e-7)


def _named(components: Iterator[set[int]]) -> dict[int, int]:
    return {peer: min(component) for component in components for peer in component}


def test_topic_links_equal_networkx(rows: Rows) -> None:
    found = {
        (topic["interval"], topic["topic"]): topic["topic_links"]
        for row in rows
        for topic in row["topics"] or ()
    }
    assert found == {
        (interval, topic): overlay.graph.subgraph(overlay.subscribers(topic)).number_of_edges()
        for interval, overlay in enumerate(OVERLAYS, CLOCK.first)
        for topic in range(3)
        if overlay.subscribers(topic)
    }


@pytest.mark.usefixtures("graphframes")
def test_motifs_by_topic_equal_networkx(versions: Versions) -> None:
    graph = union_graph(versions, CLOCK)
    rows = motifs_by_topic(graph, "(a)-[e]->(b); (b)-[f]->(c)").where("a.id <> c.id")
    found = sorted(
        (row.a.interval, row.topic, row.a.peer, row.b.peer, row.c.peer) for row in rows.collect()
    )
    assert found == sorted(
        (interval, topic, a, b, c)
        for interval, overlay in enumerate(OVERLAYS, CLOCK.first)
        for topic in range(3)
        for inner in [overlay.graph.subgraph(overlay.subscribers(topic))]
        for a, b in inner.edges
        for c in inner.successors(b)
        if a != c
    )


@pytest.mark.usefixtures("graphframes")
def test_overlay_that_outgrows_a_task_has_no_path_metrics(
    spark: SparkSession, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is kept but the result."""

    def persisted() -> set[int]:
        return set(spark.sparkContext._jsc.getPersistentRDDs())

    monkeypatch.setattr(structure, "TASK_BYTES", 0)
    before = persisted()
    measured = measure_with_graphframes(versions, Clock(1, first=6, last=7), Measures())
    assert len(persisted() - before) == 1
    found = _sorted_rows(measured)
    assert [row["out_degree"] for row in found] == [
        degree for overlay in OVERLAYS[3:5] for _, degree in overlay.graph.out_degree()
    ]
    paths = ("reachable_peers", "eccentricity", "mean_distance", "closeness", "betweenness")
    assert {row[name] for row in found for name in paths} == {None}
