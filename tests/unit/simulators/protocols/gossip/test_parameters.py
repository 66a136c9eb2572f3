"""The estimated diameter against networkx, and what the parameters refuse."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from model.errors import UseError
from simulators.protocols.gossip.parameters import GossipParameters, estimated_diameter


@pytest.mark.parametrize(("mean", "seed"), [(3, 1), (5, 2), (10, 3)])
def test_twice_the_estimate_exceeds_the_diameter(mean: float, seed: int) -> None:
    graph = nx.fast_gnp_random_graph(300, mean / 299, seed=seed)
    degrees = np.array([degree for _, degree in graph.degree])
    component = graph.subgraph(max(nx.connected_components(graph), key=len))
    estimate = estimated_diameter(degrees)
    assert estimate <= nx.diameter(component) <= 2 * estimate


@pytest.mark.parametrize(("degrees", "longest"), [([1, 2, 2, 1], 3), ([0, 0, 0], 2), ([], 1)])
def test_estimate_without_a_giant_component_is_the_longest_path(
    degrees: list[int], longest: int
) -> None:
    assert estimated_diameter(np.array(degrees, np.int64)) == longest


def test_unknown_topology_is_refused() -> None:
    with pytest.raises(UseError, match="poisson"):
        GossipParameters(topology="poison:5")
