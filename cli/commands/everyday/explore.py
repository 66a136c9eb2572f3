"""`vizpub explore`: looks at runs in a web browser."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import typer

from vizpub.cli.completion import complete_runs
from vizpub.cli.settings import Settings
from vizpub.model.errors import UseError


@dataclass(frozen=True)
class _Serving:
    """Where the page is served, and who opens it."""

    port: Annotated[
        int,
        typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen at (0: any)."),
    ] = 0
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen at; others than this machine need a token."
        ),
    ] = "127.0.0.1"
    launch: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open a web browser (default: if this is a terminal)."
        ),
    ] = None
    allow_commands: Annotated[
        bool,
        typer.Option(
            "--allow-commands",
            help="Let the page tell peers of a collected run to leave and join (vizpub tell).",
        ),
    ] = False


def explore(
    settings: Settings,
    serving: _Serving,
    run: Annotated[str | None, typer.Argument(metavar="RUN", autocompletion=complete_runs)] = None,
) -> None:
    """Look at a run in a web browser: its overlay plays with its metrics, and its messages spread.

    Without RUN, the page lists the runs. It needs neither Neo4j nor Spark, and reads the run's
    files while it is open: Ctrl-C ends it. Nothing is written but layouts, in the user's cache. The
    page follows a run that is collected. At another address than this machine's, and with
    --allow-commands, the printed address has a token; what is sent can be read on the way.

    Examples:

    ```
    vizpub explore
    vizpub explore monday
    vizpub explore monday --port 8800 --no-open
    vizpub explore lab --allow-commands
    ```
    """
    from vizpub.explorer.serving import Listening, serve
    from vizpub.runstore.store import open_run

    if not settings.workspace.is_dir():
        raise UseError(
            f"no workspace {settings.workspace}; create a run with: vizpub ingest PATH --run NAME"
        )
    if run is not None:
        open_run(settings.workspace, run)

    def ready(address: str) -> None:
        print(address, flush=True)
        settings.say("the page is served until Ctrl-C")
        if sys.stdout.isatty() if serving.launch is None else serving.launch:
            typer.launch(address)

    listening = Listening(serving.host, serving.port, serving.allow_commands)
    with suppress(KeyboardInterrupt):
        serve(settings.workspace, run, listening, ready)
