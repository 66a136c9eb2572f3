"""GDFR over the update rate: flat, then it lifts off (A.1). A curve for every combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vizpub.analytics.figures.canvas import panels
from vizpub.analytics.figures.styles import PALETTE, figure_style
from vizpub.experiments.channels.measuring import ASSIGNMENTS, Case, CaseResult
from vizpub.experiments.workers import map_in_processes
from vizpub.simulators.channels.liftoff import curve, overload
from vizpub.simulators.channels.parameters import MAPPINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BELOW, ABOVE = 0.8, 1.2
RATES = (0.2, 0.4, 0.6, BELOW, 0.9, 0.95, 1.0, 1.05, 1.1, ABOVE, 1.3, 1.4, 1.6)
"""Update rates, as shares of that at which the combination lifts off."""


@dataclass(frozen=True)
class CurvePoint:
    """One update rate of a case."""

    case: Case
    share: float
    """Of the rate at which the case lifts off."""
    per_second: float
    """Page updates."""
    gdfr: float
    """Copies left over per second."""
    overload: float
    """Copies left over per time of a transmission."""


def measure_curves(rows: Sequence[CaseResult], processes: int) -> list[CurvePoint]:
    """The points of every combination that lifts off, with its first seed; FIFO, as all schedulers
    have sent as many copies at any time.
    """
    first: dict[tuple[str, str, str], CaseResult] = {}
    for row in rows:
        first.setdefault(row.case.combination, row)
    ends = [(row.case, row.utal_ms) for row in first.values() if row.utal_ms]
    curves = map_in_processes(_measure_curve, ends, processes)
    return [point for points in curves for point in points]


def _measure_curve(case_and_utal: tuple[Case, float]) -> list[CurvePoint]:
    case, utal_ms = case_and_utal
    layout = case.layout().with_scheduler("fifo")
    runs = curve(layout, [1000 * utal_ms / share for share in RATES], case.updates)
    return [
        CurvePoint(case, share, 1000 * share / utal_ms, run.gdfr or 0.0, overload(run))
        for share, run in zip(RATES, runs, strict=True)
    ]


def draw_curves(points: Sequence[CurvePoint], profile: str) -> Figure:
    """GDFR over the update rate for clients of a profile: a panel for each assignment, a line for
    each mapping, and a mark at the rate at which it lifts off.
    """
    with figure_style():
        figure, rows = panels(len(ASSIGNMENTS), f"GDFR over the update rate, profiles {profile}")
        for panel, assignment in zip(rows, ASSIGNMENTS, strict=True):
            for mapping, colour in zip(MAPPINGS, PALETTE, strict=False):
                combination = (profile, assignment, mapping)
                line = [p for p in points if p.case.combination == combination]
                x, y = [p.per_second for p in line], [p.gdfr for p in line]
                panel.plot(x, y, ".-", color=colour, label=mapping, ms=3, lw=1)
                liftoff_rates = [p.per_second for p in line if p.share == 1]
                panel.plot(liftoff_rates, [0] * len(liftoff_rates), "|", color=colour, ms=12)
            panel.set(ylabel="copies left over per second", title=f"assignment {assignment}")
        right = max(panel.get_xlim()[1] for panel in rows)
        for panel in rows:
            panel.set_xlim(0, right)
        rows[0].legend()
        rows[-1].set_xlabel("page updates per second")
    return figure
