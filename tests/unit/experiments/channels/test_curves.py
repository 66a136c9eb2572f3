"""GDFR over the update rate, beside what static mappings predict."""

from __future__ import annotations

import pytest

from experiments.channels.curves import RATES, Point, curves, drawn
from experiments.channels.measuring import Case, Row
from simulators.channels.parameters import MAPPINGS

UPDATES = 100_000


def row(case: Case, utal_ms: float | None) -> Row:
    return Row(case, "fifo", utal_ms, None, 12.0, None, 0.8, 2.0, 0.2)


def test_curve_has_the_gdfr_that_its_mapping_leaves_over() -> None:
    """Above its gap, a channel gets TotalP / gap updates per second, and sends 100."""
    case = Case("clustered", "lc", "offline-c", 1, UPDATES)
    layout = case.layout()
    assert layout.carried is not None
    total_p = layout.probability @ (layout.carried & layout.wants.any(axis=0)[:, None])
    utal_ms = 10 * float(total_p.max())
    points = curves([row(case, utal_ms)], 1)
    assert [point.share for point in points] == list(RATES)
    for point in points:
        told = sum(max(0.0, p * point.per_second - 100) for p in total_p.tolist())
        assert point.per_second == pytest.approx(1000 * point.share / utal_ms)
        spread = point.per_second / UPDATES**0.5  # of the rate of updates that were drawn
        assert point.gdfr == pytest.approx(told, rel=0.02, abs=2 * spread if told else 0.1), point
        assert point.overload == pytest.approx(point.gdfr / 100)


def test_curves_are_of_first_seeds_that_lift_off() -> None:
    first, second, calm = (
        Case("uniform", "rr", mapping, seed, 2_000)
        for mapping, seed in [("c", 3), ("c", 4), ("cd", 3)]
    )
    points = curves([row(first, 4.0), row(second, 5.0), row(calm, None)], 1)
    assert {point.case for point in points} == {first}
    assert len(points) == len(RATES)


def test_figure_has_a_line_for_each_mapping_and_marks_where_it_lifts_off() -> None:
    points = [
        Point(Case("uniform", assignment, mapping, 1, 100), share, 250 * share, 3.0, 0.03)
        for assignment in ("random", "rr", "pc", "lc")
        for mapping in MAPPINGS
        for share in (0.8, 1.0, 1.2)
    ]
    figure = drawn(points, "uniform")
    assert len(figure.axes) == 4
    for panel in figure.axes:
        lines, marks = panel.lines[::2], panel.lines[1::2]
        assert [line.get_label() for line in lines] == list(MAPPINGS)
        assert all(list(line.get_xdata()) == [200, 250, 300] for line in lines)
        assert all(list(mark.get_xdata()) == [250] for mark in marks)
    assert all(len(line.get_xdata()) == 0 for line in drawn(points, "clustered").axes[0].lines)
