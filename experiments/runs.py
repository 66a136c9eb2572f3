"""The runs of an experiment: simulated, and ingested into its own workspace.

    <out>/simulations/<group>-<seed>/    a simulation; its reports are removed after the ingest
    <out>/workspace/runs/<group>-<seed>/ the run made from them

Each step finds its earlier results, so that the same command resumes after an interruption.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from vizpub.experiments.definition import Experiment
from vizpub.experiments.groups import ExperimentGroup
from vizpub.experiments.results import Replica
from vizpub.machine.files import bytes_below
from vizpub.model.errors import RunNotComplete, UnknownName, UseError
from vizpub.model.progress import Progress, silent
from vizpub.model.run import check_run_name
from vizpub.model.wording import amount
from vizpub.questions.run import Run
from vizpub.runstore.collection import check_name
from vizpub.runstore.store import run_names
from vizpub.runstore.writer import remove_run
from vizpub.simulators.engine.folder import Folder, Result
from vizpub.simulators.engine.plan import Plan

if TYPE_CHECKING:
    from vizpub.analytics.own import OwnFunction


@dataclass(frozen=True)
class ExperimentFolder:
    """The folder of an experiment at one scale."""

    path: Path

    @property
    def workspace(self) -> Path:
        """A workspace of its own, apart from the user's runs."""
        return self.path / "workspace"

    @property
    def simulations(self) -> Path:
        """The parent of a folder for each run."""
        return self.path / "simulations"


@dataclass(frozen=True)
class RunCosts:
    """Sizes and time of a run, on the machine that made it."""

    reports_bytes: int
    run_bytes: int
    ingest_seconds: float


