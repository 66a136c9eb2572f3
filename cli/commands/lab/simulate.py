"""`vizpub lab simulate`: overlays that report, in virtual time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vizpub.cli.commands.lab.costs import confirm_simulations
from vizpub.cli.commands.lab.of_runs import overlay_of
from vizpub.cli.commands.lab.options import SimulationOptions, check_needs
from vizpub.cli.groups import LazyGroup, command_group
from vizpub.cli.options import comma_list
from vizpub.cli.settings import Settings
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from vizpub.simulators.engine.folder import Folder, Result
    from vizpub.simulators.engine.plan import Plan


_HELP = """Simulate an overlay whose peers report: a command for each system.

A system of your own is MODULE:CLASS or FILE.py:CLASS; simulators/README.md shows how to
write one.

Examples:

```
vizpub lab simulate poldercast --peers 200 --intervals 100 --publications every:10
vizpub lab simulate scribe --churn exponential:20s,down=10s --runs 5 --ingest trees
```
"""


def models() -> None:
    """Show the values that --workload, --publications, --interest, --churn and --latency take.

    A value is NAME, NAME:VALUE or NAME:key=value,key=value.

    Examples:

    ```
    vizpub lab simulate models
    ```
    """
    from vizpub.cli.terminal.output import open_output
    from vizpub.simulators.engine.specs import describe
    from vizpub.simulators.world.churn import CHURNS
    from vizpub.simulators.world.client import ALL_WORKLOADS
    from vizpub.simulators.world.interest import INTERESTS
    from vizpub.simulators.world.latency import LATENCIES
    from vizpub.simulators.world.publications import PUBLICATIONS

    kinds = {"workload": ALL_WORKLOADS, "publications": PUBLICATIONS, "interest": INTERESTS}
    kinds |= {"churn": CHURNS, "latency": LATENCIES}
    with open_output(None) as out:
        for option, models_by_name in kinds.items():
            out.write(f"--{option}\n")
            out.writelines(f"  {line}\n" for line in describe(models_by_name))


_EXAMPLE = "--churn exponential:20s,down=10s"
CHANNELS = "channels"
"""The system whose command is beside other commands on channels."""
_EXAMPLES = {CHANNELS: "--gap 4ms --mapping cd"}
"""Of a system that has no churn."""


def _help_text(name: str, summary: str) -> str:
    first = summary.strip().splitlines()[0] if summary.strip() else f"Simulate {name}."
    called = "channels simulate" if name == CHANNELS else f"simulate {name}"
    return f"""{first}

Options can also be set in a TOML file (--config); the command line takes precedence.

Examples:

