"""Blocks rebuilt from versions against each interval built anew, and against Gephi."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vizpub.analytics.blocks import (
    INTERVAL_TYPES,
    PEER_TYPES,
    TOPIC_TYPES,
    BlockMetrics,
    Columns,
    LinkPeriods,
    PresencePeriods,
    SubscriptionPeriods,
    measure_block,
)
from vizpub.analytics.options import Measures

OPEN = 2**63 - 1
GEPHI = Path(__file__).parents[2] / "data" / "gephi_small"
History = tuple[LinkPeriods, PresencePeriods, SubscriptionPeriods]
Row = dict[str, Any]


def columns(versions: list[tuple[int, ...]], width: int) -> list[npt.NDArray[np.int64]]:
    return list(np.array(versions, np.int64).reshape(-1, width).T)


def history(
    links: list[tuple[int, ...]], stays: list[tuple[int, ...]], taken: list[tuple[int, ...]]
) -> History:
    return (
        LinkPeriods(*columns(links, 4)),
        PresencePeriods(*columns(stays, 3)),
        SubscriptionPeriods(*columns(taken, 4)),
    )


def random_history(seed: int, peers: int, intervals: int, versions: int) -> History:
    """Links that overlap, touch and repeat, also of a peer to itself and to the absent."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)

    def spans(count: int, length: int) -> tuple[Any, Any]:
        start = rng.integers(-3, intervals, count)
        stop = start + rng.integers(1, length, count)
        return start, np.where(stop > intervals, OPEN, stop)

    who = rng.integers(0, peers, (3, versions))
    return (
        LinkPeriods(who[0], who[1], *spans(versions, 6)),
        PresencePeriods(
            rng.permutation(np.repeat(np.arange(peers), 2)), *spans(2 * peers, intervals)
        ),
        SubscriptionPeriods(who[2], rng.integers(0, 4, versions), *spans(versions, intervals)),
    )


def rows(metrics: Columns) -> list[Row]:
    return [dict(zip(metrics, row, strict=True)) for row in zip(*metrics.values(), strict=True)]


def alive(spans: LinkPeriods | PresencePeriods | SubscriptionPeriods, interval: int) -> set[Any]:
    """What the first columns of the spans say of one interval."""
    versions = zip(*(column.tolist() for column in spans), strict=True)
    return {row[:-2] for row in versions if row[-2] <= interval < row[-1]}


def brute_peers(graph: Any, taken: set[tuple[int, int]], interval: int) -> list[Row]:
    undirected = graph.to_undirected()
    weak = {v: min(part) for part in nx.weakly_connected_components(graph) for v in part}
    strong = {v: min(part) for part in nx.strongly_connected_components(graph) for v in part}
    between = nx.betweenness_centrality(graph, normalized=False)
    ranks = nx.pagerank(graph, tol=1e-14, max_iter=1000)
    hops = {v: [d for d in reached.values() if d] for v, reached in nx.shortest_path_length(graph)}
    return [
        {
            "interval": interval,
            "peer": v,
            "in_degree": graph.in_degree(v),
            "out_degree": graph.out_degree(v),
            "degree": undirected.degree(v),
            "clustering": nx.clustering(undirected, v),
            "betweenness": between[v],
            "betweenness_error": 0,
            "distance_sum": sum(hops[v]),
            "mean_distance_error": 0 if hops[v] else np.nan,
            "reachable_peers": len(hops[v]),
            "eccentricity": max(hops[v], default=-1),
            "component": weak[v],
            "strong_component": strong[v],
            "pagerank": ranks[v],
            "subscriptions": sum(peer == v for peer, _ in taken),
        }
        for v in sorted(graph)
    ]