@dataclass(frozen=True)
class PlannedRun:
    """A run of the experiment, which may exist already."""

    group: ExperimentGroup
    plan: Plan
    place: ExperimentFolder
    own_functions: tuple[OwnFunction, ...] = ()
    """Own metrics to measure."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return check_run_name(f"{self.group.slug}-{self.plan.seed}")

    @property
    def label(self) -> str:
        """Name of the run in messages."""
        return f"{self.group.name}, seed {self.plan.seed}"

    @property
    def folder(self) -> Folder:
        """Folder of the simulation."""
        return Folder(self.place.simulations / self.name)

    @property
    def _costs(self) -> Path:
        return self.folder.path / "costs.json"

    def result(self) -> Result | None:
        """The result of the finished simulation; null before."""
        return self.folder.result(self.plan)

    def costs(self) -> RunCosts | None:
        """Its costs, if they are known."""
        with suppress(OSError, ValueError):  # there are none, or a kill left a part of them
            return RunCosts(**json.loads(self._costs.read_text("utf-8")))
        return None

    def run(self) -> Run | None:
        """The complete run; null if there is none. Raises: UseError if its plan differs."""
        if self.name not in run_names(self.place.workspace):
            return None
        try:
            run = Run.open(self.place.workspace, self.name)
        except RunNotComplete:
            return None
        changed = self.plan.list_changes(run.facts.parameters)
        if {function.metric for function in self.own_functions} != {*run.facts.own}:
            changed.append("own metrics")
        if changed:
            raise UseError(
                f"{self.place.path} has a run '{self.name}' with other parameters "
                f"({', '.join(changed)}); give another --out, or --replace to recreate it"
            )
        return run

    def check(self) -> None:
        """Raises: UseError if another run or simulation has its place, or a collection its name."""
        check_name(self.place.workspace, self.name)
        self.run()
        self.result()

    def replica(self) -> Replica | None:
        """The complete run with its group and seed."""
        run = self.run()
        if run is None:
            return None
        return Replica(self.group.name, self.plan.seed, run, self.result())

    def has_reports(self) -> bool:
        """Return True if the reports of the whole simulation are there."""
        return self.result() is not None and self.folder.reports.is_dir()

    def forget(self) -> None:
        """Remove the run and its simulation. After an interruption, both are there or absent, or
        the simulation alone is there.
        """
        with suppress(UnknownName):
            remove_run(self.place.workspace, self.name)
        path = self.folder.path
        removed = path.with_name(f".{path.name}.removed")
        shutil.rmtree(removed, ignore_errors=True)
        with suppress(FileNotFoundError):
            path.rename(removed)
            shutil.rmtree(removed)

    def remove_reports(self) -> None:
        """Remove the reports; keep the result of the simulation."""
        if self.folder.reports.is_dir():
            shutil.rmtree(self.folder.reports)

    def ingest(self, master: str | None, progress: Progress) -> None:
        """Ingest the reports, and store the costs."""
        from vizpub.analytics.options import Measures
        from vizpub.ingest.measures.choice import MeasurementOptions
        from vizpub.ingest.pipeline import ingest
        from vizpub.ingest.request import IngestRequest

        start = time.perf_counter()
        request = IngestRequest(
            (str(self.folder.reports),),
            self.name,
            self.place.workspace,
            source="reports",
            measuring=MeasurementOptions(
                self.group.system.layers, measures=Measures(own=self.own_functions)
            ),
            master=master,
        )
        outcome = ingest(request, progress)
        seconds = round(time.perf_counter() - start, 1)
        costs = RunCosts(
            bytes_below(self.folder.reports), bytes_below(outcome.run.directory), seconds
        )
        self._costs.write_text(json.dumps(asdict(costs)), "utf-8")


def planned_runs(
    experiment: Experiment, place: ExperimentFolder, runs: int | None, only: Sequence[str]
) -> list[PlannedRun]:
    """Every group with every seed; `only` limits them to these systems, settings or groups.

    Raises: UseError, InputError for invalid parameters.
    """
    return [
        PlannedRun(group, experiment.plan(group, seed), place, experiment.own_functions)
        for seed in experiment.seeds(runs)
        for group in experiment.groups
        if not only or {group.name, group.system.name, group.setting.name} & {*only}
    ]


@dataclass(frozen=True)
class MakingOptions:
    """Options for making runs."""

    scratch: Path
    parallel: int
    """Number of runs that are simulated, and whose reports are kept, at the same time."""
    keep_reports: bool = False
    master: str | None = None
    progress: Progress = silent
    say: Callable[[str], None] = lambda text: None


def make_runs(runs: Sequence[PlannedRun], making: MakingOptions) -> int:
    """Make the runs that do not exist yet. Returns their number.

    Raises: as simulate, spread and ingest.
    """
    missing = [run for run in runs if run.run() is None]
    complete = len(runs) - len(missing)
    course = _RunProgress(making.progress, complete, len(missing))
    if missing and complete:
        making.say(f"{complete} of {amount(len(runs), 'run')} complete already")
    for start in range(0, len(missing), making.parallel):
        batch = missing[start : start + making.parallel]
        labels = " and ".join(run.label for run in batch)
        course.begin(f"simulate {labels}", start, 2 * start, len(batch))
        _simulate([run for run in batch if not run.has_reports()], making, course)
        for place, run in enumerate(batch):
            course.begin(f"ingest {run.label}", start + place, 2 * start + len(batch) + place, 1)
            run.ingest(making.master, course.of_ingest)
            _report_run(run, making, course)
            if not making.keep_reports:
                run.remove_reports()
    if not making.keep_reports:
        for run in runs:
            run.remove_reports()
    return len(missing)


def _simulate(runs: Sequence[PlannedRun], making: MakingOptions, course: _RunProgress) -> None:
    from vizpub.simulators.engine.simulation import simulate, simulate_quietly

    if not runs:
        return
    # A simulation whose reports were removed is repeated.
    repeated = [run.result() is not None for run in runs]
    if len(runs) == 1:
        simulate(runs[0].plan, runs[0].folder, course.of_simulation, replace=repeated[0])
        return
    from vizpub.ingest.spark.tasks import run_in_tasks

    folders = [run.folder.absolute() for run in runs]  # executors may work elsewhere
    plans = [run.plan for run in runs]
    run_in_tasks(
        simulate_quietly,
        list(zip(plans, folders, repeated, strict=True)),
        step="simulate",
        scratch=making.scratch,
        master=making.master,
        progress=course.of_simulation,
    )


def _report_run(run: PlannedRun, making: MakingOptions, course: _RunProgress) -> None:
    """A line for a finished run: which of how many, its costs, and when all will be finished."""
    from vizpub.experiments.formatting import duration_text, size_text

    result, costs = run.result(), run.costs()
    assert result
    assert costs
    course.finish()
    ingest_time = duration_text(costs.ingest_seconds)
    parts = [
        f"{course.place}: {run.label}: simulated in {duration_text(result.seconds)}, "
        f"{size_text(costs.reports_bytes)} of reports ingested in {ingest_time}",
        course.end(),
    ]
    making.say("; ".join(filter(None, parts)))


_STEPS = 100
"""Progress steps of half a run."""


class _RunProgress:
    """Combines the progress of all runs, and estimates when they end; simulation and ingest count
    half a run each.
    """

    def __init__(
        self,
        progress: Progress,
        complete: int,
        missing: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress, self._complete, self._missing = progress, complete, missing
        self._clock, self._begun = clock, clock()
        self._what, self._run, self._before, self._now, self._done = "", 0, 0, 1, 0.0

    @property
    def place(self) -> str:
        """Which run of how many, with those that were complete before: 'run 3 of 12'."""
        return f"run {self._complete + self._run + 1} of {self._complete + self._missing}"

    def begin(self, description: str, run: int, earlier: int, at_once: int) -> None:
        """Begin a step of `now` half runs at once, after `before` half runs; `run` is the first of
        its runs, from 0.
        """
        self._what, self._run, self._before, self._now = description, run, earlier, at_once
        self._show(0.0, "")

    def finish(self) -> None:
        """The step is done."""
        self._done = self._before + self._now

    def seconds_left(self) -> float | None:
        """Seconds until all runs are made, if the rest is as fast; null at the beginning."""
        if self._done < 1:
            return None
        return (self._clock() - self._begun) * (2 * self._missing - self._done) / self._done

    def end(self) -> str:
        """When all will be finished; empty where that is not known, and at the end."""
        from vizpub.experiments.formatting import duration_text

        if not (seconds_left := self.seconds_left()):
            return ""
        now = datetime.now()
        finish = now + timedelta(seconds=seconds_left)
        day = "" if finish.date() == now.date() else "%Y-%m-%d "
        return f"ends at about {finish:{day}%H:%M}, in {duration_text(round(seconds_left))}"

    def of_simulation(self, step: str, done: int, total: int, note: str = "") -> None:
        """Intervals of one simulation, or tasks of several."""
        self._show(done / total if total else 0.0, note)

    def of_ingest(self, step: str, done: int, total: int, note: str = "") -> None:
        """Its step is 'structure (9/13)'."""
        name, _, place = step.partition(" (")
        number, _, stages = place.rstrip(")").partition("/")
        if stages.isdecimal():
            self._show((int(number) - 1 + (done / total if total else 0)) / int(stages), name)

    def _show(self, share: float, note: str) -> None:
        self._done = self._before + share * self._now
        text = f"{self.place}, {self._what}: {note}" if note else f"{self.place}, {self._what}"
        message = "; ".join(filter(None, [text, self.end()]))
        self._progress("runs", round(_STEPS * self._done), _STEPS * 2 * self._missing, message)
