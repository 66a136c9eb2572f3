"""Runs of the experiment on channels, measured again."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub.experiments.channels.measuring import (
    GAP_US,
    SCHEDULERS,
    Case,
    list_cases,
    measure_case,
    measure_cases,
)
from vizpub.experiments.measured import MeasuringRequest
from vizpub.simulators.channels.liftoff import liftoff
from vizpub.simulators.channels.running import run

UPDATES = 2_000


def case(mapping: str, seed: int = 1, updates: int = UPDATES) -> Case:
    return Case("clustered", "lc", mapping, seed, updates)


def test_scales_have_every_combination() -> None:
    small, full = list_cases("small"), list_cases("full")
    assert len(set(small)) == 2 * 4 * 5 * 5
    assert len(set(full)) == 2 * 4 * 5 * 10
    assert len(list_cases("full", 1)) == 2 * 4 * 5


def test_channels_are_measured_once_and_kept(tmp_path: Path) -> None:
    kept = tmp_path / "measured.jsonl"
    wanted = [case("perfect-c"), case("c")]
    request = MeasuringRequest("small", tmp_path, processes=1)
    first = measure_cases(wanted, request)
    assert [(row.case, row.scheduler) for row in first] == [
        (one, scheduler) for one in wanted for scheduler in SCHEDULERS
    ]
    kept.write_text(kept.read_text("utf-8") + '[{"case": {"prof', "utf-8")  # killed while writing
    written = kept.stat().st_mtime_ns
    assert measure_cases(wanted, request) == first
    assert kept.stat().st_mtime_ns == written


@pytest.mark.parametrize("mapping", ["random", "cd", "offline-c"])
def test_schedulers_have_one_update_time_at_liftoff(mapping: str) -> None:
    """The search with one scheduler is that with any."""
    (first, *_) = rows = measure_case(case(mapping, updates=4_000))
    given = case(mapping).layout()
    for scheduler in SCHEDULERS:
        gap = liftoff(given.with_scheduler(scheduler), 4_000).gap_us
        assert gap is not None
        assert first.utal_ms == gap / 1000, scheduler
    assert {row.utal_ms for row in rows} == {first.utal_ms}


def test_row_has_what_its_run_counted() -> None:
    one = case("random")
    rows = {row.scheduler: row for row in measure_case(one)}
    given = one.layout()
    fifo = run(given.with_scheduler("fifo"), given.draw_updates(UPDATES, GAP_US))
    row = rows["fifo"]
    told = fifo.totals
    assert row.fluff == told["unwanted"] / told["receptions"]
    assert row.copies == sum(fifo.counts.offered.tolist()) / told["passed"]
    means = [
        stale / heard / 1000
        for stale, heard in zip(fifo.counts.stale.tolist(), fifo.counts.heard.tolist(), strict=True)
        if heard
    ]
    assert row.staleness_ms == pytest.approx(sum(means) / len(means))
    assert row.predicted_ms is None, "a mapping that is made on the fly predicts nothing"
