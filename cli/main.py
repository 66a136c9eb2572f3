"""`vizpub`: the application, its global options and its commands."""

from __future__ import annotations

import logging
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from cli.commands import (
    compare,
    demo,
    doctor,
    experiment,
    export,
    ingest,
    load,
    metrics,
    neo4j,
    overlay,
    plot,
    query,
    runs,
    session,
    simulate,
    sql,
    summary,
    tables,
)
from cli.errors import CommandGroup
from cli.imports import SPARK_COMMANDS, lean_imports
from cli.settings import Settings
from runstore.leavings import sweep

app = typer.Typer(
    name="vizpub",
    cls=CommandGroup,
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


class _Say(logging.Handler):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def emit(self, record: logging.LogRecord) -> None:
        self._settings.say(record.getMessage())


def _show_log(settings: Settings) -> None:
    """Print log records of the ingest on stderr: warnings, with --debug also information."""
    logger = logging.getLogger("ingest")
    logger.handlers = [_Say(settings)]
    logger.setLevel(logging.INFO if settings.debug else logging.WARNING)
    logger.propagate = False


@app.callback()
def vizpub(
    ctx: typer.Context,
    workspace: Annotated[
        Path,
        typer.Option(
            envvar="VIZPUB_WORKSPACE",
            metavar="DIR",
            file_okay=False,
            help="The workspace: directory of the runs and the local Neo4j.",
        ),
    ] = Path("vizpub-data"),
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show errors only, no messages or progress.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colours (also: NO_COLOR=1).")
    ] = False,
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
    if not debug and not logging.getLogger().handlers:
        # Libraries log calls that were interrupted; the user knows that already.
        logging.getLogger().addHandler(logging.NullHandler())
    if ctx.invoked_subcommand not in SPARK_COMMANDS:
        ctx.with_resource(lean_imports())
    ctx.obj = Settings(workspace, debug=debug, quiet=quiet, color=not no_color)
    _show_log(ctx.obj)
    sweep(workspace)


for module in (
    simulate,
    experiment,
    ingest,
    runs,
    sql,
    tables,
    metrics,
    summary,
    compare,
    plot,
    query,
    overlay,
    load,
    neo4j,
    export,
    session,
    doctor,
    demo,
):
    module.register(app)
