"""`vizpub live tell`: makes a peer leave a collected run, or join it again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from vizpub.cli.options import CollectorUrl, RunName, check_duration
from vizpub.cli.settings import Settings
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import CheckFailed, ServiceError

EXPIRED = "has expired"

_POLL_S = 0.2
_EXPIRED_S = 10.0
"""After which a command that has expired must be told to have."""


@dataclass(frozen=True)
class TellOptions:
    """The collector, and the time that the command waits for the peer."""

    expires: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            callback=check_duration,
            help="How long the command waits for the peer.",
        ),
    ] = "60s"
    url: CollectorUrl = None
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for the peer's answer.")
    ] = False


def tell(
    settings: Settings,
    run: RunName,
    peer: Annotated[str, typer.Argument(metavar="PEER", help="Name of the peer.")],
    action: Annotated[
        Literal["leave", "join"], typer.Argument(metavar="leave|join", help="Action of the peer.")
    ],
    options: TellOptions,
) -> None:
    """Make a peer leave the overlay of a collected run, or join it again.

    The peer's reporter fetches the command, obeys and answers; simulated peers that report to
    the collector do so. The collector must allow it: `vizpub live collect RUN --allow-commands`.
    For a collector elsewhere, give --url, and the admin token in VIZPUB_TOKEN. Exit code 1 if the
    peer did not obey.

    Examples:

    ```
    vizpub live tell lab 17 leave
    vizpub live tell lab 17 join --expires 5m
    ```
    """
    from vizpub.collector.http.client import collector_of
    from vizpub.collector.place import CollectionPlace

    seconds = parse_duration_us(options.expires) / 1_000_000
    collector = collector_of(CollectionPlace(settings.workspace, run), options.url)
    peer_command = collector.tell(peer, action, seconds)
    settings.say(f"command {peer_command['id']} is queued: peer '{peer}' is to {action}")
    if options.no_wait:
        return
    end = time.monotonic() + seconds + _EXPIRED_S
    while peer_command["state"] == "queued":
        if time.monotonic() > end:
            raise ServiceError(
                f"the collector at {collector.url} does not report the result of command "
                f"{peer_command['id']}"
            )
        time.sleep(_POLL_S)
        peer_command = collector.find_command(peer_command["id"])
    if peer_command["state"] == "expired":
        raise CheckFailed(f"command {peer_command['id']} {EXPIRED}: peer '{peer}' did not answer")
    if peer_command["state"] == "refused":
        reason = peer_command["reason"] or "no reason given"
        raise CheckFailed(f"peer '{peer}' does not {action}: {reason}")
    settings.say(f"peer '{peer}' has obeyed: {action}")
