"""Magnet: Scribe's trees on a small world in which peers of like interests are near each other.

Girdzijauskas, Chockler, Vigfusson, Tock, Melamed, Magnet: Practical Subscription Clustering for
Internet-Scale Publish/Subscribe, DEBS 2010. Peers have few neighbours on Oscar, a small world that
bears uneven places. They are placed so that those of similar subscriptions are near each other, and
the trees of topics keep to them: fewer peers pass on what they did not subscribe to.

What is ours, as we could read the paper's abstract, and how others describe it:

- A peer's place follows from its topics by min-wise hashing (`small_world`). It keeps it until it
  comes up again. Without `cluster`, places are random: the plain system of the paper's comparison.
- Trees are Scribe's, with heartbeats. A join prefers a next hop that subscribes to the topic. So it
  leaves a cluster where that is nearest to the topic's key. (The paper's joins are random walks.)
- Neighbours on the ring are found by gossip, on the peer sampling of SpiderCast here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from vizpub.simulators.engine.network import Network
from vizpub.simulators.protocols.magnet.parameters import MagnetParameters
from vizpub.simulators.protocols.magnet.small_world import LAYERS, SmallWorld
from vizpub.simulators.protocols.scribe.system import Multicast


class Magnet(Multicast):
    """Trees on a clustered small world."""

    layers: ClassVar[Sequence[str]] = ("tree", "root", *LAYERS)
    routing: SmallWorld

    def __init__(self, net: Network, parameters: MagnetParameters, topics: int) -> None:
        super().__init__(
            net, parameters, lambda upcalls: SmallWorld(net, parameters, topics, upcalls)
        )

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self.routing.views.topics[peer] = frozenset(topics)
        super().join(peer, topics)

    def subscribe(self, peer: int, topic: int) -> None:
        """See System.subscribe."""
        self.routing.views.topics[peer] |= {topic}
        super().subscribe(peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """See System.unsubscribe."""
        self.routing.views.topics[peer] -= {topic}
        super().unsubscribe(peer, topic)
