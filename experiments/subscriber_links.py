"""Scribe as the VizPub thesis shows it: only the links of trees between two subscribers.

Table 4.3 of the thesis has 883 links in total among 833 peers, and 193 at the end among 362. A
whole tree connects every subscriber to the topic's root through any peers, so whole trees have at
least one link for nearly every subscriber, and more under churn. Only the links between two
subscribers are that few. The text supports this: it speaks of "topic neighbors", and of peers
without links because no other peer that is online subscribes to their topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.protocols.scribe import system
from vizpub.simulators.protocols.scribe.parameters import ScribeParameters


class SubscriberScribe(system.Scribe):
    """Scribe; the layer `members` has the links of the layer `tree` between subscribers."""

    layers = ("members", *system.Scribe.layers)

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
        """The links of Scribe, and the links between subscribers again as `members`."""
        for tree_links in super().links(peer):
            yield tree_links
            if tree_links.layer == "tree" and tree_links.topic in self.wanted[peer]:
                members = [p for p in tree_links.peers if tree_links.topic in self.wanted[p]]
                yield Links("members", tree_links.topic, members)
