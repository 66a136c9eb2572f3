"""`vizpub`: the application, its global options and its commands."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vizpub.cli.commands.listing import COMMANDS
from vizpub.cli.configuration import configuration, configure
from vizpub.cli.environment import check_variables
from vizpub.cli.errors import CommandGroup
from vizpub.cli.groups import CommandsOnUse
from vizpub.cli.imports import lean_imports, starts_spark
from vizpub.cli.options import command
from vizpub.cli.renamed import NEW_NAMES, with_new_name
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.help import RARE
from vizpub.cli.terminal.streams import STYLE
from vizpub.cli.terminal.streams import message as show_message
from vizpub.machine.environment import environment
from vizpub.machine.files import as_errors_of_ours
from vizpub.model.errors import UnknownName, UseError, VizpubError
from vizpub.model.progress import WAITS
from vizpub.runstore.leftovers import sweep
from vizpub.runstore.stores.place import folder_of


class _Program(CommandGroup):
    """All commands, with the defaults of the configuration file."""

    def __init__(self, **fields: Any) -> None:
        places = {name: place for rows in COMMANDS.values() for name, (place, _) in rows.items()}
        super().__init__(**{**fields, "commands": CommandsOnUse(places)})

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        del ctx
        return list(self.commands)

    def summaries(self, ctx: Any) -> Iterator[tuple[str, str, str]]:
        """The panel, name and summary of every command."""
        del ctx
        for panel, rows in COMMANDS.items():
            yield from ((panel, name, summary) for name, (_, summary) in rows.items())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the global options and the file. Raises: the errors of `configure`, UseError."""
        super().parse_args(ctx, args)
        STYLE.json = ctx.params["log_format"] == "json"
        words, old = with_new_name([*ctx._protected_args, *ctx.args])
        rest = words[1:]
        ctx._protected_args, ctx.args = words[:1], rest
        try:
            configure(ctx)
            check_variables(ctx, words)
        except VizpubError:
            if not ctx.resilient_parsing:  # the shell completes without the file
                raise
        STYLE.json = ctx.params["log_format"] == "json"
        if not ctx.resilient_parsing and not ctx.params["quiet"]:
            _show_new_names(ctx, old)
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of these words. Raises: UnknownName; former names are near, too."""
        name = args[0]
        if ctx.resilient_parsing or name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        names = {**NEW_NAMES, **{known: known for known in self.commands}}
        if near := dict.fromkeys(names[old] for old in get_close_matches(name, names)):
            raise UseError(f"no command '{name}'; did you mean {' or '.join(near)}?")
        raise UnknownName("command", name, [*self.commands], f"{ctx.command_path} --help")

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with few imports if it only reads."""
        if not starts_spark([*ctx._protected_args, *ctx.args]):
            ctx.with_resource(lean_imports())
        return super().invoke(ctx)


def _show_new_names(ctx: Any, old: str | None) -> None:
    """Show the present names of what was called or set by a former one."""
    renamed = dict(configuration(ctx).renamed)
    if old is not None:
        renamed[f"vizpub {old}"] = f"vizpub {NEW_NAMES[old]}"
    for former, new in renamed.items():
        show_message(f"'{former}' is now '{new}'; the old name works in this version", "warning")


app = typer.Typer(
    name="vizpub",
    cls=_Program,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from vizpub.model.version import __version__

        print(f"vizpub {__version__}")
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
    """Print log records on stderr: long waits, and of the ingest warnings, with --verbose also
    information.
    """
    ingest_level = logging.INFO if settings.debug or settings.verbose else logging.WARNING
    for name, level in {"vizpub.ingest": ingest_level, WAITS: logging.INFO}.items():
        logger = logging.getLogger(name)
        logger.handlers = [_MessageHandler(settings)]
        logger.setLevel(level)
        logger.propagate = False


@dataclass(frozen=True)
class _MessageOptions:
    """Selection and form of the messages that are shown."""

    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=RARE)
    ] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show what an ingest does and why.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only errors, no messages or progress.")
    ] = False
    no_color: Annotated[
        bool,
        typer.Option(
            "--no-color", help="Turn off colours (or set NO_COLOR=1).", rich_help_panel=RARE
        ),
    ] = False
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(
            metavar="text|json",
            help="Show messages as text, or as one JSON object per line.",
            rich_help_panel=RARE,
        ),
    ] = "text"


@dataclass(frozen=True)
class _StoreOptions:
    """The server of a workspace in S3."""

    s3_endpoint: Annotated[
        str,
        typer.Option(
            envvar="AWS_ENDPOINT_URL",
            metavar="URL",
            help="Another S3 server.",
            rich_help_panel=RARE,
        ),
    ] = ""
    s3_region: Annotated[
        str,
        typer.Option(
            envvar="AWS_REGION",
            metavar="NAME",
            help="S3 region.",
            rich_help_panel=RARE,
        ),
    ] = ""


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
            help="Folder of the runs and the local Neo4j; or, for the runs, s3://BUCKET/PREFIX or "
            "hdfs://HOST:PORT/PATH.",
        ),
    ] = Path("vizpub-data"),
    s3: _StoreOptions = _StoreOptions(),
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="VIZPUB_CONFIG",
            metavar="FILE",
            is_eager=True,
            help="Defaults of options (default: vizpub.toml in the workspace).",
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Collect, measure and query publish/subscribe overlays as they change over time.

    Examples:

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
    ctx.with_resource(environment(configuration(ctx).variables))
    workspace = folder_of(workspace, s3.s3_endpoint, s3.s3_region)
    ctx.obj = Settings(
        workspace,
        debug=messages.debug,
        quiet=messages.quiet,
        color=not messages.no_color,
        verbose=messages.verbose,
        json_log=messages.log_format == "json",
        config=config,
    )
    _show_log(ctx.obj)
    if messages.verbose and (file := configuration(ctx).file):
        ctx.obj.say(f"read {file}")
    with as_errors_of_ours(workspace):
        sweep(workspace)
