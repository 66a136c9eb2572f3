"""Layouts by force: what is linked is near, and equal input gives equal places."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from vizpub.analytics.layouts import circle_layout
from vizpub.analytics.layouts.force import force_layout


def placed(graph: nx.Graph[int], weight: float = 1.0) -> np.ndarray:
    ends = np.array(sorted(graph.edges), np.int32).reshape(-1, 2)
    src, dst = (np.ascontiguousarray(end) for end in ends.T)
    return force_layout(len(graph), src, dst, np.full(len(ends), weight))


@pytest.mark.parametrize("seed", range(3))
def test_linked_peers_are_nearer_than_others(seed: int) -> None:
    graph = nx.connected_caveman_graph(6, 8)
    order = dict(enumerate(np.random.default_rng(seed).permutation(len(graph)).tolist()))
    graph = nx.relabel_nodes(graph, order)
    places = placed(graph)
    apart = np.hypot(*(places[:, None] - places[None]).T)
    linked = nx.to_numpy_array(graph, nodelist=range(len(graph)), dtype=bool)
    others = ~linked & ~np.eye(len(graph), dtype=bool)
    assert apart[linked].mean() < apart[others].mean() / 2


def test_places_are_the_same_each_time_and_within_the_circle() -> None:
    graph = nx.barabasi_albert_graph(300, 3, seed=1)
    first = placed(graph)
    np.testing.assert_array_equal(placed(graph), first)
    assert np.hypot(*first.T).max() == pytest.approx(1)


def test_link_of_a_short_time_pulls_less() -> None:
    src, dst = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    places = force_layout(3, src, dst, np.array([1.0, 0.05]))
    near, far = (np.hypot(*(places[a] - places[b])) for a, b in ((0, 1), (1, 2)))
    assert near < far


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_few_peers_without_links_have_places(count: int) -> None:
    none = np.empty(0, np.int32)
    places = force_layout(count, none, none, np.empty(0))
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == count


def test_circle_is_even() -> None:
    assert circle_layout(0).shape == (0, 2)
    np.testing.assert_allclose(circle_layout(4), [[1, 0], [0, 1], [-1, 0], [0, -1]], atol=1e-12)
