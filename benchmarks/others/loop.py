"""The loop over intervals that a program without intervals of its own needs.

    python -m benchmarks.others.by_igraph TOLD.json MEASURED.parquet VERSIONS PEERS INTERVAL...

VERSIONS is a folder with links.parquet (src, dst, valid_from, valid_to), PEERS how many there are.
What is measured of each peer gets the names and meanings of vizpub's table metrics/peers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.steps import Steps

Columns = Mapping[str, Sequence[Any]]
Ends = Sequence[int] | np.ndarray
Links = tuple[Ends, Ends]
"""Sources and targets."""


def links_at(links: pa.Table, interval: int) -> Links:
    """The links of the interval."""
    inside = (pc.field("valid_from") <= interval) & (pc.field("valid_to") > interval)
    rows = links.filter(inside)
    return rows["src"].to_pylist(), rows["dst"].to_pylist()


def run(
    package: str,
    history: Callable[[pa.Table, int], Callable[[int], Any]],
    structure: Callable[[Any], Columns],
    betweenness: Callable[[Any], Sequence[float]],
) -> None:
    """Measure as the command line says. `history` takes all links and the number of peers, and
    gives the graph of an interval; the other two give a value per peer, in the peers' order.
    """
    record, measured, versions, peers, *intervals = sys.argv[1:]
    steps, parts = Steps(), []
    links = pq.read_table(Path(versions, "links.parquet"))
    with steps.step("load"):
        graph_at = history(links, int(peers))
    for interval in map(int, intervals):
        with steps.step("structure"):
            graph = graph_at(interval)
            columns = dict(structure(graph))
        with steps.step("betweenness"):
            columns["betweenness"] = betweenness(graph)
        key = {"interval": [interval] * int(peers), "peer": range(int(peers))}
        parts.append(pa.table({**key, **columns}))
    pq.write_table(pa.concat_tables(parts), measured)
    steps.write(Path(record), package, intervals=len(intervals))


def named_by_smallest(membership: Sequence[int]) -> list[int]:
    """The smallest peer of each peer's component, from any numbers for components."""
    smallest: dict[int, int] = {}
    return [smallest.setdefault(component, peer) for peer, component in enumerate(membership)]