```
vizpub lab {called} --peers 200 --intervals 50 --seed 7
vizpub lab {called} {_EXAMPLES.get(name, _EXAMPLE)} --ingest study --no-load
vizpub lab {called} --config study.toml --runs 5
```
"""


def simulate_all(
    ctx: typer.Context, system: str, chosen: dict[str, Any], options: SimulationOptions
) -> None:
    """Simulate every run of a system, and ingest them if that is asked for. Raises: UseError."""
    from vizpub.simulators.engine.plan import make_plan

    settings: Settings = ctx.obj
    options = check_needs(ctx, options)
    seeds = range(options.seed, options.seed + options.runs)
    plans = [make_plan(system, chosen, seed) for seed in seeds]
    folders = [_folder(settings, options, plan) for plan in plans]
    if options.ingest is not None:
        _check_ingest(settings, plans, options)
    # Another simulation in one of the folders is an error now, not after the first runs.
    reused = [
        folder.result(plan, replace=options.replace) is not None
        for plan, folder in zip(plans, folders, strict=True)
    ]
    new_plans = [plan for plan, old in zip(plans, reused, strict=True) if not old]
    confirm_simulations(settings, new_plans, yes=options.yes)
    if options.runs == 1:
        results = [_simulate_one(settings, plans[0], folders[0], options)]
    else:
        results = _simulate_many(settings, plans, folders, options)
    _show_results(settings, plans, folders, results)
    if any(reused):
        which = ", ".join(plan.name for plan, old in zip(plans, reused, strict=True) if old)
        settings.say(f"simulated before: {which}; --replace simulates again")
    if options.ingest is not None:
        for plan, folder in zip(plans, folders, strict=True):
            ingest_reports(settings, _run_name(options, plan), folder.reports, options)


def _check_ingest(settings: Settings, plans: Sequence[Plan], options: SimulationOptions) -> None:
    """Check that the ingest after the simulation would take its options. Raises: UseError."""
    from vizpub.model.run import check_run_name
    from vizpub.runstore.collection import check_name
    from vizpub.runstore.store import open_run, run_names

    for layer in comma_list(options.layers) or ():
        if layer not in plans[0].layers:
            raise UnknownName("layer", layer, plans[0].layers, "--layers")
    stored_names = run_names(settings.workspace)
    for plan in plans:
        name = check_run_name(_run_name(options, plan))
        check_name(settings.workspace, name)
        if name in stored_names and not options.replace:
            stored = open_run(settings.workspace, name, complete=False).manifest
            made_from = stored.protocol, stored.seed
            is_other = made_from != (plan.protocol, plan.seed) or plan.list_changes(
                stored.parameters
            )
            if stored.complete and is_other:
                raise UseError(
                    f"run '{name}' exists and was made from other input; "
                    "give another --ingest NAME, or --replace to replace it"
                )


def _run_name(options: SimulationOptions, plan: Plan) -> str:
    return f"{options.ingest}-{plan.seed}" if options.runs > 1 else f"{options.ingest}"


def _folder(settings: Settings, options: SimulationOptions, plan: Plan) -> Folder:
    from vizpub.simulators.engine.folder import Folder

    if options.out is None:
        return Folder.of_plan(settings.workspace / "simulations", plan)
    return Folder(options.out if options.runs == 1 else options.out / f"seed-{plan.seed}")


def _simulate_one(
    settings: Settings, plan: Plan, folder: Folder, options: SimulationOptions
) -> Result:
    from vizpub.simulators.engine.live import Live
    from vizpub.simulators.engine.simulation import simulate

    live = None
    if options.live:
        live = Live(options.live, os.environ.get("VIZPUB_TOKEN"), options.speed)
    try:
        with settings.progress() as progress:
            return simulate(plan, folder, progress, replace=options.replace, live=live)
    except KeyboardInterrupt:
        settings.say(f"the finished intervals are in {folder.reports}")
        raise


def _simulate_many(
    settings: Settings, plans: Sequence[Plan], folders: Sequence[Folder], options: SimulationOptions
) -> list[Result]:
    from vizpub.ingest.spark.tasks import run_in_tasks
    from vizpub.simulators.engine.reporter import BLOCK
    from vizpub.simulators.engine.simulation import simulate_quietly

    # Executors may work in other directories.
    tasks = [
        (plan, folder.absolute(), options.replace)
        for plan, folder in zip(plans, folders, strict=True)
    ]
    try:
        with settings.progress() as progress:
            return run_in_tasks(
                simulate_quietly,
                tasks,
                step="simulating",
                scratch=settings.scratch,
                master=options.master,
                progress=progress,
            )
    except KeyboardInterrupt:
        # Spark kills its tasks at once; data that they have not written is lost.
        blocks = f"finished blocks of {BLOCK} intervals"
        settings.say(f"the {blocks} are in {', '.join(str(f.reports) for f in folders)}")
        raise


def _show_results(
    settings: Settings, plans: Sequence[Plan], folders: Sequence[Folder], results: Sequence[Result]
) -> None:
    from vizpub.cli.options import Output
    from vizpub.cli.terminal.output import OutputRows, show_rows

    for plan, folder, result in zip(plans, folders, results, strict=True):
        unmade = f" ({result.unpublished:,} had no publisher)" if result.unpublished else ""
        changed = f", {amount(result.changed, 'change')} of interest" if result.changed else ""
        settings.say(
            f"{plan.name}: {amount(result.peers, 'peer')}, "
            f"{amount(result.intervals, 'interval')}, "
            f"{amount(result.published, 'publication')}{unmade}{changed} "
            f"in {result.seconds:,.1f} s; "
            f"{folder.reports}"
        )
        if result.described:
            settings.say(", ".join(f"{name} {value}" for name, value in result.described.items()))
    rows = [
        {"run": plan.name, **asdict(kind)}
        for plan, result in zip(plans, results, strict=True)
        for kind in result.messages
    ]
    show_rows(OutputRows.of_records(rows), Output(), settings)


def ingest_reports(
    settings: Settings,
    name: str,
    reports: Path,
    options: SimulationOptions,
    *,
    no_betweenness: bool = False,
) -> None:
    """Ingest the reports of a simulation as a run."""
    from vizpub.cli.commands.everyday.ingest import IngestOptions, ReadingOptions, ingest
    from vizpub.cli.options import Output

    ingest(
        settings,
        [str(reports)],
        name,
        ReadingOptions(source="reports", layers=options.layers, no_betweenness=no_betweenness),
        IngestOptions(replace=options.replace, no_load=options.no_load, master=options.master),
        Output(),
    )


class _SystemsGroup(LazyGroup):
    kind = "system"

    def names(self) -> Sequence[str]:
        from vizpub.simulators.engine.systems import SYSTEMS

        return sorted(SYSTEMS.keys() - {CHANNELS})

    def creates(self, name: str) -> bool:
        return ":" in name or super().creates(name)

    def create(self, name: str) -> Callable[..., None]:
        return simulation_of(name)


def simulation_of(system: str) -> Callable[..., None]:
    """The command that simulates a system. Raises: UnknownName."""
    from vizpub.simulators.engine.plan import world_of
    from vizpub.simulators.engine.systems import system_named

    def simulate(
        ctx: typer.Context,
        settings: Settings,
        parameters: Any,
        world: Any,
        options: SimulationOptions,
    ) -> None:
        chosen = {**asdict(parameters), **asdict(world)}
        chosen |= overlay_of(settings, chosen.get("topology"))
        simulate_all(ctx, system, chosen, options)

    entry = system_named(system)
    simulate.__doc__ = _help_text(system, entry.summary or (entry.make.__doc__ or ""))
    simulate.__annotations__ |= {"parameters": entry.parameters_type, "world": world_of(system)}
    return simulate


GROUP = command_group("simulate", _HELP, cls=_SystemsGroup, models=models)
