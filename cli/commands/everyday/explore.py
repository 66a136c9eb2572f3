"""`vizpub explore`: looks at runs in a web browser."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import typer

from vizpub.cli.options import OpenBrowser, OptionalRun, Window, drop_defaults
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.help import RARE
from vizpub.cli.terminal.streams import launch_pages
from vizpub.model.errors import UseError


@dataclass(frozen=True)
class _Serving:
    """Where the page is served, and who opens it."""

    port: Annotated[
        int,
        typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on (0: any free one)."),
    ] = 0
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on; other machines need a token.",
            rich_help_panel=RARE,
        ),
    ] = "127.0.0.1"
    launch: OpenBrowser = None
    allow_commands: Annotated[
        bool,
        typer.Option(
            "--allow-commands",
            help="Let the page tell peers of a collected run to leave and join (vizpub live tell).",
            rich_help_panel=RARE,
        ),
    ] = False


def explore(
    ctx: typer.Context,
    settings: Settings,
    serving: _Serving,
    window: Window,
    run: OptionalRun = None,
) -> None:
    """Watch a run in a web browser: its overlay, metrics and messages.

    Without RUN, the page lists the runs. It needs neither Neo4j nor Spark: it reads the run's
    files until you press Ctrl-C, and follows a run that is collected. It writes only layouts, to
    the user's cache. With --allow-commands, or a --host that other machines can reach, the printed
    address contains a token; the traffic is not encrypted.

    Examples:

    ```
    vizpub explore
    vizpub explore monday
    vizpub explore monday --from 100 --to 200
    vizpub explore monday --port 8800 --no-open
    vizpub explore lab --allow-commands
    ```
    """
    from vizpub.explorer.server.serving import Listening, serve
    from vizpub.runstore.store import open_run

    if not settings.workspace.is_dir():
        raise UseError(
            f"no workspace {settings.place}; create a run with: vizpub ingest PATH --run NAME"
        )
    shown = None
    if run is not None:
        facts = open_run(settings.workspace, run).facts
        shown = run, window.clip(facts.clock, facts.epoch)
    elif drop_defaults(ctx, window, "--from", "--to") != Window():
        raise UseError("--from and --to need a run: vizpub explore RUN --from TIME")

    def ready(address: str) -> None:
        print(address, flush=True)
        settings.say("serving the page; press Ctrl-C to stop")
        launch_pages([address], serving.launch)

    listening = Listening(serving.host, serving.port, serving.allow_commands)
    with suppress(KeyboardInterrupt):
        serve(settings.workspace, shown, listening, ready)
