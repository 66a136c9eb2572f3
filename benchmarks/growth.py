"""How the cost of the structure stage grows with the intervals and with the peers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.parts import Bench
from benchmarks.sizes import Size
from benchmarks.watched import Json
from vizpub.analytics.figures.canvas import panels, save
from vizpub.analytics.figures.styles import PALETTE, figure_style

AXES = ("intervals", "peers")
FACTORS = (0.25, 0.5, 1, 2)
"""Factors on the size's own number of intervals, and of peers."""
COSTS = {
    "seconds": "s",
    "cpu": "processor s",
    "peak_mb": "peak MB",
    "worker_mb": "MB of a Python worker",
}
_DRAWN = ("seconds", "worker_mb")


def growth(bench: Bench) -> Json:
    """The stage without betweenness in Spark's local mode, a session for each size."""
    points: dict[str, Json] = {}
    outcome: Json = {axis: [] for axis in AXES}
    for axis in AXES:
        for factor in FACTORS:
            number = round(getattr(bench.size, axis) * factor)
            size = replace(bench.size, **{axis: number})
            if size.key not in points:
                points[size.key] = _measure(Bench(size))
            outcome[axis].append({axis: number, "factor": factor, **points[size.key]})
    return outcome


def _measure(bench: Bench) -> Json:
    out = bench.folder("growth")
    outcome = bench.program(
        "structure", bench.inputs.versions, bench.size.intervals, out, "structure"
    )
    stage = outcome["steps"]["structure"]
    return {
        "seconds": stage["least"],
        "cpu": stage["cpu_least"],
        "peak_mb": outcome["peak_mb"],
        "worker_mb": outcome["worker_mb"],
    }


def exponent(points: Sequence[Json], axis: str, cost: str) -> float:
    """The b of cost = a · size^b, by least squares on logarithms."""
    x, y = ([math.log(point[name]) for point in points] for name in (axis, cost))
    return float(np.polyfit(x, y, 1)[0])


def draw(size: Size, outcome: Json, out: Path) -> None:
    """Seconds and memory over the factors of each axis, as PNG."""
    with figure_style():
        figure, rows = panels(len(_DRAWN), f"Structure of {size.name} without betweenness")
        for panel, cost in zip(rows, _DRAWN, strict=True):
            for axis, colour in zip(AXES, PALETTE, strict=False):
                points = outcome[axis]
                values = [point[cost] for point in points]
                label = f"{axis}: exponent {exponent(points, axis, cost):.2f}"
                panel.plot(FACTORS, values, "o-", color=colour, label=label)
            panel.set_ylabel(COSTS[cost])
            panel.set_xscale("log", base=2)
            if cost.endswith("mb"):  # hardly grows: on a scale of logarithms there is no number
                panel.set_ylim(0, 1.1 * panel.dataLim.ymax)
            else:
                panel.set_yscale("log", base=2)
            panel.set_xticks(FACTORS, [f"{factor:g}" for factor in FACTORS])
            panel.legend()
        rows[-1].set_xlabel(f"times {size.intervals:,} intervals, or {size.peers:,} peers")
    save(figure, out, "png")
