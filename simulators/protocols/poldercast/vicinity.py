"""VICINITY: the peers nearest to each peer by their subscriptions.

Voulgaris and van Steen, VICINITY: A Pinch of Randomness Brings out the Structure, 2013, with the
nearness of PolderCast (Setty et al. 2012): first peers that subscribe to topics whose rings lack
neighbours, then peers that share more topics, then younger entries. Once a period a peer takes its
oldest neighbour out of its view and exchanges with it: each gets the peers nearest to itself among
all that the other knows in any layer, and keeps the nearest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.model.arrays import Int32s
from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.engine.parameters import Duration, Positive, us
from vizpub.simulators.protocols.poldercast.views import entries, insert
from vizpub.simulators.protocols.poldercast.views_overlay import OverlayState
from vizpub.simulators.protocols.poldercast.views_vicinity import (
    answer_nearest,
    merge_nearest,
    open_nearest,
)


@dataclass(frozen=True)
class VicinityParameters:
    """Parameters of VICINITY; the overlay sets the capacity of its view."""

    gossip: Annotated[Positive, Meta(description="Entries in a message.")] = 10
    period: Annotated[Duration, Meta(description="Each peer starts one exchange per period.")] = (
        "1s"
    )


class Vicinity:
    """VICINITY, on top of any other layers of the overlay.

    All peers of the overlay take part. Without CYCLON, a peer that knows no other peer asks the
    bootstrap service.
    """

    def __init__(self, net: Network, parameters: VicinityParameters, overlay: OverlayState) -> None:
        self.net, self.overlay, self.gossip = net, overlay, parameters.gossip
        # Without CYCLON, this layer must find its first contacts itself.
        self.is_alone = overlay.cyclon.shape[2] == 0
        self.request = net.kind("vicinity-request", self.on_request, failed=self.on_lost)
        self.reply = net.kind("vicinity-reply", self.on_reply)
        net.every(us(parameters.period), self.on_tick)

    def on_tick(self, peer: int) -> None:
        """Open an exchange."""
        target, message, size = open_nearest(self.overlay.packed, peer, self.gossip)
        if target >= 0:
            self.net.send(self.request, peer, target, message, size)
        elif self.is_alone and (contact := self.net.contact(peer)) is not None:
            insert(self.overlay.vicinity, peer, contact)

    def on_request(self, peer: int, sender: int, received: Int32s) -> None:
        """Answer an exchange."""
        answer, size = answer_nearest(self.overlay.packed, peer, received, self.gossip)
        self.net.send(self.reply, peer, sender, answer, size)

    def on_reply(self, peer: int, sender: int, received: Int32s) -> None:
        """Close an exchange."""
        merge_nearest(self.overlay.packed, peer, received)

    def on_lost(self, peer: int, to: int, payload: Int32s) -> None:
        """There was no answer."""
        self.overlay.forget(peer, to)

    def links(self, peer: int) -> Iterable[Links]:
        """The view."""
        yield Links("vicinity", None, entries(self.overlay.vicinity[peer]))
