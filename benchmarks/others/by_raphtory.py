"""Raphtory: a temporal graph is made once, and viewed in each interval.

It has no closeness, eccentricity, diameter or path length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from raphtory import PersistentGraph, algorithms

from benchmarks.others.loop import Columns, named_by_smallest, run

OPEN = 2**63 - 1


def history(links: pa.Table, peers: int) -> Callable[[int], Any]:
    """Add links where they begin and delete them where they end."""
    graph: Any = PersistentGraph()
    graph.load_edges(links, "valid_from", "src", "dst")
    graph.load_edge_deletions(links.filter(pc.field("valid_to") < OPEN), "valid_to", "src", "dst")
    at: Callable[[int], Any] = graph.at
    return at


def structure(view: Any) -> Columns:
    """Degrees, clustering, components."""
    weak = algorithms.weakly_connected_components(view)
    strong = algorithms.strongly_connected_components(view)
    clustering = algorithms.local_clustering_coefficient_batch(view, view.nodes.id.collect())
    return {
        "in_degree": by_peer(view.nodes.in_degree()),
        "out_degree": by_peer(view.nodes.out_degree()),
        "degree": by_peer(view.nodes.degree()),
        "clustering": [value or 0.0 for value in by_peer(clustering)],
        "component": named_by_smallest(by_peer(weak)),
        "strong_component": named_by_smallest(by_peer(strong)),
    }


def betweenness(view: Any) -> Sequence[float]:
    """Over ordered pairs, exact."""
    return by_peer(algorithms.betweenness_centrality(view, normalized=False))


def by_peer(state: Any) -> list[Any]:
    """The values of a state of nodes, in the peers' order."""
    values = sorted(((node.id, value) for node, value in state.items()), key=itemgetter(0))
    # What an algorithm found is named, though it is one value.
    return [next(iter(v.values())) if isinstance(v, dict) else v for _, v in values]


if __name__ == "__main__":
    run("raphtory", history, structure, betweenness)
