"""Runs every combination of assignment, mapping and scheduler, and keeps what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import get_args

from vizpub.experiments.measured import MeasuredFile, MeasuringRequest
from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.liftoff import liftoff
from vizpub.simulators.channels.parameters import MAPPINGS, Assignment, ChannelParameters, Scheduler
from vizpub.simulators.channels.running import run

ASSIGNMENTS: tuple[Assignment, ...] = get_args(Assignment)
SCHEDULERS: tuple[Scheduler, ...] = ("fifo", "rxw", "lwf")
PROFILES = {"uniform": "uniform:pages=10", "clustered": "clustered:clusters=2,size=5"}
UPDATES = {"small": 20_000, "full": 200_000}
SEEDS = {"small": 5, "full": 10}
CLIENTS, GAP_US = 100, 10_000
"""Below every combination's UTAL, for what is compared at the same rate."""
BUSY = 0.95
"""Share of its own UTAL's rate at which schedulers are compared."""


@dataclass(frozen=True, order=True)
class Case:
    """Channels, their clients and updates; every scheduler is run on them."""

    profile: str
    assignment: Assignment
    mapping: str
    seed: int
    updates: int

    @property
    def combination(self) -> tuple[str, str, str]:
        """Profile, assignment and mapping, which the paper compares."""
        return self.profile, self.assignment, self.mapping

    def layout(self) -> ChannelLayout:
        """100 clients, 8 channels, 3 for each client; pages of 5 sources by Zipf's law."""
        parameters = ChannelParameters(
            assignment=self.assignment,
            mapping=self.mapping,
            profile=PROFILES[self.profile],
            pages="zipf:1",
        )
        return ChannelLayout(parameters, CLIENTS, self.seed)


@dataclass(frozen=True)
class CaseResult:
    """What came of a case with a scheduler; null = the channels never overload. Times are ms."""

    case: Case
    scheduler: Scheduler
    utal_ms: float | None
    predicted_ms: float | None
    staleness_ms: float | None
    """Global staleness with updates every 10 ms."""
    busy_staleness_ms: float | None
    """Of all first receptions, at 95 % of the rate of the UTAL."""
    fluff: float | None
    copies: float
    """Channels that an update goes to."""
    uneven: float
    """Standard deviation of the channels' load over its mean."""

    @property
    def seed(self) -> int:
        """The seed of the case."""
        return self.case.seed


def list_cases(scale: str, seeds: int | None = None) -> list[Case]:
    """All cases of a scale."""
    numbers = range(1, 1 + (SEEDS[scale] if seeds is None else seeds))
    combinations = product(PROFILES, ASSIGNMENTS, MAPPINGS, numbers)
    return [Case(*combination, UPDATES[scale]) for combination in combinations]


def measure_case(case: Case) -> list[CaseResult]:
    """Search the UTAL, and run every scheduler at the common rate and near the UTAL.

    Pages are of one size and channels never idle, so all schedulers have sent as many copies at any
    time: they have one UTAL.
    """
    base = case.layout()
    point = liftoff(base, case.updates)
    results = []
    for scheduler in SCHEDULERS:
        layout = base.with_scheduler(scheduler)
        calm = run(layout, layout.draw_updates(case.updates, GAP_US))
        busy_staleness = None
        if point.gap_us:
            busy = run(layout, layout.draw_updates(case.updates, point.gap_us / BUSY))
            busy_staleness = busy.weighted_staleness
        results.append(
            CaseResult(
                case,
                scheduler,
                _ms(point.gap_us),
                _ms(point.predicted_us),
                _ms(calm.global_staleness),
                _ms(busy_staleness),
                calm.fluff,
                float(calm.counts.offered.sum() / calm.totals["passed"]),
                float(calm.load.std() / calm.load.mean()),
            )
        )
    return results


def _ms(time_us: float | None) -> float | None:
    return None if time_us is None else time_us / 1000


def measured_file(request: MeasuringRequest) -> MeasuredFile[Case, CaseResult]:
    """The file of the cases that were measured."""
    return MeasuredFile(request.out / "measured.jsonl", Case, CaseResult)


def measure_cases(cases: Sequence[Case], request: MeasuringRequest) -> list[CaseResult]:
    """Measure the cases that were not measured before, in processes."""
    return measured_file(request).complete_in_processes(
        cases, measure_case, lambda case: f"{case.assignment}, {case.mapping}", request
    )
