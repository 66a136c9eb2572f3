"""SpiderCast's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive


@dataclass(frozen=True)
class SpiderCastParameters:
    """Parameters of SpiderCast, and of the membership service below it."""

    greedy: Annotated[
        Count, Meta(description="Neighbours for each topic, chosen to cover as many as they can.")
    ] = 3
    random: Annotated[Count, Meta(description="Neighbours for each topic, chosen at random.")] = 1
    view: Annotated[Positive, Meta(description="Peers whose interests a peer knows.")] = 50
    gossip: Annotated[Positive, Meta(description="Peers that a message of gossip describes.")] = 10
    expiry: Annotated[
        Duration, Meta(description="Age from which on a description counts no more.")
    ] = "20s"
    period: Annotated[
        Duration, Meta(description="Once a period a peer gossips, and changes its links.")
    ] = "1s"
    memory: Annotated[Duration, Meta(description="How long a message is remembered.")] = "1m"
    entries: Annotated[
        Positive, Meta(description="Subscribers to which a peer publishes without subscribing.")
    ] = 2
