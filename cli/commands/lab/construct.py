"""`vizpub lab construct`: overlays that are designed for given subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from vizpub.cli.commands.lab.costs import confirm_costs
from vizpub.cli.commands.lab.of_runs import subscriptions_of
from vizpub.cli.commands.lab.options import SimulationOptions, check_needs
from vizpub.cli.commands.lab.simulate import ingest_reports, simulate_all
from vizpub.cli.completion import complete_runs
from vizpub.cli.groups import LazyGroup, command_group
from vizpub.cli.options import drop_defaults
from vizpub.cli.settings import Settings
from vizpub.model.errors import UseError
from vizpub.model.wording import amount

_HELP = """Construct an overlay for given subscriptions, and write its reports.

All subscriptions and who is up are known, at no cost in messages. With `--intervals` and
`--churn` there is an overlay for every interval. Both ends of an edge report it.

Examples:

```
vizpub lab construct cd-max --peers 200 --workload uniform:topics=100,subscriptions=10 --ingest max
vizpub lab construct 2d-oda --refine --peers 500 --intervals 20 --churn exponential:20s,down=10s
vizpub lab construct gm --run monday --at 12 --ingest designed
vizpub lab construct cd-max-ref --peers 1000000 --workload uniform:topics=10000 --parquet
```
"""


@dataclass(frozen=True)
class _InputOptions:
    """A stored run whose subscriptions replace a workload's, and the compiled construction."""

    run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Use peers and subscriptions of this run instead of --peers and --workload.",
            autocompletion=complete_runs,
        ),
    ] = None
    at: Annotated[
        str, typer.Option(metavar="TIME", help="With --run: the time, as in `vizpub topic`.")
    ] = "last"
    parquet: Annotated[
        bool,
        typer.Option(
            "--parquet",
            help="Use compiled code, for millions of peers: one interval, as Parquet "
            "(cd-oda-ii, cd-max, cd-max-ref).",
        ),
    ] = False


def _construct_parquet(
    ctx: typer.Context, name: str, chosen: dict[str, Any], options: SimulationOptions
) -> None:
    """Without a simulated world: everybody is up, and nobody publishes. Raises: UseError."""
    from vizpub.reports.records import RunHeader
    from vizpub.simulators.designs.algorithms import Design
    from vizpub.simulators.designs.parquet import parquet_costs, write_parquet
    from vizpub.simulators.designs.system import system_of
    from vizpub.simulators.engine.parameters import us
    from vizpub.simulators.engine.plan import make_plan

    settings: Settings = ctx.obj
    options = check_needs(ctx, drop_defaults(ctx, options, "--live", "--runs"))
    if options.live:
        raise UseError("--parquet writes a file and reports to nobody: leave out --live")
    plan = make_plan(system_of(name), chosen, options.seed)
    world = plan.world
    still = ("intervals", 1), ("churn", "none"), ("publications", "none")
    if wrong := [option for option, value in still if getattr(world, option) != value]:
        raise UseError(f"--parquet writes one interval of peers at rest: leave out --{wrong[0]}")
    if plan.parameters.near:
        raise UseError("--parquet has no delays: leave out --near")
    if options.runs > 1:
        raise UseError("--parquet writes one run: leave out --runs, and give a --seed")
    design = Design(name, plan.parameters.refine)
    header = RunHeader(
        run=plan.name, protocol=plan.protocol, seed=plan.seed, interval_us=us(world.interval),
        parameters=plan.describe(),
    )  # fmt: skip
    out = options.out or settings.workspace / "simulations" / f"{plan.name}-parquet"
    if (out / "reports.parquet").exists() and not options.replace:
        raise UseError(f"{out} has reports; give another --out, or --replace to replace them")
    costs = parquet_costs(world.peers, world.get_workload())
    confirm_costs(settings, "the construction takes", costs, yes=options.yes)
    summary = write_parquet(design, world.peers, world.get_workload(), header, out)
    settings.say(
        f"{plan.name}: {amount(summary.nodes, 'peer')}, {amount(summary.edges, 'edge')}, "
        f"maximum degree {summary.maximum:,}; subscriptions {summary.drawing:.1f} s, overlay "
        f"{summary.constructing:.1f} s, file {summary.writing:.1f} s; {out}"
    )
    if options.ingest is not None:
        ingest_reports(settings, options.ingest, out, options, no_betweenness=True)


_EXAMPLES = """
Options can also be set in a TOML file (--config); the command line takes precedence.

Examples:

```
vizpub lab construct {name} --peers 200 --workload uniform:topics=100,subscriptions=10
vizpub lab construct {name} --run monday --at 12 --ingest designed --no-load
```
"""


class _AlgorithmsGroup(LazyGroup):
    kind = "algorithm"

    def names(self) -> Sequence[str]:
        from vizpub.simulators.designs.algorithms import ALGORITHMS

        return list(ALGORITHMS)

    def create(self, name: str) -> Callable[..., None]:
        from vizpub.simulators.designs.system import CLASSES, OneInterval, system_of
        from vizpub.simulators.engine.systems import system_named

        def construct(
            ctx: typer.Context,
            settings: Settings,
            parameters: Any,
            world: Any,
            source: _InputOptions,
            options: SimulationOptions,
        ) -> None:
            if source.parquet:
                parameters = drop_defaults(ctx, parameters, "--near")
                world = drop_defaults(ctx, world, "--intervals", "--churn", "--publications")
            chosen = {**asdict(parameters), **asdict(world)}
            if source.run is not None:
                chosen |= subscriptions_of(settings, source.run, source.at)
            elif drop_defaults(ctx, source, "--at").at != "last":
                raise UseError("--at needs --run RUN")
            if source.parquet:
                _construct_parquet(ctx, name, chosen, options)
            else:
                simulate_all(ctx, system_of(name), chosen, options)

        construct.__doc__ = f"{CLASSES[name].__doc__}\n{_EXAMPLES.format(name=name)}"
        parameters_type = system_named(system_of(name)).parameters_type
        construct.__annotations__ |= {"parameters": parameters_type, "world": OneInterval}
        return construct


GROUP = command_group("construct", _HELP, cls=_AlgorithmsGroup)
