"""igraph. It has no time: the graph of a day is made from the day's rows."""

from __future__ import annotations

import igraph
import numpy as np
import pyarrow as pa

from benchmarks.others.by_igraph import betweenness, make_graph, structure
from benchmarks.snapshots.given import NO_PATH, Given, measure_by, run


def find_betweenness(given: Given) -> pa.Table:
    """Exact."""
    whole = given.whole
    n = len(whole.peers)
    values = betweenness(make_graph(whole.links, n))
    return pa.table({"peer": whole.peers, "betweenness": np.divide(values, (n - 1) * (n - 2))})


def answer_as_of(given: Given) -> pa.Table:
    """The links of a day, and a shortest path."""
    answers = []
    for day, src, dst in given.queries:
        ends = given.links_at(day)
        graph = igraph.Graph.TupleList(zip(*ends, strict=True), directed=True)
        names = graph.vs["name"]
        (path,) = graph.get_shortest_paths(names.index(src), names.index(dst), output="epath")
        hops = len(path) if path or src == dst else NO_PATH
        answers.append({"links": graph.ecount(), "hops": hops})
    return pa.Table.from_pylist(answers)


if __name__ == "__main__":
    run(
        "igraph",
        {
            "metrics": measure_by(make_graph, structure, betweenness),
            "betweenness": (find_betweenness, make_graph, betweenness),
            "as-of": (answer_as_of,),
        },
    )
