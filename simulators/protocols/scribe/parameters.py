"""Scribe's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from simulators.engine.parameters import Duration, Positive
from simulators.protocols.pastry.parameters import PastryParameters


@dataclass(frozen=True)
class ScribeParameters(PastryParameters):
    """Of Scribe, and of the Pastry below it.

    An interval of 1 s stands for about 30 s of a real overlay (see PastryParameters). Peers have
    some ten parents in twenty trees, and heartbeats are most of all messages: every third
    interval is what keeps the traffic near one message per link and minute.
    """

    heartbeat: Annotated[
        Duration, Meta(description="A parent tells its children that it is there once a period.")
    ] = "3s"
    missed: Annotated[
        Positive, Meta(description="Heartbeats that fail to come until a child joins anew.")
    ] = 1
    deliver_on_route: Annotated[
        bool,
        Meta(description="Peers of the tree take a publication when it passes them to the root."),
    ] = False
    cache_root: Annotated[
        bool,
        Meta(description="Publishers in the tree send to the root itself, as far as they know it."),
    ] = False
