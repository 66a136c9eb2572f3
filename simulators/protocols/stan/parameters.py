"""StAN's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Duration, Positive


@dataclass(frozen=True)
class StANParameters:
    """Parameters of StAN, and of the peer sampling in each topic below it."""

    neighbors: Annotated[
        Positive, Meta(description="Neighbours that a peer chooses in the overlay of each topic.")
    ] = 4
    sharing: Annotated[
        bool,
        Meta(description="Choose them alike in all topics, so that these share links."),
    ] = True
    view: Annotated[Positive, Meta(description="Peers of a topic that a peer knows.")] = 20
    gossip: Annotated[Positive, Meta(description="Peers that a message of gossip names.")] = 10
    expiry: Annotated[
        Duration, Meta(description="Age from which on peers and links count no more.")
    ] = "10s"
    period: Annotated[
        Duration, Meta(description="Once a period a peer gossips in each topic, and links.")
    ] = "1s"
    memory: Annotated[Duration, Meta(description="How long a message is remembered.")] = "1m"
