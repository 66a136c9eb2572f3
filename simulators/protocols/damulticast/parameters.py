"""daMulticast's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive


@dataclass(frozen=True)
class DaMulticastParameters:
    """Parameters of daMulticast."""

    arity: Annotated[
        Count,
        Meta(description="Subtopics of a topic: the first is the root; 0 = topics are flat."),
    ] = 0
    more: Annotated[
        Count, Meta(description="c: a member sends to ln S + c others of its S members.")
    ] = 5
    upward: Annotated[
        Positive, Meta(description="g: members, on average, that send to the supertopic.")
    ] = 5
    supers: Annotated[
        Positive, Meta(description="z: members of the supertopic that a peer knows.")
    ] = 3
    reached: Annotated[
        Positive, Meta(description="a: of these, how many such a member sends to on average.")
    ] = 1
    view: Annotated[Positive, Meta(description="Peers of a topic that a peer knows.")] = 20
    gossip: Annotated[Positive, Meta(description="Peers that a message of gossip names.")] = 10
    expiry: Annotated[
        Duration, Meta(description="Age from which on peers of a view count no more.")
    ] = "10s"
    period: Annotated[Duration, Meta(description="Once a period a peer gossips in each topic.")] = (
        "1s"
    )
    memory: Annotated[Duration, Meta(description="How long a message is remembered.")] = "1m"
