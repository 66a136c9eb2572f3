"""Pastry: routing by prefixes of ids on a ring (Rowstron and Druschel, Middleware 2001).

A message for a key goes from peer to peer, each of which shares one digit more with the key, to the
numerically closest peer: in about log₂ᵇ N hops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simulators.engine.network import Copy, Links, Network, Publication, System
from simulators.protocols.pastry.overlay import TOO_FAR, Overlay
from simulators.protocols.pastry.parameters import Application, PastryParameters


class Pastry(System):
    """The overlay on its own. A publication goes to the peer closest to its topic's key;
    subscriptions are ignored.
    """

    layers = ("leafset", "routing", "neighbourhood")

    def __init__(self, net: Network, parameters: PastryParameters, topics: int) -> None:
        self.net = net
        self.overlay = Overlay(net, parameters, topics, Application())
        self.routed = net.kind("routed", self.on_routed, failed=self.on_lost, publication=True)

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self.overlay.join(peer)

    def leave(self, peer: int) -> None:
        """See System.leave."""
        self.overlay.leave(peer)

    def gone(self, peer: int) -> None:
        """See System.gone."""
        self.overlay.gone(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """Nothing."""

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Nothing."""

    def publish(self, peer: int, publication: Publication) -> None:
        """Route it to its topic's key."""
        self._forward(peer, Copy(publication, 0))

    def links(self, peer: int) -> Iterable[Links]:
        """The layers leafset, routing and neighbourhood."""
        return self.overlay.links(peer)

    def on_routed(self, peer: int, sender: int, copy: Copy) -> None:
        """A publication in transit."""
        if copy.hops <= TOO_FAR:
            self._forward(peer, copy)

    def on_lost(self, peer: int, to: int, copy: Copy) -> None:
        """Use another route, as the peer did not acknowledge it."""
        self.overlay.doubt(peer, to)
        self._forward(peer, Copy(copy.publication, copy.hops - 1))

    def _forward(self, peer: int, copy: Copy) -> None:
        to = self.overlay.nodes[peer].next_hop(self.overlay.keys[copy.publication.topic])
        if to != peer or not copy.hops:
            self.net.forward(self.routed, peer, () if to == peer else (to,), copy)
