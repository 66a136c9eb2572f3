"""Pastry's parameters, sizes of messages, and interface to applications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from simulators.engine.network import TRANSPORT_BYTES
from simulators.engine.parameters import Count, Duration, Positive

_HEADER_BYTES = TRANSPORT_BYTES + 16
"""Bytes of any message: the transport's, its kind (8) and the sender's id (8)."""
_PEER_BYTES = 14
"""Bytes of a peer that is named in a message: id (8), address and port (6)."""
_ID_BYTES = 8


def bytes_of(peers: int = 0, ids: int = 0) -> int:
    """Bytes of a message that names that many peers and ids."""
    return _HEADER_BYTES + _PEER_BYTES * peers + _ID_BYTES * ids


@dataclass(frozen=True)
class PastryParameters:
    """Parameters of Pastry.

    An interval of 1 s, in which PolderCast gossips once, stands for the 30 s after which MSPastry
    probes (Castro et al. 2004), so leaf sets are probed once a second.
    """

    b: Annotated[int, Meta(ge=1, le=8, description="Bits of a digit of an id.")] = 4
    leaf_set: Annotated[
        int, Meta(ge=2, multiple_of=2, description="Peers in a leaf set, half on either side.")
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


class Application:
    """Events that Pastry reports to the application on top of it."""

    def ready(self, peer: int) -> None:
        """The peer has found its place; from now on it may route and answer for keys."""

    def leaves_changed(self, peer: int) -> None:
        """Others have come near to the peer on the ring."""

    def lost(self, peer: int, other: int) -> None:
        """The peer found that another one is down."""
