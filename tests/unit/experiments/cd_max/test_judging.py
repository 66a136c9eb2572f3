"""The paper's tables beside results that are made up, and their intervals beside scipy's."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy.stats import norm

from vizpub.experiments.cd_max.judging import (
    OverlayResults,
    compare_cells,
    judge_claims,
    normal_half,
    read_tables,
)
from vizpub.experiments.cd_max.measuring import OverlayCase, OverlayMeasures


def row(
    world: OverlayCase, algorithm: str, average: float, maximum: int, seconds: float
) -> OverlayMeasures:
    return OverlayMeasures(world, algorithm, average, maximum, seconds, 1.0, 1)


def printed_as_ours() -> OverlayResults:
    """What the paper prints, as if it were ours."""
    found: dict[tuple[object, ...], dict[str, float]] = {}
    for one in read_tables():
        found.setdefault((one.axis, one.x, one.algorithm), {})[one.measure] = one.corrected_value
    return OverlayResults(
        [
            row(OverlayCase(axis, x, "uniform", 1), algorithm, of.get("average", 1.0),
                round(of.get("maximum", 1)), of.get("seconds", 1.0))
            for (axis, x, algorithm), of in found.items()
        ]
    )  # fmt: skip


def test_tables_have_all_rows_and_their_exclusions() -> None:
    found = read_tables()
    assert len(found) == 245
    excluded = {(one.table, one.x, one.algorithm) for one in found if one.exclusion}
    averages = {(t, one.x, "cd-max") for t in (5, 7, 9) for one in found if one.table == t}
    of_5000 = {(one.table, 5000, one.algorithm) for one in found if one.x == 5000}
    copies = {(table, x, "cd-max-ref") for table in (9, 10) for x in (30, 35)}
    assert excluded == averages | of_5000 | copies


def test_doubled_values_are_compared_at_half() -> None:
    (one,) = (o for o in read_tables() if (o.table, o.x, o.algorithm) == (9, 15, "gm"))
    assert (one.value, one.corrected_value) == (12.86, 6.43)
    (kept,) = (o for o in read_tables() if (o.table, o.x, o.algorithm) == (9, 15, "cd-max-ref"))
    assert (kept.value, kept.corrected_value) == (27.93, 27.93)


def test_cell_is_met_within_its_tolerance_only() -> None:
    world = OverlayCase("nodes", 200, "uniform", 1)
    for average, outcome in ((6.62 * 1.029, "met"), (6.62 * 1.031, "not met")):
        (cell,) = (
            cell
            for cell in compare_cells(OverlayResults([row(world, "gm", average, 20, 1.0)]))
            if cell.printed.table == 5
        )
        assert cell.outcome == outcome


def test_paper_meets_its_own_tables_and_growth() -> None:
    results = printed_as_ours()
    assert {cell.outcome for cell in compare_cells(results)} == {"met", "excluded", "shown"}
    growth = {one.what: one.ours for one in judge_claims(results) if one.what.startswith("Time of")}
    growths = [float(ours) for ours in growth.values()]
    assert growths == pytest.approx([2.96, 1.93, 2.05, 1.94, 2.46], abs=0.005)
    said = {one.what: one.outcome for one in judge_claims(results)}
    assert said["cd-max has 2.65 times the edges of gm at 1,000 nodes"] == "met"
    assert said["cd-max-ref has 3.66 times the edges of gm at 1,000 nodes"] == "met"
    assert said["cd-max is the fastest at 35 subscriptions"] == "met"


def test_interval_is_that_of_the_formula_in_the_paper() -> None:
    values = [13.2, 14.1, 12.9, 13.8]
    half = norm.ppf(1 - 0.05 / 2) * np.std(values, ddof=1) / sqrt(4)
    assert normal_half(values) == pytest.approx(half)
    assert normal_half([1.0]) is None
