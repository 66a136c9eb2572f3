"""A whole ingest whose structure is sampled, and whether the estimates keep their stated errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.markdown import number, table
from benchmarks.parts import KEYS, Bench, check_links, check_messages
from benchmarks.watched import Json
from vizpub.questions.run import Run

ESTIMATED = (
    ("peers", "betweenness"),
    ("peers", "mean_distance"),
    ("overlay", "average_path_length"),
    ("topics", "topic_average_path_length"),
)
"""Tables and metrics that have a standard error, `<metric>_error`."""
_FIRST = 0
"""The interval that is measured again."""


def ingest_sampled(bench: Bench) -> Json:
    """A whole ingest, with a two-hundredth of the link visits that are allowed by default."""
    workspace = bench.folder("ingest-sampled")
    outcome = bench.program("ingested", workspace, "sampled", "new", bench.inputs.reports)
    run = Run.open(workspace, "benchmark")
    check_links(bench, run)
    check_messages(bench.size, run.table("metrics/messages"))
    outcome["estimates"] = {}
    better = bench.reference(1)
    for name, metric in ESTIMATED:
        rows = run.table(f"metrics/{name}")
        rows = rows.filter(pc.equal(rows["interval"], _FIRST))
        outcome["estimates"][metric] = deviations(getattr(better, name), rows, KEYS[name], metric)
    return outcome


def deviations(ours: pa.Table, theirs: pa.Table, keys: tuple[str, ...], metric: str) -> Json:
    """How far the estimates are from those of the kernels, in standard errors of the difference:
    their number, their stated error as a share of the value, and the shares within one and two.
    An exact metric has no values."""
    order = [(key, "ascending") for key in keys]
    (better, its_error), (value, stated) = (
        [rows[name].to_numpy().astype(float) for name in (metric, f"{metric}_error")]
        for rows in (ours.sort_by(order), theirs.sort_by(order))
    )
    sampled = stated > 0
    if not sampled.any():
        return {"values": 0}
    off = np.abs(value - better)[sampled] / np.hypot(stated, its_error)[sampled]
    return {
        "values": len(off),
        "error": float(stated[sampled].sum() / value[sampled].sum()),
        "within": [float(np.mean(off <= errors)) for errors in (1, 2)],
    }


def section(parts: Mapping[str, Json]) -> str:
    """The estimates as Markdown."""
    if "ingest-sampled" not in parts:
        return ""
    header = ["metric of an interval", "estimates", "stated error, share of the value"]
    header += ["within one error", "within two"]
    rows = [
        [metric, f"{found['values']:,}", number(found["error"]), *map(number, found["within"])]
        for metric, found in parts["ingest-sampled"]["estimates"].items()
        if found["values"]
    ]
    if not rows:
        return ""
    return (
        "### Estimates\n\n"
        "Distances are compared with all distances of the interval, betweenness with the estimates "
        "of two hundred times as many link visits. Normally distributed errors would be within one "
        f"standard error in .68 of the cases, and within two in .95.\n\n{table(header, rows)}"
    )
