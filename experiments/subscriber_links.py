"""Scribe as the VizPub thesis shows it: the links of its trees between two subscribers.

Its Table 4.3 has 883 links in all among 833 peers, 193 at the end among 362. A tree joins every
subscriber to the topic's root, whoever lies on the way, so that whole trees have a link at the
least for nearly every peer with a subscription, and new ones as peers come and go. What is that
few are the links of a tree at both ends of which is a subscriber: the text speaks of "topic
neighbors", and of peers without any link whose topics nobody else online subscribes to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simulators.engine.network import Links, Network
from simulators.protocols.scribe import system
from simulators.protocols.scribe.parameters import ScribeParameters


class Scribe(system.Scribe):
    """Scribe; the layer `members` has the links of the layer `tree` between subscribers."""

    layers = ("members", "tree", "leafset", "routing", "neighbourhood")

    def __init__(self, net: Network, parameters: ScribeParameters, topics: int) -> None:
        super().__init__(net, parameters, topics)
        self.wanted: list[set[int]] = [set() for _ in range(net.size)]

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self.wanted[peer] = {*topics}
        super().join(peer, topics)

    def subscribe(self, peer: int, topic: int) -> None:
        """See System.subscribe."""
        self.wanted[peer].add(topic)
        super().subscribe(peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """See System.unsubscribe."""
        self.wanted[peer].discard(topic)
        super().unsubscribe(peer, topic)

    def links(self, peer: int) -> Iterable[Links]:
        """Those of Scribe, and again those between subscribers."""
        for held in super().links(peer):
            yield held
            if held.layer == "tree" and held.topic in self.wanted[peer]:
                yield Links("members", held.topic, self._subscribed(held))

    def _subscribed(self, held: Links) -> list[int]:
        return [other for other in held.peers if held.topic in self.wanted[other]]
