"""Claims about channels, judged on rows written by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vizpub.experiments.channels.curves import ABOVE, BELOW, CurvePoint
from vizpub.experiments.channels.measuring import SCHEDULERS, Case, CaseResult, list_cases
from vizpub.experiments.channels.report import EXPERIMENT, ChannelResults, judge_claims, report_on


def rows(scale: str = "full", **by_part: dict[str, float]) -> list[CaseResult]:
    """All cases of two seeds, with the same figures but for factors of `measure__part`."""
    found = []
    for case in list_cases(scale, 2):
        for scheduler in SCHEDULERS:
            figures: dict[str, Any] = {
                "utal_ms": 4.0, "predicted_ms": 4.0, "staleness_ms": 12.0,
                "busy_staleness_ms": 30.0, "fluff": 0.8, "copies": 2.0, "uneven": 0.2,
            }  # fmt: skip
            chosen = (case.profile, case.assignment, case.mapping, scheduler)
            for measure, factors in by_part.items():
                for part in chosen:
                    figures[measure] *= factors.get(part, 1.0)
            found.append(CaseResult(case, scheduler, **figures))
    return found


def points(calm: float = 0.0, busy: float = 0.3) -> list[CurvePoint]:
    """What two curves leave over per transmission, at the rates that are judged."""
    return [
        CurvePoint(case, share, 250 * share, 100 * left, left)
        for case in list_cases("full", 1)[:2]
        for share, left in ((BELOW, calm), (1.0, 0.005), (ABOVE, busy))
    ]


def outcomes(given: list[CaseResult]) -> dict[str, str]:
    return {one.what.partition(":")[0]: one.outcome for one in judge_claims(given, points())}


def test_claims_about_equal_combinations_are_not_met() -> None:
    """But those that say no more than not larger."""
    found = judge_claims(rows(), points())
    met = [one.what for one in found if one.outcome == "met"]
    assert len(found) == 10
    assert [what.split()[0] for what in met] == ["The", "RxW", "GDFR", "UTAL"]


def test_short_runs_do_not_judge_what_the_mapping_predicts() -> None:
    """A few copies that wait at the end of a run are no overload, but look like one."""
    (*_, last) = judge_claims(rows("small"), [])
    assert last.what.startswith("UTAL of static mappings")
    assert last.outcome == "unknown"
    assert "+0.00% on average" in last.ours
    assert judge_claims(rows(utal_ms={"lc": 1.2}), [])[-1].outcome == "not met"


def test_claims_hold_where_the_named_combination_is_ahead() -> None:
    given = rows(
        fluff={"lc": 0.9}, copies={"lc": 0.9, "c": 0.9, "perfect-c": 0.9}, uneven={"pc": 0.5},
        utal_ms={"c": 0.9}, busy_staleness_ms={"rxw": 0.9},
    )  # fmt: skip
    found = outcomes(given)
    unmet = [what for what, outcome in found.items() if outcome != "met"]
    assert [what.split()[0] for what in unmet] == ["Random"], "as good with either profile"


def test_ratio_is_that_of_pairs_which_differ_in_one_part() -> None:
    given = rows(fluff={"lc": 0.5, "clustered": 3.0, "rxw": 7.0})
    found = ChannelResults(given).estimate("fluff", "assignment=lc / assignment=random")
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5)


def test_ratio_pairs_known_values_of_the_same_case_only() -> None:
    """An UTAL is unknown of what never overloads; here each profile lacks one side."""
    given = [
        replace(row, utal_ms=None) if is_unknown else replace(row, utal_ms=2.0)
        for row in rows()
        for is_unknown in [(row.case.mapping == "c") == (row.case.profile == "uniform")]
    ]
    found = ChannelResults(given).estimate("utal_ms", "mapping=c / mapping=random")
    assert found.value is None


@pytest.mark.parametrize(
    ("calm", "busy", "outcome"),
    [(0.004, 0.06, "met"), (0.006, 0.06, "not met"), (0.004, 0.04, "not met")],
)
def test_curves_lift_off_that_are_flat_before_and_steep_after(
    calm: float, busy: float, outcome: str
) -> None:
    found = judge_claims(rows(), points(calm, busy))[-2]
    assert found.what.startswith("GDFR is flat")
    assert found.outcome == outcome
    assert found.ours.endswith("in 2 curves")


def test_claims_about_nothing_are_unknown() -> None:
    assert {one.outcome for one in judge_claims([], [])} == {"unknown"}


def test_channels_that_never_overload_leave_claims_unknown() -> None:
    found = [
        CaseResult(row.case, row.scheduler, None, None, 12.0, None, 0.8, 2.0, 0.2) for row in rows()
    ]
    told = outcomes(found)
    assert told["RxW serves what many want first"] == "unknown"
    assert told["UTAL of static mappings is the largest TotalP times a transmission"] == "unknown"


def test_report_has_a_line_for_each_combination(tmp_path: Path) -> None:
    report = report_on(rows(uneven={"pc": 0.5}), points(), "small")
    text = report.write(tmp_path).read_text("utf-8")
    assert report.summary in text
    assert text.count("\n| lc | perfect-c | 4 | 12 | 30 | 0.8 | 2 | 0.2 |\n") == 2 * 3
    assert text.count("\n| pc | cd | 4 | 12 | 30 | 0.8 | 2 | 0.1 |\n") == 2 * 3
    assert "- mapping perfect-c: a smallest set" in text
    lines = (tmp_path / "values.csv").read_text("utf-8").splitlines()
    assert len(lines) == 1 + 2 * 4 * 5 * 3 * 2
    assert (tmp_path / "gdfr.csv").read_text("utf-8").count("\n") == 1 + 2 * 3
    for profile in ("uniform", "clustered"):
        assert f"(figures/gdfr-{profile}.png)" in text
        assert (tmp_path / "figures" / f"gdfr-{profile}.png").stat().st_size > 10_000
    assert (tmp_path / "claims.csv").read_text("utf-8").count("\n") >= 9


def test_description_says_what_is_our_reading() -> None:
    lines = list(EXPERIMENT.describe("small"))
    assert "  mapping cd: as c, but of tied channels the one with the fewest pages waiting" in lines
    assert any("200 searches" in line for line in lines)
    full = EXPERIMENT.describe("full")
    assert "runs: 400 searches; about 23.3 min of processor time, 1 MB kept" in full


def test_case_has_the_profile_that_it_names() -> None:
    uniform = Case("uniform", "pc", "c", 1, 1_000).layout()
    assert (uniform.wants.sum(axis=1) == 10).all()
    assert uniform.parameters.assignment == "pc"
    clustered = Case("clustered", "pc", "c", 1, 1_000).layout()
    sources = clustered.wants.reshape(100, 5, 20).any(axis=2).sum(axis=1)
    assert (sources == 2).all()
