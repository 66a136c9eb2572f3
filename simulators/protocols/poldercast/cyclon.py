"""CYCLON: a random overlay by shuffling views.

Voulgaris, Gavidia, van Steen, CYCLON: Inexpensive Membership Management for Unstructured P2P
Overlays, 2005: the enhanced shuffle. Once a period a peer takes its oldest neighbour out of its
view and exchanges random entries with it; both replace the sent entries by the received ones. A
peer that is down is asked once more by each peer that holds it, and then forgotten.

The paper's shuffle takes no time. Here it takes a round trip, in which its opener may be asked by
others: it sends them none of the entries that it has just sent, and keeps the place of the
neighbour that it took out. Otherwise some entries would be in two views afterwards and others in
none: at a latency of a hundredth of the period the in-degree's standard deviation would be 2.9
instead of 2.2, for 10,000 peers with views of 35. One effect of latencies remains: entries in
transit are in no view.

An entry that both send is new to neither, and as a sent entry it may be overwritten in both views:
this gives 2.2 in a plain program without latencies, and 2.0 if such entries are spared.
Clustering and path lengths equal those that Leitão, Pereira, Rodrigues publish for CYCLON
(HyParView, 2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from vizpub.model.arrays import Int32s
from vizpub.simulators.engine.network import Links, Network, System
from vizpub.simulators.engine.parameters import Duration, Positive, us
from vizpub.simulators.protocols.poldercast.views import (
    ENTRY_BYTES,
    answer_shuffle,
    bytes_of,
    empty_views,
    entries,
    insert,
    merge_shuffle,
    open_shuffle,
    seed_state,
)

if TYPE_CHECKING:
    from vizpub.simulators.protocols.poldercast.views_overlay import OverlayState


@dataclass(frozen=True)
class CyclonParameters:
    """Parameters of CYCLON."""

    view: Annotated[Positive, Meta(description="Neighbours of a peer.")] = 20
    gossip: Annotated[Positive, Meta(description="Entries in a shuffle.")] = 8
    period: Annotated[Duration, Meta(description="Each peer starts one shuffle per period.")] = "1s"


class Cyclon(System):
    """CYCLON, on its own or as a layer of an overlay. It does not use topics.

    As a layer, it uses the overlay's views, random numbers and sizes of entries, and all layers
    forget a peer that does not answer.
    """

    layers = ("cyclon",)

    def __init__(
        self,
        net: Network,
        parameters: CyclonParameters,
        topics: int = 0,
        overlay: OverlayState | None = None,
    ) -> None:
        self.net, self.gossip = net, parameters.gossip
        self.overlay = overlay
        if overlay is None:
            self.views = empty_views(net.size, parameters.view)
            self.draws = seed_state(net.random)
            self.entry_bytes = np.full(net.size, ENTRY_BYTES, np.int32)
        else:
            self.views, self.draws = overlay.cyclon, overlay.draws
            self.entry_bytes = overlay.entry_bytes
        self.lent = np.zeros(net.size, np.int32)
        """Number of entries of each view that were sent with a pending shuffle."""
        failed = self.on_lost if overlay else None
        self.request = net.kind("cyclon-request", self.on_request, failed=failed)
        self.reply = net.kind("cyclon-reply", self.on_reply)
        net.every(us(parameters.period), self.on_tick)

    def join(self, peer: int, topics: Sequence[int] = ()) -> None:
        """Start with one neighbour, from the bootstrap service."""
        self.views[peer], self.lent[peer] = -1, 0
        self.find_contact(peer)

    def find_contact(self, peer: int) -> None:
        """Ask the bootstrap service for a neighbour."""
        contact = self.net.contact(peer)
        if contact is not None:
            insert(self.views, peer, contact)

    def on_tick(self, peer: int) -> None:
        """Open a shuffle."""
        target, message, size = open_shuffle(
            self.views, self.lent, self.draws, self.entry_bytes, peer, self.gossip
        )
        if target < 0:
            self.find_contact(peer)
        else:
            self.net.send(self.request, peer, target, message, size)

    def on_request(self, peer: int, sender: int, received: Int32s) -> None:
        """Answer a shuffle. The opener's entries are passed back only to save their storage; they
        are not part of the message.
        """
        answer = answer_shuffle(self.views, self.lent, self.draws, peer, received, self.gossip)
        size = bytes_of(self.entry_bytes, answer)
        self.net.send(self.reply, peer, sender, (answer, received), size)

    def on_reply(self, peer: int, sender: int, payload: tuple[Int32s, Int32s]) -> None:
        """Close a shuffle."""
        received, sent = payload
        self.lent[peer] = 0
        merge_shuffle(self.views, peer, received, sent, 0)

    def on_lost(self, peer: int, to: int, payload: Int32s) -> None:
        """There was no answer; the view has already dropped that peer."""
        assert self.overlay is not None
        self.overlay.forget(peer, to)

    def subscribe(self, peer: int, topic: int) -> None:
        """Nothing: sampling does not depend on subscriptions."""

    unsubscribe = subscribe

    def publish(self, peer: int, publication: object) -> None:
        """Nothing: CYCLON carries no publications."""

    def links(self, peer: int) -> Iterable[Links]:
        """The view."""
        yield Links("cyclon", None, entries(self.views[peer]))
