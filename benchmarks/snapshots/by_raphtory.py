"""Raphtory: a temporal graph is made once, and viewed at each day.

It has no closeness, eccentricity, diameter or path length.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from raphtory import Graph, algorithms

from benchmarks.others.by_raphtory import betweenness as exact
from benchmarks.others.by_raphtory import by_peer, structure
from benchmarks.snapshots.given import NO_PATH, Given, run


def load(given: Given) -> Any:
    """A link lasts for a day: it is an event, and a view is the window of its day."""
    graph: Any = Graph()
    graph.load_edges(given.rows, "interval", "src", "dst")
    return graph


def measure(given: Given) -> pa.Table:
    """What it has, of the peers with links on the day: it does not know who is present."""
    graph, parts = load(given), []
    for day in given.intervals:
        view = graph.window(day, day + 1)
        peers = sorted(view.nodes.id.collect())
        columns = {**structure(view), "betweenness": exact(view)}
        for name in ("component", "strong_component"):
            columns[name] = [peers[place] for place in columns[name]]
        parts.append(pa.table({"interval": [day] * len(peers), "peer": peers, **columns}))
    return pa.concat_tables(parts)


def find_betweenness(given: Given) -> pa.Table:
    """Exact."""
    graph = load(given)
    values = by_peer(algorithms.betweenness_centrality(graph, normalized=True))
    return pa.table({"peer": sorted(graph.nodes.id.collect()), "betweenness": values})


def answer_as_of(given: Given) -> pa.Table:
    """The links of a day, and the steps of a search: its own shortest paths fail where a graph has
    more than 256 nodes (0.17, "Cannot unify types").
    """
    graph, answers = load(given), []
    for day, src, dst in given.queries:
        view = graph.window(day, day + 1)
        seen, last, hops = {src}, {src}, 0
        while last and dst not in seen:
            near = (view.node(peer).out_neighbours.id.collect() for peer in last)
            last = {peer for peers in near for peer in peers} - seen
            seen, hops = seen | last, hops + 1
        hops = hops if dst in seen else NO_PATH
        answers.append({"links": view.count_edges(), "hops": hops})
    return pa.Table.from_pylist(answers)


def reach(given: Given) -> pa.Table:
    """Earliest arrivals: the first time in the history of each node.

    The call also passes several links of a day, which task E excludes (README.md).
    """
    graph, days = load(given), len(given.rows)
    history = algorithms.temporally_reachable_nodes(graph, days, -1, [given.source], None)
    # What is found is a value with a name, and the steps of a history have numbers for names.
    steps = {node.id: found["reachable_nodes"] for node, found in history.items()}
    first = {peer: min(step["0"] for step in of) + 1 for peer, of in steps.items() if of}
    arrivals = {**first, given.source: 0}
    return pa.table({"peer": list(arrivals), "arrival": list(arrivals.values())})


if __name__ == "__main__":
    run(
        "raphtory",
        {
            "metrics": (measure, load, structure, exact, by_peer),
            "betweenness": (find_betweenness, load, by_peer),
            "as-of": (answer_as_of, load),
            "reachability": (reach, load),
        },
    )
