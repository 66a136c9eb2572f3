"""`vizpub experiment`: evaluations from simulation to report."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.options import Master, Output, command
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import Rows, opened, show
from vizpub.machine.files import made_folder
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.wording import amount
from vizpub.runstore.leftovers import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vizpub.experiments.definition import Experiment
    from vizpub.experiments.report import Findings
    from vizpub.experiments.runs import Place, Planned

ALREADY = "complete already"

_DATA = "VIZPUB_DATA"
_HELP = """Run evaluations: simulate, ingest, measure, and compare with published values.

Examples:

```
vizpub experiment list
vizpub experiment run dissemination
```
"""


def register(app: typer.Typer) -> None:
    """Add the group."""
    experiments = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
    experiments.command("list")(command(list_experiments))
    experiments.command("show")(command(show_experiment))
    experiments.command("run")(command(run))
    app.add_typer(experiments, name="experiment", help=_HELP, rich_help_panel="Runs")


_Name = Annotated[
    str,
    typer.Argument(metavar="NAME|FILE.toml", help="A listed experiment, or a file of your own."),
]
_Scale = Annotated[
    str,
    typer.Option(metavar="small|full", help="Small takes minutes, full has the published size."),
]


@dataclass(frozen=True)
class _Running:
    """Which runs are made, and where."""

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
        int | None, typer.Option(metavar="N", min=1, help="Number of seeds per group.")
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="Only this system, setting or group; repeatable."),
    ] = None
    replace: Annotated[
        bool, typer.Option("--replace", help="Recreate runs that already exist.")
    ] = False
    keep_reports: Annotated[
        bool, typer.Option("--keep-reports", help="Keep the reports after they are ingested.")
    ] = False
    load: Annotated[bool, typer.Option("--load", help="Also load every run into Neo4j.")] = False
    master: Master = None


def list_experiments(settings: Settings, output: Output) -> None:
    """List the available experiments.

    Examples:

    ```
    vizpub experiment list
    ```
    """
    from vizpub.experiments.definition import read, shipped

    rows: list[tuple[object, ...]] = [_row_of_cd_max(), _row_of_channels(), _row_of_gossip()]
    for name in shipped():
        small, full = (read(name, scale) for scale in ("small", "full"))
        data = " and ".join(d.scale for d in (small, full) if d.content.data) or "no"
        runs = [len(d.groups) * len(d.seeds()) for d in (small, full)]
        rows.append((name, full.content.title, *runs, data))
    columns = ("experiment", "title", "runs small", "runs full", "needs outside data")
    show(Rows(columns, rows), output, settings)


def _row_of_cd_max() -> tuple[object, ...]:
    from vizpub.experiments import cd_max
    from vizpub.experiments.cd_max.measuring import worlds

    small, full = (len(worlds(scale)) for scale in ("small", "full"))
    return cd_max.NAME, cd_max.TITLE, small, full, "no"


def _row_of_channels() -> tuple[object, ...]:
    from vizpub.experiments import channels
    from vizpub.experiments.channels.measuring import cases

    small, full = (len(cases(scale)) for scale in ("small", "full"))
    return channels.NAME, channels.TITLE, small, full, "no"


def _row_of_gossip() -> tuple[object, ...]:
    from vizpub.experiments import gossip
    from vizpub.experiments.gossip.points import worlds

    small, full = (len(worlds(scale)) for scale in ("small", "full"))
    return gossip.NAME, gossip.TITLE, small, full, "no"


def show_experiment(settings: Settings, name: _Name, scale: _Scale = "small") -> None:
    """Show what an experiment runs and the published values it is compared with.

    Examples:

    ```
    vizpub experiment show table-4.3 --scale full
    ```
    """
    from vizpub.experiments import cd_max, channels, gossip
    from vizpub.experiments.cd_max.report import described as of_cd_max
    from vizpub.experiments.channels.report import described as of_channels
    from vizpub.experiments.definition import read
    from vizpub.experiments.gossip.report import described as of_gossip

    measured = {
        cd_max.NAME: of_cd_max,
        channels.NAME: of_channels,
        gossip.NAME: of_gossip,
    }
    with opened(None) as out:
        lines = measured[name](scale) if name in measured else _described(read(name, scale))
        out.writelines(f"{line}\n" for line in lines)


def _described(experiment: Experiment) -> Iterator[str]:
    content = experiment.content
    yield from (content.title, "", content.about.strip(), "", f"source: {content.source}")
    yield f"everywhere: {_words(content.world)}"
    yield f"seeds: {', '.join(map(str, experiment.seeds()))}"
    for system in content.systems:
        yield f"system {system.name}: {system.system} {_words(system.parameters)}"
    for setting in content.settings:
        if setting.name:
            yield f"setting {setting.name}: {_words(setting.parameters)}"
    yield from (f"data {data.file}: {data.source}" for data in content.data)
    yield "claims:"
    for claim in content.published:
        about = "" if claim.terms[1:] else claim.terms[0]
        text = ", ".join(filter(None, (about, f"{claim.metric} {claim.published}")))
        yield f"  {claim.what}: {text} ({claim.source})"


def _words(parameters: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def run(settings: Settings, name: _Name, running: _Running) -> None:
    """Run an experiment and write its report: report.md, figures/ and CSV.

    Finished runs are kept: after an interruption the same command resumes. If all runs are
    complete, it only writes the report again. The runs have a workspace of their own:
    give --workspace DIR/workspace to look at them with other commands.

    Examples:

    ```
    vizpub experiment run dissemination
    vizpub experiment run table-4.3 --scale full --data ~/traces --out ~/table-4.3
    vizpub experiment run dissemination-under-churn --runs 2 --only Scribe
    ```
    """
    from vizpub.experiments import cd_max, channels, gossip
    from vizpub.experiments.definition import read
    from vizpub.experiments.report import findings, write_report
    from vizpub.experiments.runs import Place

    if name == cd_max.NAME:
        _run_cd_max(settings, running)
        return
    if name == channels.NAME:
        _run_channels(settings, running)
        return
    if name == gossip.NAME:
        _run_gossip(settings, running)
        return
    if running.data is not None:
        os.environ[_DATA] = str(running.data.resolve())  # Spark's workers read data files as well
    experiment = read(name, running.scale)
    experiment.check_data()
    out = _out(settings, experiment.name, running)
    place = Place(out)
    runs = _planned(experiment, place, running)
    _make(settings, runs, place, running)
    with settings.progress() as progress:
        progress("report", 0, 0)
        found = findings(experiment, runs)
        report = write_report(found, out)
    if running.load:
        _load(settings, runs, place)
    _show(settings, found, report)


def _run_cd_max(settings: Settings, running: _Running) -> None:
    """Its overlays are measured where they are constructed: there are no runs to ingest."""
    from vizpub.experiments import cd_max
    from vizpub.experiments.cd_max import beyond, churn, optimum
    from vizpub.experiments.cd_max.judging import Results
    from vizpub.experiments.cd_max.measuring import measured, worlds
    from vizpub.experiments.cd_max.report import write_report

    out = _out_without_runs(settings, cd_max.NAME, running)
    chosen = worlds(running.scale, running.runs)
    kept = _kept(out / "constructed.jsonl", running)
    with settings.progress() as progress:
        found = measured(chosen, kept, os.cpu_count() or 2, progress)
        progress("churn, failures and delays", 0, 0)
        further = {
            "Churn": churn.lines(churn.churn(running.scale, os.cpu_count() or 2)),
            "Failures, load, energy and delays": beyond.lines(
                beyond.beyond(running.scale, os.cpu_count() or 2)
            ),
            "The optimum of a few nodes": optimum.lines(
                optimum.optimum(running.scale, os.cpu_count() or 2)
            ),
        }
    report, summary = write_report(Results(found), further, running.scale, out)
    settings.say(f"{summary}; see {report}")


def _run_channels(settings: Settings, running: _Running) -> None:
    """The compiled pipeline counts: there are no runs to ingest."""
    from vizpub.experiments import channels
    from vizpub.experiments.channels.curves import curves
    from vizpub.experiments.channels.measuring import cases, measured
    from vizpub.experiments.channels.report import write_report

    out = _out_without_runs(settings, channels.NAME, running)
    chosen = cases(running.scale, running.runs)
    kept = _kept(out / "measured.jsonl", running)
    with settings.progress() as progress:
        found = measured(chosen, kept, os.cpu_count() or 2, progress)
        progress("GDFR over the update rate", 0, 0)
        points = curves(found, os.cpu_count() or 2)
    report, summary = write_report(found, points, running.scale, out)
    settings.say(f"{summary}; see {report}")


def _run_gossip(settings: Settings, running: _Running) -> None:
    """Its events are counted by compiled code in Spark tasks: there are no runs to ingest."""
    from vizpub.experiments import gossip
    from vizpub.experiments.gossip.judging import Results
    from vizpub.experiments.gossip.measuring import measured
    from vizpub.experiments.gossip.points import worlds
    from vizpub.experiments.gossip.report import write_report

    out = _out_without_runs(settings, gossip.NAME, running)
    chosen = worlds(running.scale, running.runs)
    kept = _kept(out / "networks.jsonl", running)
    scratch = out / "workspace" / SCRATCH
    with settings.progress() as progress:
        found = measured(chosen, kept, scratch, master=running.master, progress=progress)
    report, summary = write_report(Results(found), running.scale, out)
    settings.say(f"{summary}; see {report}")


def _out_without_runs(settings: Settings, name: str, running: _Running) -> Path:
    """The folder of an experiment that makes no runs. Raises: UseError for options about runs."""
    if running.only or running.load or running.keep_reports:
        raise UseError(f"{name} makes no runs: leave out --only, --load and --keep-reports")
    return _out(settings, name, running)


def _out(settings: Settings, name: str, running: _Running) -> Path:
    return made_folder(
        running.out or settings.workspace / "experiments" / f"{name}-{running.scale}"
    )


def _kept(file: Path, running: _Running) -> Path:
    """What was measured before, unless all is to be measured anew."""
    if running.replace:
        file.unlink(missing_ok=True)
    return file


def _planned(experiment: Experiment, place: Place, running: _Running) -> list[Planned]:
    from vizpub.experiments.runs import planned_runs

    only = running.only or ()
    parts = {g.name for g in experiment.groups} | {s.name for s in experiment.content.systems}
    parts |= {s.name for s in experiment.content.settings} - {""}
    for part in only:
        if part not in parts:
            raise UnknownName("part", part, sorted(parts))
    runs = planned_runs(experiment, place, running.runs, only)
    for one in runs:
        if running.replace:
            one.forget()
        one.check()
    return runs


def _make(settings: Settings, runs: Sequence[Planned], place: Place, running: _Running) -> None:
    from vizpub.experiments.runs import Making, make

    with settings.progress() as progress:
        making = Making(
            scratch=place.workspace / SCRATCH,
            parallel=os.cpu_count() or 2,
            keep_reports=running.keep_reports,
            master=running.master,
            progress=progress,
            say=settings.say,
        )
        made = make(runs, making)
    if not made:
        settings.say(f"{amount(len(runs), 'run')} {ALREADY}; only the report is written again")


def _load(settings: Settings, runs: Sequence[Planned], place: Place) -> None:
    from vizpub.cli.commands.neo4j.load import load_stored

    for one in runs:
        if complete := one.run():
            load_stored(replace(settings, workspace=place.workspace), complete.stored)


def _show(settings: Settings, found: Findings, report: Path) -> None:
    rows = [
        (j.claim.what, j.verdict.outcome, j.verdict.ours, j.claim.published) for j in found.judged
    ]
    show(Rows(("claim", "outcome", "ours", "published"), rows), Output(), settings)
    settings.say(f"{found.summary}; see {report}")
