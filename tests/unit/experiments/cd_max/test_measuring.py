"""Overlays of the experiment on CD-MAX, counted again."""

from __future__ import annotations

from pathlib import Path

from vizpub.experiments.cd_max.judging import OverlayResults
from vizpub.experiments.cd_max.measuring import OverlayCase, measure_cases, overlay_cases
from vizpub.experiments.cd_max.report import report_on
from vizpub.experiments.measured import MeasuringRequest
from vizpub.simulators.designs.algorithms import ALGORITHMS, Design, construct


def test_overlays_are_measured_once_and_kept(tmp_path: Path) -> None:
    kept = tmp_path / "constructed.jsonl"
    wanted = [OverlayCase("topics", 200, law, 1) for law in ("uniform", "zipf")]
    request = MeasuringRequest("small", tmp_path, processes=1)
    first = measure_cases(wanted, request)
    assert [(one.case.law, one.algorithm) for one in first] == [
        (world.law, algorithm) for world in wanted for algorithm in ALGORITHMS
    ]
    kept.write_text(kept.read_text("utf-8") + '[{"axis": "nod', "utf-8")  # killed while writing
    assert measure_cases(wanted, request) == first
    known = construct(Design("cd-max"), wanted[0].interests()).neighbours
    (ours,) = (one for one in first if one.case == wanted[0] and one.algorithm == "cd-max")
    assert ours.average == sum(map(len, known)) / 100
    assert ours.maximum == max(map(len, known))
    assert ours.least_average <= min(one.average for one in first if one.case.law == "uniform")

    report = report_on(OverlayResults(first), "small", {"Churn": ["much"]})
    text = report.write(tmp_path).read_text("utf-8")
    assert report.summary in text
    assert text.endswith("## Churn\n\nmuch\n")
    assert "| 200 | cd-max-ref | 14.52 ± 0.11 |" in text
    assert (tmp_path / "figures/figure-12.png").stat().st_size > 0


def test_scales_have_the_points_of_the_paper() -> None:
    full = overlay_cases("full")
    assert len(full) == (8 + 5 + 5) * 2 * 10
    assert {one.x for one in full if one.axis == "subscription_size"} == {15, 20, 25, 30, 35}
    assert len(overlay_cases("small", 2)) == (2 + 2 + 3) * 2 * 2
    assert all(one.nodes <= 500 for one in overlay_cases("small"))
