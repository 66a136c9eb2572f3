"""The estimated diameter against networkx, and what the parameters refuse."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from vizpub.model.errors import UseError
from vizpub.simulators.protocols.gossip.parameters import GossipParameters, estimated_diameter


@pytest.mark.parametrize(("mean", "seed"), [(2, 1), (3, 2), (5, 3), (10, 4)])
def test_estimate_is_near_the_diameter_of_random_graphs(mean: float, seed: int) -> None:
    graph = nx.fast_gnp_random_graph(400, mean / 399, seed=seed)
    component = graph.subgraph(max(nx.connected_components(graph), key=len))
    estimate = estimated_diameter(np.array([degree for _, degree in graph.degree]))
    diameter = nx.diameter(component)
    assert estimate == pytest.approx(diameter, rel=0.35), f"seed {seed}"
    assert diameter <= 2 * estimate


def test_estimate_of_a_regular_graph_has_no_tails() -> None:
    graph = nx.random_regular_graph(4, 300, seed=1)
    assert nx.diameter(graph) - 2 <= estimated_diameter(np.full(300, 4)) <= nx.diameter(graph)


@pytest.mark.parametrize(
    ("degrees", "longest"), [([1, 2, 2, 1], 3), ([0, 0, 0], 2), ([], 1), ([1] * 8, 7), ([2] * 5, 4)]
)
def test_estimate_without_a_giant_component_is_the_longest_path(
    degrees: list[int], longest: int
) -> None:
    assert estimated_diameter(np.array(degrees, np.int64)) == longest


def test_unknown_topology_is_refused() -> None:
    with pytest.raises(UseError, match="poisson"):
        GossipParameters(topology="poison:5")
