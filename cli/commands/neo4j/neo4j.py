"""`vizpub neo4j`: the workspace's own Neo4j server."""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from vizpub.cli.commands.neo4j.browser import browser
from vizpub.cli.commands.neo4j.load import load, rebuild, verify
from vizpub.cli.groups import command_group, with_examples
from vizpub.cli.options import Output, Yes
from vizpub.cli.service import Container, local_server, start_local, stoppable_server
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows
from vizpub.cli.terminal.streams import confirm


def start(settings: Settings, output: Output) -> None:
    """Start the server; download Neo4j first if needed.

    Commands that load a run start it themselves, and so do queries once it has been started
    here. It runs until you stop it.

    Examples:

    ```
    vizpub neo4j start
    ```
    """
    _say_target(settings)
    start_local(settings)
    _show_status(settings, output)


def _say_target(settings: Settings) -> None:
    if uri := os.environ.get("NEO4J_URI"):
        settings.say(
            f"NEO4J_URI is set: other commands use {uri.rpartition('@')[2]}; "
            f"this one manages the local server of {settings.workspace}"
        )


def stop(settings: Settings) -> None:
    """Stop the server; its databases stay.

    Examples:

    ```
    vizpub neo4j stop
    ```
    """
    _say_target(settings)
    stopped = local_server(settings).stop()
    settings.say("Neo4j is stopped" if stopped else "no Neo4j was running here")


def status(settings: Settings, output: Output) -> None:
    """Show whether the server runs, where, and how much memory it has.

    Examples:

    ```
    vizpub neo4j status
    vizpub neo4j status --format json
    ```
    """
    _say_target(settings)
    _show_status(settings, output)


def _show_status(settings: Settings, output: Output) -> None:
    facts: dict[str, Any] = asdict(local_server(settings).status())
    facts["home"] = str(facts["home"])
    show_rows(OutputRows.of_records([facts]).upright(output), output, settings)


def dump(
    settings: Settings,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="Default: neo4j-<now>.dump in the current directory."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    container: Container = None,
) -> None:
    """Write the whole database to a file; the server is stopped while this runs.

    Examples:

    ```
    vizpub neo4j dump
    vizpub neo4j dump backups/monday.dump --force
    ```
    """
    from vizpub.graphstore.server.archive import dump

    file = file or Path(f"neo4j-{datetime.now():%Y%m%d-%H%M%S}.dump")
    place, connection = stoppable_server(settings, container)
    with settings.progress() as progress:
        progress(f"Dump into {file}", 0, 0)
        size = dump(place, connection.database, file, progress, overwrite=force)
    settings.say(f"{file} holds a dump of {connection.uri} ({size / 1e6:.1f} MB)")


def restore(
    settings: Settings,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `dump` wrote.")],
    yes: Yes = False,
    container: Container = None,
) -> None:
    """Replace the database with a dump; the server is stopped while this runs.

    The runs that are now in the database are removed from it; those in the workspace stay.

    Examples:

    ```
    vizpub neo4j restore backups/monday.dump --yes
    ```
    """
    from vizpub.graphstore.server.archive import restore

    place, connection = stoppable_server(settings, container)
    if not yes:
        confirm(f"Replace everything in {connection.uri} by {file}?")
    with settings.progress() as progress:
        progress(f"Restore {file}", 0, 0)
        restore(place, connection.database, file, progress)
    settings.say(f"{connection.uri} was restored from {file}; vizpub query runs shows its runs")


def remove(
    settings: Settings,
    yes: Yes = False,
) -> None:
    """Stop the server and delete its databases; the runs in the workspace stay.

    Examples:

    ```
    vizpub neo4j remove --yes
    ```
    """
    _say_target(settings)
    server = local_server(settings)
    home = server.status().home
    if not yes:
        confirm(f"Delete the Neo4j in {home}?")
    server.remove()
    settings.say(f"removed {home}; vizpub neo4j load RUN creates it again")


GROUP = command_group(
    "neo4j",
    with_examples(
        "Load runs into Neo4j, and manage the local server.",
        "vizpub neo4j load monday",
        "vizpub neo4j browser monday",
    ),
    load=load,
    verify=verify,
    rebuild=rebuild,
    start=start,
    stop=stop,
    status=status,
    browser=browser,
    dump=dump,
    restore=restore,
    remove=remove,
)
