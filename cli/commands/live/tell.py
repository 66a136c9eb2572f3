"""`vizpub tell`: a peer of a run that is collected leaves, or joins again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from vizpub.cli.options import RunName, command
from vizpub.cli.settings import Settings
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import CheckFailed, ServiceError

EXPIRED = "has expired"

_LOOK_S = 0.2
_EXPIRED_S = 10.0
"""After which a command that has expired must be told to have."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tell", rich_help_panel="Runs")(command(tell))


@dataclass(frozen=True)
class Waiting:
    """Who is asked, and for how long."""

    expires: Annotated[
        str, typer.Option(metavar="DURATION", help="How long the command waits for the peer.")
    ] = "60s"
    url: Annotated[str | None, typer.Option(metavar="URL", help="Of a collector elsewhere.")] = None
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for the peer's answer.")
    ] = False


def tell(
    settings: Settings,
    run: RunName,
    peer: Annotated[str, typer.Argument(metavar="PEER", help="Name of the peer.")],
    action: Annotated[
        Literal["leave", "join"], typer.Argument(metavar="leave|join", help="What it does.")
    ],
    waiting: Waiting,
) -> None:
    """Make a peer leave the overlay of a collected run, or join it again.

    The peer's reporter fetches the command, obeys and answers; peers of a simulation that reports
    to the collector do. The collector must allow it: `vizpub collect RUN --allow-commands`.
    For one elsewhere, give its --url, and the admin token in VIZPUB_TOKEN. Exit code 1: the peer
    did not obey.

    Examples:

    ```
    vizpub tell lab 17 leave
    vizpub tell lab 17 join --expires 5m
    ```
    """
    from vizpub.collector.http.client import collector_of
    from vizpub.collector.place import Place

    seconds = parse_duration_us(waiting.expires) / 1_000_000
    found = collector_of(Place(settings.workspace, run), waiting.url)
    given = found.tell(peer, action, seconds)
    settings.say(f"command {given['id']} is queued: peer '{peer}' is to {action}")
    end = time.monotonic() + seconds + _EXPIRED_S
    while given["state"] == "queued" and not waiting.no_wait:
        if time.monotonic() > end:
            raise ServiceError(
                f"the collector at {found.url} does not say what became of command {given['id']}"
            )
        time.sleep(_LOOK_S)
        given = found.command(given["id"])
    if not waiting.no_wait:
        _report(settings, given)


def _report(settings: Settings, given: dict[str, Any]) -> None:
    """Raises: CheckFailed where the peer did not obey."""
    peer, why = given["peer"], given["reason"]
    if given["state"] == "expired":
        raise CheckFailed(f"command {given['id']} {EXPIRED}: peer '{peer}' did not answer")
    if given["state"] == "refused":
        raise CheckFailed(f"peer '{peer}' does not {given['action']}: {why or 'no reason given'}")
    settings.say(f"peer '{peer}' has obeyed: {given['action']}")
