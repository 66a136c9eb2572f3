"""Parameters of broadcasts, and their models by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive, Share
from vizpub.simulators.engine.specs import parse


class BroadcastModel(Protocol):
    """How a publication spreads."""

    example: ClassVar[str]


@dataclass(frozen=True)
class FloodModel:
    """To all neighbours but the one it came from."""

    example: ClassVar[str] = "flood"


@dataclass(frozen=True)
class FanoutModel:
    """To some neighbours, drawn for each publication, but not to the one it came from."""

    fanout: Annotated[Positive, Meta(description="F: neighbours that get it.")] = 4
    example: ClassVar[str] = "fanout:4"


@dataclass(frozen=True)
class GossipModel:
    """From the publisher to all neighbours, from others to each with the same probability."""

    probability: Annotated[Share, Meta(description="Share of the neighbours that get it.")] = 0.8
    example: ClassVar[str] = "gossip:0.8"


@dataclass(frozen=True)
class PlumtreeModel:
    """Along a tree that forms itself; other links announce publications, to repair it."""

    timeout: Annotated[
        Duration, Meta(description="How long a peer waits for an announced publication.")
    ] = "1s"
    again: Annotated[
        Duration, Meta(description="How long it waits for each further announcer it asks.")
    ] = "500ms"
    batch: Annotated[
        Duration | None,
        Meta(description="How long announcements to a neighbour are collected; none: not at all."),
    ] = None
    optimise: Annotated[
        Count,
        Meta(description="Hops that an announcement must save to be the new parent; 0: never."),
    ] = 0
    example: ClassVar[str] = "plumtree:timeout=1s,batch=100ms,optimise=7"


BROADCASTS: Mapping[str, type[BroadcastModel]] = {
    "flood": FloodModel,
    "fanout": FanoutModel,
    "gossip": GossipModel,
    "plumtree": PlumtreeModel,
}


class RecoveryBound(Protocol):
    """How far back a recovery goes."""

    example: ClassVar[str]


@dataclass(frozen=True)
class NoRecovery:
    """Nothing is sent again."""

    example: ClassVar[str] = "none"


@dataclass(frozen=True)
class LastPublications:
    """The last publications on each topic."""

    publications: Annotated[Positive, Meta(description="Publications per topic.")] = 10
    example: ClassVar[str] = "last:10"


@dataclass(frozen=True)
class RecentPublications:
    """What was published lately."""

    age: Annotated[Duration, Meta(description="How old a publication may be.")] = "30s"
    example: ClassVar[str] = "since:30s"


BOUNDS: Mapping[str, type[RecoveryBound]] = {
    "none": NoRecovery,
    "last": LastPublications,
    "since": RecentPublications,
}


@dataclass(frozen=True)
class BroadcastParameters:
    """Parameters of a broadcast."""

    broadcast: Annotated[
        str,
        Meta(description="How publications spread: flood, fanout:F, gossip:P or plumtree."),
    ] = "flood"
    memory: Annotated[
        Duration, Meta(description="How long a publication is remembered and can be sent again.")
    ] = "60s"
    recovery: Annotated[
        str,
        Meta(
            description="What a neighbour sends a peer that comes up or subscribes late, within "
            "the memory: none, last:N publications per topic, or since:DURATION."
        ),
    ] = "none"

    def __post_init__(self) -> None:
        """Check the models in advance. Raises: UseError."""
        self.get_broadcast()
        self.get_recovery()

    def get_broadcast(self) -> BroadcastModel:
        """The model of the broadcast."""
        return parse(self.broadcast, BROADCASTS, "broadcast")

    def get_recovery(self) -> RecoveryBound:
        """The bound of the publications that a late peer gets."""
        return parse(self.recovery, BOUNDS, "recovery")
