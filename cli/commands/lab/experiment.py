"""`vizpub lab experiment`: evaluations from simulation to report."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.commands.figures.drawing import FigureLook
from vizpub.cli.commands.lab.costs import confirm_costs, confirm_simulations
from vizpub.cli.commands.lab.options import MOST_RUNS
from vizpub.cli.groups import command_group
from vizpub.cli.options import Master, Output, Yes, drop_defaults
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, open_output, show_rows
from vizpub.cli.terminal.streams import terminal_width
from vizpub.machine.files import make_folder
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.wording import amount
from vizpub.runstore.leftovers import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vizpub.experiments.definition import Experiment
    from vizpub.experiments.report import Findings
    from vizpub.experiments.runs import ExperimentFolder, PlannedRun

ALREADY = "complete already"

_DATA = "VIZPUB_DATA"
_SCALES = ("small", "full")
_HELP = """Run evaluations: simulate, ingest, measure, and compare with published values.

Examples:

```
vizpub lab experiment list
vizpub lab experiment run dissemination
```
"""


_Name = Annotated[
    str,
    typer.Argument(metavar="NAME|FILE.toml", help="A listed experiment, or a file of your own."),
]
_Scale = Annotated[
    str,
    typer.Option(metavar="small|full", help="Small takes minutes, full has the published size."),
]


@dataclass(frozen=True)
class _Runs:
    """Runs of the experiment, and their folder."""

    scale: _Scale = "small"
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Output directory (default: WORKSPACE/experiments/NAME-SCALE).",
        ),
    ] = None
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            envvar=_DATA,
            help="Directory of data that is not shipped.",
        ),
    ] = None
    runs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=MOST_RUNS, help="Number of seeds per group."),
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="Only this system, setting or group; repeatable."),
    ] = None
    replace: Annotated[
        bool, typer.Option("--replace", help="Recreate runs that already exist.")
    ] = False
    yes: Yes = False
    keep_reports: Annotated[
        bool, typer.Option("--keep-reports", help="Keep the reports after they are ingested.")
    ] = False
    load: Annotated[bool, typer.Option("--load", help="Also load every run into Neo4j.")] = False
    master: Master = None


@dataclass(frozen=True)
class _RunOptions(FigureLook, _Runs):
    """The look of the figures, too."""


def list_experiments(settings: Settings, output: Output) -> None:
    """List the available experiments.

    Examples:

    ```
    vizpub lab experiment list
    ```
    """
    from vizpub.experiments.definition import read_experiment, shipped_names
    from vizpub.experiments.measured import MEASURED_NAMES, measured_experiment

    rows: list[tuple[object, ...]] = []
    for name in MEASURED_NAMES:
        measured = measured_experiment(name)
        cases = [len(measured.cases(scale, None)) for scale in _SCALES]
        rows.append((name, measured.title, *cases, "no"))
    for name in shipped_names():
        small, full = (read_experiment(name, scale) for scale in _SCALES)
        data = ", ".join(d.scale for d in (small, full) if d.content.data) or "no"
        runs = [len(d.groups) * len(d.seeds()) for d in (small, full)]
        rows.append((name, full.content.title, *runs, data))
    columns = ("experiment", "title", "runs small", "runs full", "outside data")
    show_rows(OutputRows(columns, rows), output, settings)


def show_experiment(settings: Settings, name: _Name, scale: _Scale = "small") -> None:
    """Show what an experiment runs and the published values it is compared with.

    Examples:

    ```
    vizpub lab experiment show table-4.3 --scale full
    ```
    """
    from vizpub.experiments.definition import read_experiment
    from vizpub.experiments.measured import MEASURED_NAMES, measured_experiment

    if name in MEASURED_NAMES:
        lines = measured_experiment(name).describe(scale)
    else:
        lines = _description_lines(read_experiment(name, scale))
    width = terminal_width(sys.stdout)
    with open_output(None) as out:
        for paragraph in "\n".join(lines).splitlines():
            out.write(f"{_wrap(paragraph, width) if width else paragraph}\n")


def _wrap(paragraph: str, width: int) -> str:
    """Break a paragraph between words; of an entry, the lines after the first are indented."""
    entry = re.match(r"( *)[^.:]+: ", paragraph)
    return textwrap.fill(
        paragraph,
        width,
        subsequent_indent=f"{entry[1]}  " if entry else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _description_lines(experiment: Experiment) -> Iterator[str]:
    content = experiment.content
    yield from (content.title, "", " ".join(content.about.split()), "", f"source: {content.source}")
    yield f"everywhere: {_parameter_text(content.world)}"
    yield f"seeds: {', '.join(map(str, experiment.seeds()))}"
    for system in content.systems:
        yield f"system {system.name}: {system.system} {_parameter_text(system.parameters)}"
    for setting in content.settings:
        if setting.name:
            yield f"setting {setting.name}: {_parameter_text(setting.parameters)}"
    yield from (f"data {data.file}: {data.source}" for data in content.data)
    for title, claims in (
        ("published claims", content.published),
        ("own expectations", content.expected),
    ):
        if claims:
            yield f"{title}:"
        for claim in claims:
            about = "" if claim.terms[1:] else claim.terms[0]
            text = ", ".join(filter(None, (about, f"{claim.metric} {claim.published_text}")))
            yield f"  {claim.what}: {text} ({claim.source})"


def _parameter_text(parameters: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def run(ctx: typer.Context, settings: Settings, name: _Name, running: _RunOptions) -> None:
    """Run an experiment and write its report: report.md, figures/ and CSV.

    Finished runs are kept: after an interruption the same command resumes. If all runs are
    complete, it only writes the report again. The runs have a workspace of their own:
    give --workspace DIR/workspace to look at them with other commands.

    Examples:

    ```
    vizpub lab experiment run dissemination
    vizpub lab experiment run table-4.3 --scale full --data ~/traces --out ~/table-4.3
    vizpub lab experiment run dissemination-under-churn --runs 2 --only Scribe
    vizpub lab experiment run dissemination --style paper --size 3.5in --title ''
    ```
    """
    from vizpub.analytics.figures.styles import figure_style
    from vizpub.experiments.definition import read_experiment
    from vizpub.experiments.measured import MEASURED_NAMES
    from vizpub.experiments.report import evaluate_runs, write_report
    from vizpub.experiments.runs import ExperimentFolder

    options = running.figure_options()  # an error now, not after the work
    if name in MEASURED_NAMES:
        running = drop_defaults(ctx, running, "--only", "--load", "--keep-reports")
        with figure_style(options):
            _run_measured(settings, name, running)
        return
    if running.data is not None:
        os.environ[_DATA] = str(running.data.resolve())  # Spark's workers read data files as well
    experiment = read_experiment(name, running.scale)
    experiment.check_data()
    out = _out(settings, experiment.name, running)
    place = ExperimentFolder(out)
    runs = _plan_runs(experiment, place, running)
    missing = [one.plan for one in runs if running.replace or one.run() is None]
    confirm_simulations(settings, missing, yes=running.yes)
    make_folder(out)
    for one in runs if running.replace else ():
        one.forget()
        one.check()
    _make_runs(settings, runs, place, running)
    runs = _with_other_parts(settings, experiment, runs, running)
    with settings.progress() as progress, figure_style(options):
        progress("report", 0, 0)
        results = evaluate_runs(experiment, runs)
        report = write_report(results, out)
    if running.load:
        _load_runs(settings, runs, place)
    _show_claims(settings, results, report)


def _run_measured(settings: Settings, name: str, running: _RunOptions) -> None:
    """Measure in one place, without runs to ingest. Raises: UseError for options about runs."""
    from vizpub.experiments.measured import MeasuringRequest, measured_experiment

    if running.only or running.load or running.keep_reports:
        raise UseError(f"{name} makes no runs: leave out --only, --load and --keep-reports")
    out, experiment = _out(settings, name, running), measured_experiment(name)
    request = MeasuringRequest(
        running.scale, out, seeds=running.runs, again=running.replace, master=running.master
    )
    costs = experiment.estimate(request)
    confirm_costs(settings, "the measurements take", costs, yes=running.yes)
    make_folder(out)
    with settings.progress() as progress:
        report = experiment.make_report(replace(request, progress=progress))
    settings.say(f"{report.summary}; see {report.write(out)}")


def _out(settings: Settings, name: str, running: _RunOptions) -> Path:
    return running.out or settings.workspace / "experiments" / f"{name}-{running.scale}"


def _plan_runs(
    experiment: Experiment, place: ExperimentFolder, running: _RunOptions
) -> list[PlannedRun]:
    from vizpub.experiments.runs import planned_runs

    only = running.only or ()
    parts = {g.name for g in experiment.groups} | {s.name for s in experiment.content.systems}
    parts |= {s.name for s in experiment.content.settings} - {""}
    for part in only:
        if part not in parts:
            raise UnknownName("part", part, sorted(parts))
    runs = planned_runs(experiment, place, running.runs, only)
    if not running.replace:
        for one in runs:
            one.check()
    return runs


def _with_other_parts(
    settings: Settings, experiment: Experiment, runs: Sequence[PlannedRun], running: _RunOptions
) -> list[PlannedRun]:
    """The runs, and those of parts that are not asked for now and were made before. Those that were
    made with other parameters are left out, which is said.
    """
    from vizpub.experiments.runs import planned_runs

    chosen, reported = {one.name for one in runs}, []
    for one in planned_runs(experiment, runs[0].place, running.runs, ()):
        try:
            if one.name in chosen or one.run() is not None:
                reported.append(one)
        except UseError as error:
            settings.say(f"not in the report: {error}")
    return reported


def _make_runs(
    settings: Settings, runs: Sequence[PlannedRun], place: ExperimentFolder, running: _RunOptions
) -> None:
    from vizpub.experiments.runs import MakingOptions, make_runs

    with settings.progress() as progress:
        making = MakingOptions(
            scratch=place.workspace / SCRATCH,
            parallel=os.cpu_count() or 2,
            keep_reports=running.keep_reports,
            master=running.master,
            progress=progress,
            say=settings.say,
        )
        new_runs = make_runs(runs, making)
    if not new_runs:
        settings.say(f"{amount(len(runs), 'run')} {ALREADY}; only the report is written again")


def _load_runs(settings: Settings, runs: Sequence[PlannedRun], place: ExperimentFolder) -> None:
    from vizpub.cli.commands.neo4j.load import load_stored

    for one in runs:
        if complete := one.run():
            load_stored(replace(settings, workspace=place.workspace), complete.stored)


def _show_claims(settings: Settings, results: Findings, report: Path) -> None:
    rows = [
        (claim.what, claim.outcome, claim.ours, claim.published, not claim.expected)
        for claim in results.judged
    ]
    names = ("claim", "outcome", "ours", "claimed", "published")
    show_rows(OutputRows(names, rows, leaving=("published",)), Output(), settings)
    settings.say(f"{results.summary}; see {report}")


GROUP = command_group("experiment", _HELP, list=list_experiments, show=show_experiment, run=run)
