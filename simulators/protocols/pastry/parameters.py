"""Pastry's parameters, and the sizes of its messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import MOST, Count, Duration, Positive
from vizpub.simulators.protocols.routing import Sizes

SIZES = Sizes(id_bytes=8)
bytes_of = SIZES.of


@dataclass(frozen=True)
class PastryParameters:
    """Parameters of Pastry.

    An interval of 1 s, in which PolderCast gossips once, stands for the 30 s after which MSPastry
    probes (Castro et al. 2004), so leaf sets are probed once a second.
    """

    b: Annotated[int, Meta(ge=1, le=8, description="Bits of a digit of an id.")] = 4
    leaf_set: Annotated[
        int,
        Meta(ge=2, le=MOST, multiple_of=2, description="Peers in a leaf set, half on either side."),
    ] = 16
    neighbourhood: Annotated[Count, Meta(description="Peers in a neighbourhood set.")] = 32
    leaf_period: Annotated[
        Duration, Meta(description="A peer probes its left neighbour on the ring once per period.")
    ] = "1s"
    table_period: Annotated[
        Duration, Meta(description="A peer maintains its routing table once per period.")
    ] = "30s"
    retries: Annotated[
        Count, Meta(description="Unanswered probes after the first until a peer counts as dead.")
    ] = 2
    join_timeout: Annotated[
        Duration, Meta(description="Time after which an unanswered join is repeated.")
    ] = "3s"
    join_attempts: Annotated[
        Positive, Meta(description="Unanswered joins until a peer starts a ring of its own.")
    ] = 5
