"""GDFR over the update rate, beside what static mappings predict."""

from __future__ import annotations

import numpy as np
import pytest

from vizpub.experiments.channels.curves import RATES, CurvePoint, draw_curves, measure_curves
from vizpub.experiments.channels.measuring import Case, CaseResult
from vizpub.simulators.channels.parameters import MAPPINGS

UPDATES = 60_000
CASE = Case("clustered", "lc", "offline-c", 1, UPDATES)
FIRST, SECOND, CALM = (
    Case("uniform", "rr", mapping, seed, 2_000) for mapping, seed in [("c", 3), ("c", 4), ("cd", 3)]
)


def row(case: Case, utal_ms: float | None) -> CaseResult:
    return CaseResult(case, "fifo", utal_ms, None, 12.0, None, 0.8, 2.0, 0.2)


@pytest.fixture(scope="module")
def total_p() -> list[float]:
    """Of each channel of CASE."""
    layout = CASE.layout()
    assert layout.static_mapping is not None
    share: np.ndarray = layout.probability @ (
        layout.static_mapping & layout.wants.any(axis=0)[:, None]
    )
    return [float(one) for one in share]


@pytest.fixture(scope="module")
def found(total_p: list[float]) -> list[CurvePoint]:
    """All curves at once: a call starts a process, which takes longer than to count."""
    rows = [row(CASE, 10 * max(total_p)), row(FIRST, 4.0), row(SECOND, 5.0), row(CALM, None)]
    return measure_curves(rows, 1)


def test_curve_has_the_gdfr_that_its_mapping_leaves_over(
    found: list[CurvePoint], total_p: list[float]
) -> None:
    """Above its gap, a channel gets TotalP / gap updates per second, and sends 100."""
    utal_ms = 10 * max(total_p)
    points = [point for point in found if point.case == CASE]
    assert [point.share for point in points] == list(RATES)
    for point in points:
        told = sum(max(0.0, p * point.per_second - 100) for p in total_p)
        assert point.per_second == pytest.approx(1000 * point.share / utal_ms)
        spread = point.per_second / UPDATES**0.5  # of the rate of updates that were drawn
        assert point.gdfr == pytest.approx(told, rel=0.02, abs=2 * spread if told else 0.1), point
        assert point.overload == pytest.approx(point.gdfr / 100)


def test_curves_are_of_first_seeds_that_lift_off(found: list[CurvePoint]) -> None:
    assert {point.case for point in found} == {CASE, FIRST}
    assert len(found) == 2 * len(RATES)


def test_figure_has_a_line_for_each_mapping_and_marks_where_it_lifts_off() -> None:
    points = [
        CurvePoint(Case("uniform", assignment, mapping, 1, 100), share, 250 * share, 3.0, 0.03)
        for assignment in ("random", "rr", "pc", "lc")
        for mapping in MAPPINGS
        for share in (0.8, 1.0, 1.2)
    ]
    figure = draw_curves(points, "uniform")
    assert len(figure.axes) == 4
    for panel in figure.axes:
        lines, marks = panel.lines[::2], panel.lines[1::2]
        assert [line.get_label() for line in lines] == list(MAPPINGS)
        assert all(list(line.get_xdata()) == [200, 250, 300] for line in lines)
        assert all(list(mark.get_xdata()) == [250] for mark in marks)
    assert all(
        len(line.get_xdata()) == 0 for line in draw_curves(points, "clustered").axes[0].lines
    )
