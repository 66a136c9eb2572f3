"""NetworKit, one interval at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import networkit as nk
import numpy as np
import pyarrow as pa
from scipy.sparse import coo_matrix

from benchmarks.others.loop import Columns, Links, links_at, named_by_smallest, run


def history(links: pa.Table, peers: int) -> Callable[[int], nk.Graph]:
    """Build each interval's graph from its links."""
    return lambda interval: make_graph(links_at(links, interval), peers)


def make_graph(links: Links, peers: int) -> nk.Graph:
    """Build the graph of so many peers."""
    ones = np.ones(len(links[0]))
    matrix = coo_matrix((ones, links), shape=(peers, peers))
    return nk.GraphFromCoo(matrix, n=peers, weighted=False, directed=True)


def structure(graph: nk.Graph) -> Columns:
    """All metrics but betweenness."""
    both = nk.graphtools.toUndirected(graph)
    both.removeMultiEdges()
    distances = nk.distance.APSP(graph).run().getDistances(asarray=True)
    hops = np.where(distances < graph.numberOfNodes(), distances, 0)  # farther is unreachable
    reach, total = (hops > 0).sum(axis=1), hops.sum(axis=1)
    with np.errstate(invalid="ignore"):
        mean_distance = np.where(reach > 0, total / reach, np.nan)
    weak, strong = (
        find(graph).run().getPartition().getVector()
        for find in (
            nk.components.WeaklyConnectedComponents,
            nk.components.StronglyConnectedComponents,
        )
    )
    return {
        "in_degree": [graph.degreeIn(peer) for peer in graph.iterNodes()],
        "out_degree": [graph.degreeOut(peer) for peer in graph.iterNodes()],
        "degree": [both.degree(peer) for peer in both.iterNodes()],
        "clustering": nk.centrality.LocalClusteringCoefficient(both).run().scores(),
        "mean_distance": mean_distance,
        "closeness": np.nan_to_num(reach / (len(hops) - 1) / mean_distance),
        "eccentricity": hops.max(axis=1),
        "reachable_peers": reach,
        "component": named_by_smallest(weak),
        "strong_component": named_by_smallest(strong),
    }


def betweenness(graph: nk.Graph) -> Sequence[float]:
    """Over ordered pairs, exact."""
    values: Sequence[float] = nk.centrality.Betweenness(graph).run().scores()
    return values


if __name__ == "__main__":
    run("networkit", history, structure, betweenness)
