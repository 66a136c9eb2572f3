"""What a right answer is, by other means than the programs; and how far an answer is from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.markdown import number
from benchmarks.snapshots.given import COMPONENTS, NO_PATH, Given

_KEYS = ("interval", "peer")
DERIVED = {
    "diameter": {"eccentricity"},
    "average_path_length": {"mean_distance", "reachable_peers"},
    "weak_components": {"component"},
    "strong_components": {"strong_component"},
}
"""Metrics of a snapshot that follow from those of its peers."""
_CLOSE = 1e-9


def expect_as_of(given: Given) -> pa.Table:
    """By networkx."""
    rows = []
    for day, src, dst in given.queries:
        graph = nx.DiGraph(zip(*given.links_at(day), strict=True))
        hops = nx.single_source_shortest_path_length(graph, src).get(dst, NO_PATH)
        rows.append({"links": graph.number_of_edges(), "hops": hops})
    return pa.Table.from_pylist(rows)


def expect_arrivals(given: Given) -> pa.Table:
    """By a loop over the links, day by day."""
    arrivals = {given.source: 0}
    for day, src, dst in zip(*(column.to_pylist() for column in given.rows.columns), strict=True):
        if arrivals.get(src, day + 1) <= day:
            arrivals.setdefault(dst, day + 1)
    return pa.table({"peer": [*arrivals], "arrival": [*arrivals.values()]})


EXPECTED: Mapping[str, Callable[[Given], pa.Table]] = {
    "as-of": expect_as_of,
    "reachability": expect_arrivals,
}
"""By task. In the other tasks, answers are compared with igraph's."""


def count_metrics(answer: pa.Table) -> int:
    """How many of the fifteen metrics an answer has."""
    own = {*answer.column_names} - {*_KEYS}
    return len(own) + sum(needed <= own for needed in DERIVED.values())


def describe_difference(expected: pa.Table, answer: pa.Table) -> str:
    """`equal`, or what differs: rows, and columns with the largest difference."""
    keys = [key for key in _KEYS if key in answer.column_names]
    if "interval" in keys:
        expected, answer = _of_shared_intervals(expected, answer)
    note = ""
    if len(expected) != len(answer):
        note = f"{len(answer):,} rows, not {len(expected):,}; otherwise "
        expected, answer = (
            one.join(other.select(keys), keys, join_type="left semi")
            for one, other in ((expected, answer), (answer, expected))
        )
    expected, answer = map(_rename_components, (expected, answer))
    order = [(key, "ascending") for key in keys]
    if keys:
        expected, answer = expected.sort_by(order), answer.sort_by(order)
    apart = {}
    for name in answer.column_names:
        ours, theirs = (
            np.nan_to_num(rows[name].cast(pa.float64(), safe=False).to_numpy())
            for rows in (expected, answer)
        )
        if not np.allclose(ours, theirs, rtol=_CLOSE, atol=_CLOSE):
            apart[name] = float(np.abs(ours - theirs).max())
    shown = ", ".join(f"{name} by up to {number(gap)}" for name, gap in apart.items())
    return note + (shown or "equal")


def _rename_components(rows: pa.Table) -> pa.Table:
    """Call each component by its smallest peer: programs choose different ones."""
    for name in {*COMPONENTS} & {*rows.column_names}:
        of = ["interval", name]
        smallest = rows.group_by(of).aggregate([("peer", "min")])
        rows = rows.join(smallest, of).drop_columns(name).rename_columns({"peer_min": name})
    return rows


def _of_shared_intervals(*tables: pa.Table) -> list[pa.Table]:
    tables = tuple(
        table.set_column(
            table.column_names.index("interval"), "interval", table["interval"].cast(pa.int64())
        )
        for table in tables
    )
    for other in tables:
        inside = pc.unique(other["interval"])
        tables = tuple(table.filter(pc.is_in(table["interval"], inside)) for table in tables)
    return [*tables]
