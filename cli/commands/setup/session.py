"""`vizpub session`: a Spark session that keeps running for later commands of a workspace."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from vizpub.cli.groups import command_group
from vizpub.cli.options import Output
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows

NO_SESSION = "no session was running"


def start(
    settings: Settings,
    idle: Annotated[
        float,
        typer.Option(
            metavar="MINUTES", min=0.1, help="End the session after this time without use."
        ),
    ] = 15.0,
) -> None:
    """Start a Spark session that keeps running, and wait until it is ready.

    An ingest into this workspace uses it instead of starting Spark. It serves one command at a
    time, and only commands of the user who started it.

    Examples:

    ```
    vizpub session start
    vizpub session start --idle 120
    ```
    """
    from vizpub.ingest.spark import staying

    with settings.progress() as progress:
        progress("Start Spark", 0, 0)
        session, was_there = staying.start_session(settings.scratch, idle)
    word = "was running already" if was_there else "is ready"
    ends = f"ends after {(session.ends_after_s or 0) / 60:g} minutes without a command"
    settings.say(f"a session for {settings.workspace} {word} (process {session.pid}; {ends})")


def stop(settings: Settings) -> None:
    """End the session now; a command that uses it fails, and can be repeated to resume.

    Examples:

    ```
    vizpub session stop
    ```
    """
    from vizpub.ingest.spark import staying

    was = staying.stop_session(settings.scratch)
    if was.state == "absent":
        settings.say(f"{NO_SESSION} for {settings.workspace}")
        return
    user = f", which process {was.used_by} was using," if was.used_by else ""
    settings.say(f"the session (process {was.pid}){user} has ended")


def status(settings: Settings, output: Output) -> None:
    """Show whether a session runs, since when, its memory, and whether it would be used.

    Examples:

    ```
    vizpub session status
    vizpub session status --format json
    ```
    """
    from vizpub.ingest.spark import staying

    facts = asdict(staying.session_status(settings.scratch))
    show_rows(OutputRows.of_records([facts]).upright(output), output, settings)


GROUP = command_group(
    "session", "Keep Spark running for small ingests.", start=start, stop=stop, status=status
)
