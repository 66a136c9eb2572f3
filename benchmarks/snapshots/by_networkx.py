"""networkx. It has no time: the graph of a day is made from the day's rows."""

from __future__ import annotations

import networkx as nx
import pyarrow as pa

from benchmarks.others.by_networkx import betweenness, make_graph, structure
from benchmarks.snapshots.given import NO_PATH, Given, measure_by, run


def find_betweenness(given: Given) -> pa.Table:
    """Exact."""
    src, dst = given.whole.links
    values = nx.betweenness_centrality(nx.DiGraph(zip(src, dst, strict=True)))
    peers = [given.whole.peers[place] for place in values]
    return pa.table({"peer": peers, "betweenness": list(values.values())})


def answer_as_of(given: Given) -> pa.Table:
    """The links of a day, and a shortest path."""
    answers = []
    for day, src, dst in given.queries:
        graph = nx.DiGraph(zip(*given.links_at(day), strict=True))
        has_path = nx.has_path(graph, src, dst)
        hops = nx.shortest_path_length(graph, src, dst) if has_path else NO_PATH
        answers.append({"links": graph.number_of_edges(), "hops": hops})
    return pa.Table.from_pylist(answers)


if __name__ == "__main__":
    run(
        "networkx",
        {
            "metrics": measure_by(make_graph, structure, betweenness),
            "betweenness": (find_betweenness,),
            "as-of": (answer_as_of,),
        },
    )
