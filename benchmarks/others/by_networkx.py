"""networkx, one interval at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import networkx as nx
import pyarrow as pa

from benchmarks.others.loop import Columns, Links, links_at, run

Graph: TypeAlias = "nx.DiGraph[int]"


def history(links: pa.Table, peers: int) -> Callable[[int], Graph]:
    """Build each interval's graph from its links."""
    return lambda interval: make_graph(links_at(links, interval), peers)


def make_graph(links: Links, peers: int) -> Graph:
    """Build the graph of so many peers."""
    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(range(peers))
    graph.add_edges_from(zip(*links, strict=True))
    return graph


def structure(graph: Graph) -> Columns:
    """All metrics but betweenness."""
    both = nx.Graph(graph)
    hops = [
        [far for far in nx.single_source_shortest_path_length(graph, peer).values() if far]
        for peer in graph
    ]
    closeness = nx.closeness_centrality(graph.reverse(copy=False))
    return {
        "in_degree": [graph.in_degree(peer) for peer in graph],
        "out_degree": [graph.out_degree(peer) for peer in graph],
        "degree": [both.degree(peer) for peer in graph],
        "clustering": [nx.clustering(both, peer) for peer in graph],
        "mean_distance": [sum(far) / len(far) if far else None for far in hops],
        "closeness": [closeness[peer] for peer in graph],
        "eccentricity": [max(far, default=None) for far in hops],
        "reachable_peers": [len(far) for far in hops],
        "component": _smallest(nx.weakly_connected_components(graph)),
        "strong_component": _smallest(nx.strongly_connected_components(graph)),
    }


def _smallest(components: Iterable[set[int]]) -> list[int]:
    names = {peer: min(component) for component in components for peer in component}
    return [names[peer] for peer in range(len(names))]


def betweenness(graph: Graph) -> Sequence[float]:
    """Over ordered pairs, exact."""
    values = nx.betweenness_centrality(graph, normalized=False)
    return [values[peer] for peer in graph]


if __name__ == "__main__":
    run("networkx", history, structure, betweenness)
