"""NetworKit. It has no time: the graph of a day is made from the day's rows."""

from __future__ import annotations

import networkit as nk
import numpy as np
import pyarrow as pa

from benchmarks.others.by_networkit import betweenness, make_graph, structure
from benchmarks.snapshots.given import NO_PATH, Given, make_snapshot, measure_by, run


def find_betweenness(given: Given) -> pa.Table:
    """Exact: what samples with a bound of the error (KADABRA, RK) takes no directed graphs."""
    whole = given.whole
    graph = make_graph(whole.links, len(whole.peers))
    values = nk.centrality.Betweenness(graph, normalized=True).run().scores()
    return pa.table({"peer": whole.peers, "betweenness": values})


def answer_as_of(given: Given) -> pa.Table:
    """The links of a day, and a shortest path."""
    answers = []
    for day, src, dst in given.queries:
        ends = given.links_at(day)
        snapshot = make_snapshot(day, np.union1d(*ends), ends)
        graph = make_graph(snapshot.links, len(snapshot.peers))
        source, target = np.searchsorted(snapshot.peers, [src, dst])
        distance = nk.distance.BFS(graph, source, False).run().distance(target)
        hops = distance if distance < len(snapshot.peers) else NO_PATH
        answers.append({"links": graph.numberOfEdges(), "hops": int(hops)})
    return pa.Table.from_pylist(answers)


if __name__ == "__main__":
    run(
        "networkit",
        {
            "metrics": measure_by(make_graph, structure, betweenness),
            "betweenness": (find_betweenness, make_graph),
            "as-of": (answer_as_of, make_graph),
        },
    )
