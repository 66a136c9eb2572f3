"""Vitis' parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration
from vizpub.simulators.protocols.spidercast.views import ViewParameters


@dataclass(frozen=True)
class VitisParameters(ViewParameters):
    """Parameters of Vitis, and of the peer sampling below it."""

    table: Annotated[
        int, Meta(ge=3, le=10_000, description="Peers in a routing table, the ring's included.")
    ] = 15
    long: Annotated[
        Count, Meta(description="Of these, small-world links to far places of the ring.")
    ] = 1
    depth: Annotated[
        Count, Meta(description="Hops within a cluster up to which a peer has the same gateway.")
    ] = 5
    period: Annotated[
        Duration,
        Meta(description="Once a period a peer gossips, tells its neighbours, and renews relays."),
    ] = "1s"
    memory: Annotated[Duration, Meta(description="How long a message is remembered.")] = "1m"
