"""Quasar's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive


@dataclass(frozen=True)
class QuasarParameters:
    """Parameters of Quasar. The paper's could not be read: these are chosen."""

    degree: Annotated[Positive, Meta(description="Neighbours of a peer.")] = 10
    depth: Annotated[
        Positive, Meta(description="Hops over which routing vectors tell of members.")
    ] = 2
    walks: Annotated[
        Positive, Meta(description="Walks that the publisher and each new receiver begin.")
    ] = 3
    ttl: Annotated[
        Positive, Meta(description="Steps without a new receiver after which a walk ends.")
    ] = 10
    negated: Annotated[
        Count, Meta(description="Receivers that a walk carries, whose routes count no more.")
    ] = 20
    filter_bits: Annotated[
        Positive, Meta(description="Bits of a Bloom filter per member and topic: only a size.")
    ] = 10
    period: Annotated[
        Duration, Meta(description="A peer sends its routing vectors once per period.")
    ] = "1s"
    memory: Annotated[Duration, Meta(description="How long a message is remembered.")] = "1m"