def brute_topics(graph: Any, taken: set[tuple[int, int]], interval: int) -> list[Row]:
    found = []
    for topic in sorted({topic for peer, topic in taken if peer in graph}):
        inner = graph.subgraph({peer for peer, other in taken if other == topic})
        undirected = inner.to_undirected()
        hops = [d for _, r in nx.shortest_path_length(undirected) for d in r.values() if d]
        found.append(
            {
                "interval": interval,
                "topic": topic,
                "subscribers": inner.number_of_nodes(),
                "topic_links": inner.number_of_edges(),
                "components": nx.number_connected_components(undirected),
                "topic_diameter": max(hops, default=-1),
                "distance_sum": sum(hops),
                "pairs": len(hops),
                "topic_average_path_length_error": 0.0 if hops else math.nan,
            }
        )
    return found


def brute_force(versions: History, first: int, last: int) -> tuple[list[Row], list[Row]]:
    peers, topics = [], []
    for interval in range(first, last + 1):
        links, stays, taken = (alive(spans, interval) for spans in versions)
        everyone: Any = nx.DiGraph((a, b) for a, b in links if a != b)
        present = {peer for (peer,) in stays}
        everyone.add_nodes_from(present)
        graph = everyone.subgraph(present)
        peers += brute_peers(graph, taken, interval)
        topics += brute_topics(graph, taken, interval)
    return peers, topics


def check_rows(measured: list[Row], expected: list[Row]) -> None:
    assert len(measured) == len(expected)
    for mine, theirs in zip(measured, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("seed", "peers", "intervals", "versions"),
    [(1, 6, 12, 40), (2, 30, 10, 400), (3, 70, 6, 500), (4, 3, 20, 30), (5, 12, 8, 0)],
)
def test_block_metrics_equal_networkx_in_each_interval(
    seed: int, peers: int, intervals: int, versions: int
) -> None:
    versions_of_all = random_history(seed, peers, intervals, versions)
    block = measure_block(*versions_of_all, 0, intervals - 1)
    expected = brute_force(versions_of_all, 0, intervals - 1)
    check_rows(rows(block.peers), expected[0])
    check_rows(rows(block.topics), expected[1])


