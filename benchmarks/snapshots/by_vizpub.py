"""vizpub as a user calls it: a run is made from the events, and asked. Spark starts in it."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import networkx as nx
import pyarrow as pa

import vizpub
from benchmarks.snapshots.given import COLUMNS, COMPONENTS, NO_PATH, Given, run


def measure(given: Given) -> pa.Table:
    """All metrics of all days: it knows no fewer."""
    with TemporaryDirectory() as folder:
        run = vizpub.ingest_files(given.events, run="days", workspace=folder, interval=given.step)
        rows = run.metrics("peers", COLUMNS).to_arrow()
        return _name(run, rows.select(["interval", "peer", *COLUMNS]))


def _name(run: vizpub.Run, rows: pa.Table) -> pa.Table:
    """The numbers of peers as the events name them: for the comparison of answers only."""
    names = pa.array([int(name) for name in run.peers])
    for column in {"peer", *COMPONENTS} & {*rows.column_names}:
        place = rows.column_names.index(column)
        rows = rows.set_column(place, column, names.take(rows[column].combine_chunks()))
    return rows


def find_betweenness(given: Given) -> pa.Table:
    """Exact, within the usual bound of work."""
    with TemporaryDirectory() as folder:
        run = vizpub.ingest_files(given.events, run="all", workspace=folder, interval="10000d")
        rows = _name(run, run.metrics("peers", ["betweenness_normalized"]).to_arrow())
    return rows.select(["peer", "betweenness_normalized"]).rename_columns(["peer", "betweenness"])


def _ingest_days(given: Given, folder: str) -> vizpub.Run:
    return vizpub.ingest_files(
        given.events,
        run="days",
        workspace=folder,
        interval=given.step,
        betweenness=False,
        max_edge_visits=1,  # distances are not asked for: the smallest sample will do
    )


def answer_as_of(given: Given) -> pa.Table:
    """The links of a day, and a shortest path, from the files of a run."""
    answers = []
    with TemporaryDirectory() as folder:
        run = _ingest_days(given, folder)
        for day, src, dst in given.queries:
            graph = run.overlay(run.clock.first + day).to_networkx()
            has_path = nx.has_path(graph, str(src), str(dst))
            hops = nx.shortest_path_length(graph, str(src), str(dst)) if has_path else NO_PATH
            answers.append({"links": graph.number_of_edges(), "hops": hops})
    return pa.Table.from_pylist(answers)


def reach(given: Given) -> pa.Table:
    """Earliest arrivals by a loop over the links of each day: without Neo4j, it has no call."""
    with TemporaryDirectory() as folder:
        run = _ingest_days(given, folder)
        arrivals = {str(given.source): 0}
        for day in range(run.clock.intervals):
            links = run.overlay(run.clock.first + day)
            for src, dst in zip(
                links["src_name"].to_pylist(), links["dst_name"].to_pylist(), strict=True
            ):
                if arrivals.get(src, day + 1) <= day:
                    arrivals.setdefault(dst, day + 1)
    return pa.table({"peer": [*map(int, arrivals)], "arrival": list(arrivals.values())})


if __name__ == "__main__":
    run(
        "vizpub",
        {
            "metrics": (measure,),
            "betweenness": (find_betweenness,),
            "as-of": (answer_as_of,),
            "reachability": (reach,),
        },
    )
