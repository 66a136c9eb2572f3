"""TGLib (temporalgraphlib): temporal distances. It has no metrics of snapshots."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc_csv
import pytglib as tgl

from benchmarks.snapshots.given import Given, run


def reach(given: Given) -> pa.Table:
    """Earliest arrivals. It reads files only, and numbers the peers anew by their order."""
    rows = given.rows.select(["src", "dst", "interval"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "days.tg")
        options = pc_csv.WriteOptions(include_header=False, delimiter=" ")
        pc_csv.write_csv(rows, path, options)
        graph = tgl.load_ordered_edge_list(str(path))
    numbers, end = graph.getNodeMap(), int(rows["interval"][-1].as_py()) + 1
    arrivals = tgl.earliest_arrival_times(graph, numbers[given.source], (0, end))
    found = {peer: arrivals[number] for peer, number in numbers.items() if arrivals[number] <= end}
    return pa.table({"peer": list(found), "arrival": list(found.values())})


if __name__ == "__main__":
    run("temporalgraphlib", {"reachability": (reach,)})
