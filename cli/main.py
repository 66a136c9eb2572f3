"""`vizpub`: the application, its global options and its commands."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vizpub.cli.commands.everyday import export
from vizpub.cli.commands.everyday.compare import compare
from vizpub.cli.commands.everyday.demo import demo
from vizpub.cli.commands.everyday.explore import explore
from vizpub.cli.commands.everyday.ingest import ingest, settle
from vizpub.cli.commands.everyday.metrics import metrics
from vizpub.cli.commands.everyday.overlay import dissemination, missed, path, topic, topics
from vizpub.cli.commands.everyday.plot import plot
from vizpub.cli.commands.everyday.query import cypher, query
from vizpub.cli.commands.everyday.sql import sql
from vizpub.cli.commands.everyday.summary import summary
from vizpub.cli.commands.everyday.tables import tables
from vizpub.cli.commands.lab import channels, construct, experiment, simulate
from vizpub.cli.commands.live.collect import collect
from vizpub.cli.commands.live.report import report
from vizpub.cli.commands.live.tell import tell
from vizpub.cli.commands.live.watch import watch
from vizpub.cli.commands.neo4j import neo4j
from vizpub.cli.commands.neo4j.load import load, rebuild, verify
from vizpub.cli.commands.runs import runs
from vizpub.cli.commands.setup import config, session
from vizpub.cli.commands.setup.doctor import doctor
from vizpub.cli.configuration import configuration, configure
from vizpub.cli.errors import CommandGroup
from vizpub.cli.imports import SPARK_COMMANDS, lean_imports
from vizpub.cli.options import command
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.streams import STYLE
from vizpub.model.errors import VizpubError
from vizpub.model.run import check_workspace
from vizpub.runstore.leftovers import sweep


class _Program(CommandGroup):
    """All commands, with the defaults of the configuration file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the global options and the file. Raises: the errors of `configure`."""
        if "--no-color" in args:
            from typer import rich_utils

            rich_utils.COLOR_SYSTEM = None  # of help and of wrong use, which typer prints
        rest = super().parse_args(ctx, args)
        STYLE.json = ctx.params["log_format"] == "json"
        try:
            configure(ctx)
        except VizpubError:
            if not ctx.resilient_parsing:  # the shell completes without the file
                raise
        STYLE.json = ctx.params["log_format"] == "json"
        return rest


app = typer.Typer(
    name="vizpub",
    cls=_Program,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"vizpub {version('vizpub')}")
        except PackageNotFoundError:
            print("vizpub (from a checkout)")
        raise typer.Exit


class _MessageHandler(logging.Handler):
    """Print log records as messages for the user."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower()
        self._settings.say(record.getMessage(), level, logger=record.name)


def _show_log(settings: Settings) -> None:
    """Print log records of the ingest on stderr: warnings, with --verbose also information."""
    logger = logging.getLogger("vizpub.ingest")
    logger.handlers = [_MessageHandler(settings)]
    logger.setLevel(logging.INFO if settings.debug or settings.verbose else logging.WARNING)
    logger.propagate = False


@dataclass(frozen=True)
class _MessageOptions:
    """Selection and form of the messages that are shown."""

    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show what an ingest does and why.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only errors, no messages or progress.")
    ] = False
    no_color: Annotated[
        bool, typer.Option("--no-color", help="Turn off colours (or set NO_COLOR=1).")
    ] = False
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(
            metavar="text|json", help="Show messages as text, or as one JSON object per line."
        ),
    ] = "text"


@app.callback()
@command
def vizpub(
    ctx: typer.Context,
    messages: _MessageOptions,
    workspace: Annotated[
        Path,
        typer.Option(
            envvar="VIZPUB_WORKSPACE",
            metavar="DIR",
            file_okay=False,
            help="Workspace: the directory of the runs and the local Neo4j.",
        ),
    ] = Path("vizpub-data"),
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="VIZPUB_CONFIG",
            metavar="FILE",
            is_eager=True,
            help="File with defaults of options (default: vizpub.toml in the workspace).",
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Collect, measure and query publish/subscribe overlays as they change over time.

    Global options come before the command:

    ```
    vizpub --workspace ~/study ingest traces/ --run monday
    vizpub --workspace ~/study metrics monday
    ```
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # for characters that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    if not messages.debug and not logging.getLogger().handlers:
        # Libraries log calls that were interrupted; the user knows that already.
        logging.getLogger().addHandler(logging.NullHandler())
    if ctx.invoked_subcommand not in SPARK_COMMANDS:
        ctx.with_resource(lean_imports())
    ctx.with_resource(configuration(ctx).in_environment())
    ctx.obj = Settings(
        workspace,
        debug=messages.debug,
        quiet=messages.quiet,
        color=not messages.no_color,
        verbose=messages.verbose,
        json_log=messages.log_format == "json",
        config=config,
    )
    check_workspace(workspace)
    _show_log(ctx.obj)
    if messages.verbose and (file := configuration(ctx).file):
        ctx.obj.say(f"read {file}")
    sweep(workspace)


_COMMANDS: dict[str, Sequence[typer.Typer | Callable[..., None]]] = {
    "Runs": (
        *(ingest, settle, collect, report, watch, tell, tables),
        *(simulate.GROUP, construct.GROUP, channels.GROUP, experiment.GROUP, runs.GROUP),
    ),
    "Metrics": (sql, metrics, summary, compare, plot),
    "Questions": (query, cypher, path, topic, topics, dissemination, missed, explore),
    "Graph in Neo4j": (load, verify, rebuild, neo4j.GROUP),
    "Set-up": (doctor, demo, session.GROUP, config.GROUP),
    "Files": (export.GROUP,),
}
"""Commands and groups, by their panel of the help."""

for panel, parts in _COMMANDS.items():
    for part in parts:
        if isinstance(part, typer.Typer):
            app.add_typer(part, rich_help_panel=panel)
        else:
            app.command(rich_help_panel=panel)(command(part))
