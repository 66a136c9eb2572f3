"""Dissemination by gossip with local knowledge of subscriptions, as a system.

S. Ferretti, Publish-Subscribe Systems via Gossip: a Study based on Complex Networks, 2012,
Algorithm 1: who gets an event for the first time sends it to each neighbour that subscribes, and
to each other neighbour with probability gamma, but not back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vizpub.simulators.engine.network import Copy, Links, Network, Publication, System
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.broadcast.topologies import RandomGraph
from vizpub.simulators.protocols.gossip.coins import coin, event_key
from vizpub.simulators.protocols.gossip.links import NeighbourTables
from vizpub.simulators.protocols.gossip.parameters import GossipParameters, estimated_diameter


class Gossip(System):
    """Gossip to neighbours by what these subscribe to."""

    def __init__(self, net: Network, parameters: GossipParameters, topics: int = 0) -> None:
        self.net, self.gamma = net, parameters.gamma
        self.tables = NeighbourTables(net, parameters)
        self.held = FirstCopies(net, us(parameters.memory))
        degrees = np.array([len(others) for others in self.tables.planned], np.int64)
        self.diameter = estimated_diameter(degrees)
        self.ttl = parameters.ttl or 2 * self.diameter
        graph = parameters.get_topology()
        self._highest = int(degrees.max(initial=0))
        self._cut_off = graph.cut_off(net.size) if isinstance(graph, RandomGraph) else self._highest
        self.events = net.kind("event", self.on_event, publication=True)

    def header_facts(self) -> Mapping[str, Any]:
        """The end of the degrees, and of an event's way. The formulas have no cut-off."""
        return {
            "cut_off": self._cut_off,
            "highest_degree": self._highest,
            "estimated_diameter": self.diameter,
            "effective_ttl": self.ttl,
        }

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self.held.clear(peer)
        self.tables.join(peer, topics)

    def subscribe(self, peer: int, topic: int) -> None:
        """See System.subscribe."""
        self.tables.subscribe(peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """See System.unsubscribe."""
        self.tables.unsubscribe(peer, topic)

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        self._handle(peer, peer, Copy(publication, 0))

    def on_event(self, peer: int, sender: int, copy: Copy) -> None:
        """An event came from a neighbour."""
        if sender not in self.tables.known[peer]:
            self.tables.stranger(peer, sender)
        self._handle(peer, sender, copy)

    def _handle(self, peer: int, sender: int, copy: Copy) -> None:
        """Algorithm 1; `sender` is the peer itself if it published."""
        if copy.hops >= self.ttl or not self.held.add(peer, copy):
            return
        publication = copy.publication
        key, topics_of = event_key(self.net.seed, publication.message), self.tables.known[peer]
        chosen = [
            neighbour
            for neighbour in sorted(topics_of)
            if neighbour != sender
            and (
                publication.topic in topics_of[neighbour] or coin(key, peer, neighbour) < self.gamma
            )
        ]
        self.net.forward(self.events, peer, chosen, copy)

    def links(self, peer: int) -> Iterable[Links]:
        """The neighbours."""
        yield Links("overlay", None, sorted(self.tables.known[peer]))