def spans(*keys: st.SearchStrategy[int]) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Versions of the keys within intervals 0 … 5, some of them empty."""
    times = st.integers(0, 6)
    return st.lists(st.tuples(*keys, times, times), max_size=12)


PEER, TOPIC = st.integers(0, 4), st.integers(0, 1)


@settings(max_examples=150)
@given(spans(PEER, PEER), spans(PEER), spans(PEER, TOPIC))
def test_block_metrics_of_any_small_history_equal_networkx(
    links: list[tuple[int, ...]], stays: list[tuple[int, ...]], taken: list[tuple[int, ...]]
) -> None:
    versions = history(links, stays, taken)
    block = measure_block(*versions, 1, 5)
    expected = brute_force(versions, 1, 5)
    check_rows(rows(block.peers), expected[0])
    check_rows(rows(block.topics), expected[1])


def joined(blocks: list[BlockMetrics]) -> BlockMetrics:
    return BlockMetrics(
        *(
            {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            for parts in zip(*blocks, strict=True)
        )
    )


@pytest.mark.parametrize("budget", [2e10, 1_000.0])
def test_block_cuts_change_no_metric(budget: float) -> None:
    """Also where betweenness is sampled: the draw belongs to the interval."""
    versions = random_history(6, peers=40, intervals=15, versions=900)
    measures = Measures(max_edge_visits=budget, seed=7)
    whole = measure_block(*versions, 0, 14, measures)
    cuts = [(0, 0), (1, 6), (7, 14)]
    parts = joined([measure_block(*versions, first, last, measures) for first, last in cuts])
    for one, other in zip(whole, parts, strict=True):
        assert list(one) == list(other)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert whole.peers["betweenness_error"].any() == (budget < 1e6)


def test_block_cuts_change_no_sampled_distance() -> None:
    versions = random_history(11, peers=2_000, intervals=4, versions=20_000)
    measures = Measures(betweenness=False, max_edge_visits=0, seed=12)
    whole = measure_block(*versions, 0, 3, measures)
    parts = joined([measure_block(*versions, first, first + 1, measures) for first in (0, 2)])
    for one, other in zip(whole, parts, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert np.nanmax(whole.peers["mean_distance_error"]) > 0
    assert (whole.intervals["average_path_length_error"] > 0).all()


def test_columns_keep_their_types_also_without_peers() -> None:
    for versions in (history([], [], []), random_history(8, 9, 5, 50)):
        peers, topics, intervals = measure_block(*versions, 0, 4)
        assert {name: column.dtype for name, column in peers.items()} == PEER_TYPES
        assert {name: column.dtype for name, column in topics.items()} == TOPIC_TYPES
        assert {name: column.dtype for name, column in intervals.items()} == INTERVAL_TYPES


def test_measures_not_asked_for_are_unknown_and_not_zero() -> None:
    versions = random_history(9, 9, 5, 50)
    measures = Measures(betweenness=False, topics=False)
    peers, topics, _ = measure_block(*versions, 0, 4, measures)
    assert np.isnan(peers["betweenness"]).all()
    assert np.isnan(peers["betweenness_error"]).all()
    assert list(topics) == list(TOPIC_TYPES)
    assert topics["topic"].size == 0


def test_read_only_columns_are_measured() -> None:
    versions = random_history(10, 9, 5, 50)
    for spans_of_one in versions:
        for column in spans_of_one:
            column.flags.writeable = False
    assert measure_block(*versions, 0, 4).peers["peer"].size


@pytest.fixture(scope="module")
def gephi() -> list[dict[str, Any]]:
    with gzip.open(GEPHI / "gephi_metrics.json.gz") as file:
        intervals: list[dict[str, Any]] = json.load(file)["intervals"]
    return intervals


@pytest.fixture(scope="module")
def measured() -> Columns:
    with gzip.open(GEPHI / "versions.csv.gz", "rt") as file:
        versions = np.loadtxt(file, dtype=np.int32, delimiter=",", skiprows=1)
    everyone = np.arange(200)
    presence = PresencePeriods(everyone, np.zeros(200, np.int64), np.full(200, OPEN))
    nobody = SubscriptionPeriods(*columns([], 4))
    return measure_block(LinkPeriods(*versions.T), presence, nobody, 0, 49).peers


@pytest.mark.parametrize("interval", range(50))
def test_interval_metrics_equal_gephi(
    interval: int, gephi: list[dict[str, Any]], measured: Columns
) -> None:
    peers = {name: column[measured["interval"] == interval] for name, column in measured.items()}
    n, links = peers["peer"].size, peers["out_degree"].sum()
    figures = {
        "t": interval,
        "nodes": n,
        "edges": links,
        "diameter": peers["eccentricity"].max(),
        "radius": peers["eccentricity"].min(),
        "path_length": peers["distance_sum"].sum() / peers["reachable_peers"].sum(),
        "avg_degree": links / n,
        "density": links / (n * (n - 1)),
        "wcc": np.unique(peers["component"]).size,
        "giant": np.bincount(peers["component"]).max(),
        "scc": np.unique(peers["strong_component"]).size,
        "avg_clustering_undirected": peers["clustering"].mean(),
        "sum_betweenness": peers["betweenness"].sum(),
        "sum_closeness": (peers["reachable_peers"] / peers["distance_sum"]).sum(),
        "sum_eccentricity": peers["eccentricity"].sum(),
    }
    expected = {name: gephi[interval][name] for name in figures}
    assert figures == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("interval", [0, 25, 49])
def test_peer_metrics_equal_gephi(
    interval: int, gephi: list[dict[str, Any]], measured: Columns
) -> None:
    peers = {name: column[measured["interval"] == interval] for name, column in measured.items()}
    peers["closeness"] = peers["reachable_peers"] / peers["distance_sum"]
    peers["clustering_undirected"] = peers["clustering"]
    for name in (
        "peer",
        "in_degree",
        "out_degree",
        "betweenness",
        "closeness",
        "eccentricity",
        "clustering_undirected",
    ):
        np.testing.assert_allclose(peers[name], gephi[interval][name], rtol=1e-9, err_msg=name)
