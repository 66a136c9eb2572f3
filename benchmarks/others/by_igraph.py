"""igraph, one interval at a time. igraph is under the GPL: it runs in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import igraph
import numpy as np
import pyarrow as pa

from benchmarks.others.loop import Columns, Links, links_at, named_by_smallest, run


def history(links: pa.Table, peers: int) -> Callable[[int], igraph.Graph]:
    """Build each interval's graph from its links."""
    return lambda interval: make_graph(links_at(links, interval), peers)


def make_graph(links: Links, peers: int) -> igraph.Graph:
    """Build the graph of so many peers."""
    return igraph.Graph(n=peers, edges=np.column_stack(links), directed=True)


def structure(graph: igraph.Graph) -> Columns:
    """All metrics but betweenness."""
    both = graph.as_undirected(mode="collapse")
    hops = np.array(graph.distances(mode="out"), float)
    np.fill_diagonal(hops, np.inf)
    reached = np.isfinite(hops)
    hops[~reached] = 0
    reach, total = reached.sum(axis=1), hops.sum(axis=1)
    with np.errstate(invalid="ignore"):
        mean_distance = np.where(reach > 0, total / reach, np.nan)
    return {
        "in_degree": graph.degree(mode="in"),
        "out_degree": graph.degree(mode="out"),
        "degree": both.degree(),
        "clustering": both.transitivity_local_undirected(mode="zero"),
        "mean_distance": mean_distance,
        "closeness": np.nan_to_num(reach / (len(hops) - 1) / mean_distance),
        "eccentricity": hops.max(axis=1),
        "reachable_peers": reach,
        "component": named_by_smallest(graph.components(mode="weak").membership),
        "strong_component": named_by_smallest(graph.components(mode="strong").membership),
    }


def betweenness(graph: igraph.Graph) -> Sequence[float]:
    """Over ordered pairs, exact."""
    values: Sequence[float] = graph.betweenness(directed=True)
    return values


if __name__ == "__main__":
    run("igraph", history, structure, betweenness)
