"""Options of `vizpub lab simulate` and `construct`: the runs to make, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vizpub.cli.options import Master, Yes, drop_defaults, given_options
from vizpub.cli.terminal.help import RARE
from vizpub.machine.files import toml_of
from vizpub.model.errors import InputError, UnknownName, UseError, cause_of

MOST_RUNS = 10_000
"""Seeds of a setting."""


def _read_config(ctx: typer.Context, value: Path | None) -> Path | None:
    """Use a TOML file as defaults of the other options. Raises: InputError, UseError."""
    if value is None:
        return None
    try:
        content = toml_of(value)
    except (OSError, ValueError) as error:
        raise InputError(f"{value} cannot be read: {cause_of(error)}") from error
    options = {p.name: p for p in ctx.command.params if p.name not in ("config", "help", None)}
    chosen = {name.replace("-", "_"): item for name, item in content.items()}
    for name, item in chosen.items():
        if name not in options:
            raise UnknownName(f"option in {value}", name, sorted(filter(None, options)))
        if isinstance(item, dict | list):
            raise InputError(f"{value}: {name} is one value, not a table or a list")
        # Otherwise true would be read as the number 1.
        if (is_flag := getattr(options[name], "is_flag", False)) != isinstance(item, bool):
            raise InputError(f"{value}: {name} is {'' if is_flag else 'not '}true or false")
    ctx.default_map = {**(ctx.default_map or {}), **chosen}
    return value


@dataclass(frozen=True)
class SimulationOptions:
    """Number of runs, and options for their reports."""

    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the (first) run.")] = 1
    runs: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=MOST_RUNS,
            help="Number of runs, with consecutive seeds, in parallel.",
        ),
    ] = 1
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Output directory (default: one of its own in WORKSPACE/simulations).",
            rich_help_panel=RARE,
        ),
    ] = None
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace simulations that already exist.")
    ] = False
    yes: Yes = False
    ingest: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Also ingest the reports as a run of this name (several: NAME-SEED).",
        ),
    ] = None
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="With --ingest: layers whose links the metrics count.",
            rich_help_panel=RARE,
        ),
    ] = None
    no_load: Annotated[
        bool,
        typer.Option(
            "--no-load", help="With --ingest: do not load the run into Neo4j.", rich_help_panel=RARE
        ),
    ] = False
    master: Master = None
    live: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Also report to this collector, at the pace of the clock; repeatable.",
            rich_help_panel=RARE,
        ),
    ] = None
    speed: Annotated[
        float,
        typer.Option(
            metavar="X",
            min=0.001,
            help="With --live: simulated seconds per second of the clock.",
            rich_help_panel=RARE,
        ),
    ] = 1.0
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            is_eager=True,
            callback=_read_config,
            help="A TOML file with any of these options.",
        ),
    ] = None


def check_needs(ctx: typer.Context, options: SimulationOptions) -> SimulationOptions:
    """The options without defaults that do not apply. Raises: UseError for one that is given."""
    if options.ingest is None:
        options = drop_defaults(ctx, options, "--layers", "--no-load")
    if "--runs" in given_options(ctx):
        options = drop_defaults(ctx, options, "--live")
    options = drop_defaults(ctx, options, "--runs" if options.live else "--speed")
    if options.ingest is None and (options.layers or options.no_load):
        raise UseError("--layers and --no-load need --ingest NAME")
    if not options.live and options.speed != 1:
        raise UseError("--speed needs --live URL")
    if options.live and options.runs > 1:
        raise UseError("--live reports one run: give --runs 1")
    return options
