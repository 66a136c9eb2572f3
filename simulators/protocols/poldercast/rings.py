"""RINGS: per topic a ring of its subscribers.

The layer of PolderCast (Setty et al., PolderCast: Fast, Robust, and Scalable Architecture for
P2P Topic-Based Pub/Sub, Middleware 2012) along which publications travel. All peers have a position
in one circular order; for each of its topics, a peer looks for the next subscribers on both sides.
Once a period it adds the peers that the other layers know, and exchanges with its oldest ring
neighbour: for each common topic, each gets the peers nearest to itself on both sides among those
that the other knows. Every message begins with its sender.

A neighbour stays in the rings while it is asked, until it fails to answer, so that publications
find no gap meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from vizpub.model.arrays import Int32s
from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.engine.parameters import Duration, us
from vizpub.simulators.protocols.poldercast.views import AGE, PEER
from vizpub.simulators.protocols.poldercast.views_overlay import OverlayState
from vizpub.simulators.protocols.poldercast.views_rings import answer_rings, learn, open_rings


@dataclass(frozen=True)
class RingsParameters:
    """Parameters of RINGS; the overlay sets the number of neighbours in a ring."""

    period: Annotated[Duration, Meta(description="Each peer starts one exchange per period.")] = (
        "1s"
    )


class Rings:
    """RINGS, on top of any other layers of the overlay.

    All peers of the overlay take part. Without CYCLON, a peer without ring neighbours asks the
    bootstrap service, which helps if those two share a topic.
    """

    def __init__(self, net: Network, parameters: RingsParameters, overlay: OverlayState) -> None:
        self.net, self.overlay = net, overlay
        self.is_alone = overlay.cyclon.shape[2] == 0
        self.request = net.kind("rings-request", self.on_request, failed=self.on_lost)
        self.reply = net.kind("rings-reply", self.on_reply)
        net.every(us(parameters.period), self.on_tick)

    def on_tick(self, peer: int) -> None:
        """Open an exchange."""
        target, message, size = open_rings(self.overlay.packed, peer)
        if target >= 0:
            self.net.send(self.request, peer, target, message, size)
        elif self.is_alone and (contact := self.net.contact(peer)) is not None:
            learn(self.overlay.packed, peer, np.array([[contact], [0]], np.int32))

    def on_request(self, peer: int, sender: int, received: Int32s) -> None:
        """Answer an exchange."""
        answer, size = answer_rings(self.overlay.packed, peer, received)
        self.net.send(self.reply, peer, sender, answer, size)

    def on_reply(self, peer: int, sender: int, received: Int32s) -> None:
        """Close an exchange."""
        learn(self.overlay.packed, peer, received)

    def on_lost(self, peer: int, to: int, payload: Int32s) -> None:
        """There was no answer."""
        self.overlay.forget(peer, to)

    def complete(self, peers: Iterable[int]) -> None:
        """Set the rings that gossip among these peers, which have joined, converges to."""
        subscribers: dict[int, list[int]] = {}
        for peer in sorted(peers, key=self.overlay.position.__getitem__):
            self.overlay.rings_of(peer)[:] = -1
            for topic in self.overlay.topics[peer]:
                subscribers.setdefault(topic, []).append(peer)
        side = self.overlay.rings.shape[2] // 2
        for topic, ring in subscribers.items():
            near = [step for step in range(1, side + 1) if step < len(ring)]
            for k, peer in enumerate(ring):
                row = self.overlay.rings_of(peer)[self.overlay.topics[peer].index(topic)]
                for step in near:
                    row[PEER, step - 1] = ring[(k + step) % len(ring)]
                    row[PEER, side + step - 1] = ring[k - step]
                row[AGE] = 0

    def links(self, peer: int) -> Iterable[Links]:
        """The ring neighbours, topic by topic."""
        rows = self.overlay.rings_of(peer)[:, PEER].tolist()
        for topic, row in zip(self.overlay.topics[peer], rows, strict=True):
            is_whole = -1 not in row and len({*row}) == len(row)
            peers = row if is_whole else [peer for peer in dict.fromkeys(row) if peer >= 0]
            yield Links("rings", topic, peers)
