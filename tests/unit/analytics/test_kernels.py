"""Every kernel against networkx, on small shapes, random overlays and across word boundaries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vizpub.analytics.kernels.adjacency import Rows, outgoing, reverse, union
from vizpub.analytics.kernels.betweenness import betweenness, dependencies
from vizpub.analytics.kernels.clustering import clustering, corners_by_bits, corners_by_links
from vizpub.analytics.kernels.components import strong_components, weak_components
from vizpub.analytics.kernels.distances import distances
from vizpub.analytics.kernels.pagerank import pagerank
from vizpub.analytics.kernels.topics import PAIRS, TOPIC_COLUMNS, induced_rows, topic_measures
from vizpub.machine.compiled import compiled, population

EXACT = 2e10
SHALLOW, DEEP = 10, 11
Overlay = Any
"""A directed graph of networkx whose nodes are 0 … n-1."""


def rows_of(graph: Overlay) -> Rows:
    neighbours = [sorted(set(graph.successors(v)) - {v}) for v in range(graph.number_of_nodes())]
    ptr = np.cumsum([0, *map(len, neighbours)], dtype=np.int64)
    return ptr, np.array([w for row in neighbours for w in row], dtype=np.uint32)


def either_way(rows: Rows) -> Rows:
    return union(*rows, *reverse(*rows))


def neighbours(rows: Rows) -> list[list[int]]:
    ptr, idx = rows
    return [idx[a:b].tolist() for a, b in pairwise(ptr)]


def digraph(n: int, *links: tuple[int, int]) -> Overlay:
    graph: Overlay = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(links)
    return graph


def random_overlay(n: int, links_per_peer: float, seed: int) -> Overlay:
    return nx.gnp_random_graph(n, min(1.0, links_per_peer / max(n - 1, 1)), seed, directed=True)


def apart(*parts: Overlay) -> Overlay:
    return nx.disjoint_union_all(parts)


SHAPES: dict[str, Callable[[], Overlay]] = {
    "nobody": lambda: digraph(0),
    "one": lambda: digraph(1),
    "two apart": lambda: digraph(2),
    "one way": lambda: digraph(2, (1, 0)),
    "both ways": lambda: digraph(2, (0, 1), (1, 0)),
    "three apart": lambda: digraph(3),
    "chain of three": lambda: digraph(3, (2, 1), (1, 0)),
    "triangle": lambda: digraph(3, (0, 1), (1, 2), (2, 0)),
    "path": lambda: digraph(130, *((v, v + 1) for v in range(129))),
    "path backwards": lambda: digraph(70, *((v + 1, v) for v in range(69))),
    "ring": lambda: digraph(129, *((v, (v + 1) % 129) for v in range(129))),
    "star out": lambda: digraph(66, *((65, v) for v in range(65))),
    "star in": lambda: digraph(66, *((v, 30) for v in range(66) if v != 30)),
    "everyone": lambda: nx.complete_graph(40, nx.DiGraph()),
    "tree": lambda: nx.balanced_tree(2, 6, nx.DiGraph()),
    "parts": lambda: apart(
        random_overlay(50, 4, 1), digraph(20), nx.cycle_graph(30, nx.DiGraph()), digraph(1)
    ),
}
SHAPES |= {
    f"{n} peers, {k} links, seed {seed}": partial(random_overlay, n, k, seed)
    for n, k, seed in [
        (12, 1, 2),
        (63, 2, 3),
        (64, 1.5, 4),
        (65, 3, 5),
        (127, 1, 6),
        (128, 2, 7),
        (129, 6, 8),
        (200, 1.2, 9),
        (60, 40, 10),
    ]
}


@pytest.fixture(params=SHAPES)
def graph(request: pytest.FixtureRequest) -> Overlay:
    print(request.param)
    return SHAPES[request.param]()


def check_adjacency(graph: Overlay) -> None:
    rows = rows_of(graph)
    n = graph.number_of_nodes()
    assert neighbours(reverse(*rows)) == [sorted(graph.predecessors(v)) for v in range(n)]
    undirected = graph.to_undirected()
    both, out = neighbours(either_way(rows)), neighbours(rows)
    assert [sorted(row) for row in both] == [sorted(undirected.neighbors(v)) for v in range(n)]
    assert [row[: len(first)] for row, first in zip(both, out, strict=True)] == out


def check_distances(graph: Overlay, rows: Rows) -> None:
    expected = [
        [hops for target, hops in lengths.items() if target != v]
        for v, lengths in sorted(nx.all_pairs_shortest_path_length(graph))
    ]
    distance_sum, reach, eccentricity = distances(*rows)
    assert distance_sum.tolist() == [sum(hops) for hops in expected]
    assert reach.tolist() == [len(hops) for hops in expected]
    assert eccentricity.tolist() == [max(hops, default=-1) for hops in expected]


def check_components(graph: Overlay) -> None:
    def smallest(parts: Any) -> list[int]:
        named = {v: min(part) for part in parts for v in part}
        return [named[v] for v in range(graph.number_of_nodes())]

    rows = rows_of(graph)
    weak = smallest(nx.weakly_connected_components(graph))
    assert weak_components(*rows).tolist() == weak
    assert weak_components(*either_way(rows)).tolist() == weak
    assert strong_components(*rows).tolist() == smallest(nx.strongly_connected_components(graph))


def check_clustering(graph: Overlay) -> None:
    """By bits and by links, whichever of them is chosen."""
    expected: Any = nx.triangles(graph.to_undirected())
    rows = either_way(rows_of(graph))
    for corners_by in (corners_by_bits, corners_by_links):
        assert corners_by(*rows).tolist() == [2 * expected[v] for v in sorted(graph)]
    local: Any = nx.clustering(graph.to_undirected())
    np.testing.assert_allclose(clustering(*rows), [local[v] for v in sorted(graph)], rtol=1e-12)


def check_pagerank(graph: Overlay) -> None:
    rows = rows_of(graph)
    expected = nx.pagerank(graph, alpha=0.85, tol=1e-14, max_iter=1000)
    measured = pagerank(rows[0], *reverse(*rows))
    np.testing.assert_allclose(measured, [expected[v] for v in sorted(graph)], rtol=0, atol=1e-9)
    assert measured.sum() == pytest.approx(min(1, measured.size), abs=1e-12)


def check_betweenness(graph: Overlay) -> None:
    """In lanes, and one source at a time, whatever its true depth is."""
    expected = nx.betweenness_centrality(graph, normalized=False)
    rows, sources = rows_of(graph), np.arange(graph.number_of_nodes(), dtype=np.uint32)
    for hops in (SHALLOW, DEEP):
        measured, _ = dependencies(*rows, sources, hops)
        np.testing.assert_allclose(
            measured, [expected[v] for v in sorted(graph)], rtol=1e-9, atol=1e-9
        )


def test_adjacency_reversed_and_joined_equals_networkx(graph: Overlay) -> None:
    check_adjacency(graph)


def test_distances_equal_networkx(graph: Overlay) -> None:
    check_distances(graph, rows_of(graph))


def test_undirected_distances_equal_networkx(graph: Overlay) -> None:
    check_distances(graph.to_undirected(), either_way(rows_of(graph)))


def test_components_equal_networkx_and_bear_their_smallest_peer(graph: Overlay) -> None:
    check_components(graph)


def test_clustering_equals_networkx(graph: Overlay) -> None:
    check_clustering(graph)


def test_betweenness_equals_networkx(graph: Overlay) -> None:
    check_betweenness(graph)


def test_pagerank_equals_networkx(graph: Overlay) -> None:
    check_pagerank(graph)


@st.composite
def overlays(draw: st.DrawFn) -> Overlay:
    n = draw(st.integers(1, 12))
    peers = st.integers(0, n - 1)
    links = draw(st.sets(st.tuples(peers, peers).filter(lambda link: link[0] != link[1])))
    return digraph(n, *links)


@settings(max_examples=200)
@given(overlays())
def test_kernels_equal_networkx_on_any_small_overlay(graph: Overlay) -> None:
    check_adjacency(graph)
    check_distances(graph, rows_of(graph))
    check_components(graph)
    check_clustering(graph)
    check_betweenness(graph)
    check_pagerank(graph)


def test_kernels_beyond_one_band_of_words_equal_those_within() -> None:
    """42 shuffled copies of one overlay of 100 peers, whose figures are known from the one."""
    base, copies = random_overlay(100, 2, seed=11), 42
    shuffle = np.random.default_rng(12).permutation(100 * copies)
    links = np.array(base.edges)
    many = digraph(
        shuffle.size, *(pair for c in range(copies) for pair in shuffle[links + 100 * c].tolist())
    )
    rows, base_rows = rows_of(many), rows_of(base)
    measured, expected = (
        [*distances(*directed), corners_by_bits(*undirected), corners_by_links(*undirected)]
        for directed in (rows, base_rows)
        for undirected in [either_way(directed)]
    )
    for of_many, of_one in zip(measured, expected, strict=True):
        np.testing.assert_array_equal(of_many[shuffle], np.tile(of_one, copies))


def test_outgoing_leaves_out_self_links_and_absent_peers() -> None:
    src = np.array([1, 1, 1, 3, 3, 5, 7], np.int32)
    dst = np.array([1, 3, 5, 1, 7, 3, 3], np.int32)
    rank = np.array([-1, 0, -1, 1, -1, -1, -1, 2], np.int32)
    alive = np.array([0, 1, 2, 3, 4, 5, 6], np.int32)
    assert neighbours(outgoing(3, rank, src, dst, alive)) == [[1], [0, 2], [1]]
    assert neighbours(outgoing(3, rank, src, dst, alive[4:])) == [[], [2], [1]]


def test_induced_links_equal_the_networkx_subgraph() -> None:
    graph, members = random_overlay(40, 6, seed=13), np.arange(3, 40, 4, dtype=np.uint32)
    place = np.full(40, -1, np.int32)
    place[members] = np.arange(members.size)
    rows, inner = rows_of(graph), graph.subgraph(members.tolist())
    links, *inner_rows = induced_rows(rows[0], *either_way(rows), members, place)
    assert links == inner.number_of_edges()
    undirected = inner.to_undirected()
    assert [
        sorted(members[row].tolist()) for row in neighbours((inner_rows[0], inner_rows[1]))
    ] == [sorted(undirected.neighbors(v)) for v in members.tolist()]


def undirected_figures(graph: Overlay) -> dict[str, int]:
    undirected = graph.to_undirected()
    hops = [
        d
        for v, reached in nx.all_pairs_shortest_path_length(undirected)
        for w, d in reached.items()
        if w != v
    ]
    return {
        "topic_links": graph.number_of_edges(),
        "components": nx.number_connected_components(undirected),
        "topic_diameter": max(hops, default=-1),
        "distance_sum": sum(hops),
        "pairs": len(hops),
    }


@pytest.mark.parametrize("links_per_peer", [0.5, 2, 8])
def test_topic_measures_equal_networkx_among_their_subscribers(links_per_peer: float) -> None:
    graph = random_overlay(150, links_per_peer, seed=14)
    rng = np.random.default_rng(15)
    groups = [np.sort(rng.choice(150, size, replace=False)) for size in (0, 1, 2, 9, 70, 150)]
    bounds = np.cumsum([0, *map(len, groups)], dtype=np.int64)
    subscribers = np.concatenate(groups).astype(np.uint32)
    rows = rows_of(graph)
    measured, errors = topic_measures(
        *(rows[0], either_way(rows), bounds, subscribers), EXACT, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(errors, np.where(measured[:, PAIRS] > 0, 0, np.nan))
    for group, row in zip(groups, measured, strict=True):
        expected = undirected_figures(graph.subgraph(group.tolist()).copy())
        assert dict(zip(TOPIC_COLUMNS, row.tolist(), strict=True)) == expected


def test_topic_beyond_its_share_is_sampled_within_its_stated_error() -> None:
    """The other topics, and what needs no distances, are as without a limit."""
    graph = random_overlay(2_000, 6, seed=21)
    rng = np.random.default_rng(22)
    groups = [np.sort(rng.choice(2_000, size, replace=False)) for size in (1_500, 40, 1_200)]
    bounds = np.cumsum([0, *map(len, groups)], dtype=np.int64)
    subscribers = np.concatenate(groups).astype(np.uint32)
    rows = rows_of(graph)
    inputs = rows[0], either_way(rows), bounds, subscribers
    exact, no_errors = topic_measures(*inputs, EXACT, rng)
    assert no_errors.tolist() == [0, 0, 0]
    draws = [topic_measures(*inputs, 0, np.random.default_rng(seed)) for seed in range(200)]
    estimates = np.array([measured for measured, _ in draws])
    errors = np.array([stated for _, stated in draws])
    np.testing.assert_array_equal(estimates[:, 1], np.tile(exact[1], (len(draws), 1)))
    assert not errors[:, 1].any()
    of_links = [TOPIC_COLUMNS.index(name) for name in ("topic_links", "components", "pairs")]
    same = np.tile(exact[:, of_links], (len(draws), 1, 1))
    np.testing.assert_array_equal(estimates[..., of_links], same)
    assert (estimates[..., TOPIC_COLUMNS.index("topic_diameter")] <= exact[:, 2]).all()
    means = estimates[..., 3] / estimates[..., PAIRS]
    off, spread = means - exact[:, 3] / exact[:, PAIRS], means.std(axis=0)
    for topic in (0, 2):
        assert abs(off[:, topic].mean()) < 5 * spread[topic] / len(draws) ** 0.5 + 1e-3
        assert (errors[:, topic] ** 2).mean() ** 0.5 == pytest.approx(spread[topic], rel=0.2)


def test_sampled_topic_whose_sample_meets_no_pair_is_searched_whole() -> None:
    """One link among 5,000 subscribers: the least sample, 512 of them, most often misses it."""
    ptr = np.concatenate([[0], np.ones(5_000, np.int64)])
    rows = ptr, np.array([1], np.uint32)
    everybody, bounds = np.arange(5_000, dtype=np.uint32), np.array([0, 5_000])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        measured, errors = topic_measures(ptr, either_way(rows), bounds, everybody, 0, rng)
        assert measured.tolist() == [[1, 4_999, 1, 2, 2]]
        assert errors[0] >= 0


@pytest.mark.parametrize("hops", [SHALLOW, DEEP])
def test_sampled_betweenness_is_unbiased_and_states_its_error(hops: int) -> None:
    ptr, idx = rows_of(random_overlay(80, 4, seed=16))
    exact, _ = betweenness(ptr, idx, hops, EXACT, np.random.default_rng(0))
    quarter = 20.0 * (80 + idx.size)
    draws = [
        betweenness(ptr, idx, hops, quarter, np.random.default_rng(seed)) for seed in range(1000)
    ]
    estimates, errors = (np.array(column) for column in zip(*draws, strict=True))
    spread = estimates.std(axis=0)
    np.testing.assert_array_less(abs(estimates.mean(axis=0) - exact), 5 * spread / 1000**0.5 + 1e-9)
    np.testing.assert_allclose((errors**2).mean(axis=0) ** 0.5, spread, rtol=0.1)


def test_sampled_betweenness_is_repeatable_with_one_seed() -> None:
    rows = rows_of(random_overlay(80, 4, seed=17))
    first, second = (betweenness(*rows, SHALLOW, 5_000, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first[1].any()


@pytest.mark.parametrize(
    ("name", "head", "published"),
    [
        ("facebook_combined_relabelled.txt.gz", 0, {"triangles": 1_612_010, "clustering": 0.6055}),
        ("p2p-Gnutella08.txt.gz", 1, {"triangles": 2_383, "clustering": 0.0109, "weak": 6_299,
                                      "strong": 2_068}),
        ("goerliTopology.edgelist.gz", 0, {"clustering": 0.1795, "path length": 2.499,
                                           "degree": 712}),
    ],
)  # fmt: skip
def test_public_graphs_have_their_published_figures(
    outside_data: Callable[[str], Path], name: str, head: int, published: dict[str, float]
) -> None:
    """Of SNAP, and of the simulator that ships Goerli; components are the largest."""
    edges = np.loadtxt(outside_data(name), dtype=int, skiprows=head)
    peers, ends = np.unique(edges, return_inverse=True)
    rows = rows_of(digraph(len(peers), *map(tuple, ends.reshape(-1, 2).tolist())))
    both = either_way(rows)
    measures = {
        "triangles": lambda: corners_by_links(*both).sum() / 6,
        "clustering": lambda: clustering(*both).mean(),
        "weak": lambda: np.bincount(weak_components(*rows)).max(),
        "strong": lambda: np.bincount(strong_components(*rows)).max(),
        "path length": lambda: np.divide(*(of.sum() for of in distances(*both)[:2])),
        "degree": lambda: np.diff(both[0]).max(),
    }
    for measure, value in published.items():
        assert measures[measure]() == pytest.approx(value, abs=0 if value > 10 else 6e-4), measure


def test_kernel_without_a_cache_place_is_compiled() -> None:
    """Numba finds no place for the cache of code that lies in no file."""
    scope: dict[str, Any] = {"population": population}
    exec("def bits(word):\n    return population(word)", scope)
    bits = compiled("int64(uint64)")(scope["bits"])
    assert [bits(np.uint64(word)) for word in (0, 1, 2**63 + 5, 2**64 - 1)] == [0, 1, 3, 64]
