"""From a constructed overlay to a run, and from a run's subscriptions to another overlay."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from vizpub.questions.run import Run
from vizpub.reports.files import ReportReader
from vizpub.reports.records import Report

Vizpub = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.spark

WORLD = "--peers 24 --workload uniform:topics=8,subscriptions=3 --intervals 2"


def reported(folder: Path, interval: int) -> list[Report]:
    lines = (line.record for path in sorted(folder.iterdir()) for line in ReportReader(path))
    return [one for one in lines if isinstance(one, Report) and one.interval == interval]


def test_overlay_has_the_metrics_that_its_reports_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vizpub_here: Vizpub
) -> None:
    monkeypatch.chdir(tmp_path)
    line = f"lab construct cd-max-ref {WORLD} --out stars --ingest stars --no-load"
    result = vizpub_here(*shlex.split(line))
    assert result.returncode == 0, result.stderr
    reports = reported(tmp_path / "stars/reports", 1)
    degrees = [len(one.neighbors or ()) for one in reports]
    run = Run.open(tmp_path / "vizpub-data", "stars")
    overlay = run.metrics("overlay").to_pylist()[1]
    assert overlay["links"] == sum(degrees)
    assert overlay["degree_max"] == max(degrees)
    assert overlay["degree_mean"] == pytest.approx(sum(degrees) / 24)
    topics = run.metrics("topics").to_pylist()
    assert all(row["topic_diameter"] <= 2 for row in topics)

    result = vizpub_here(*shlex.split("lab construct gm --run stars --at 1 --out again"))
    assert result.returncode == 0, result.stderr
    again = reported(tmp_path / "again/reports", 0)
    assert [(one.peer, sorted(one.topics or ())) for one in again] == [
        (one.peer, sorted(one.topics or ())) for one in reports
    ]
