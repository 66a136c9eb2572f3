"""The routing tables of Vitis: ring, small-world links, and friends.

A table is bounded. It has the peer's successor and predecessor on the ring of ids, for each
small-world link the known peer nearest to a place drawn for it at a harmonic distance (Symphony:
Manku, Bawa, Raghavan, USITS 2003), and friends: the peers whose topics are most like its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest

from vizpub.simulators.engine.network import Network
from vizpub.simulators.protocols.chord.ring import ChordRing
from vizpub.simulators.protocols.spidercast.views import Description

_BITS = 64


def utility(one: frozenset[int], other: frozenset[int]) -> float:
    """The topics that both have over those that either has: the paper's utility for topics on
    which as much is published.
    """
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


class RoutingTables:
    """The tables of all peers, and the ring."""

    def __init__(self, net: Network, capacity: int, long: int, topics: int) -> None:
        self.net, self.capacity, self.long = net, capacity, min(long, capacity - 2)
        self.ring = ChordRing.of(net.size, _BITS, net.seed)
        self.keys = [self.ring.key(f"topic/{net.topic_name(topic)}") for topic in range(topics)]
        self.of: list[dict[int, Description]] = [{} for _ in range(net.size)]
        self._far: list[list[int]] = [[] for _ in range(net.size)]
        """The places of each peer's small-world links."""

    def reset(self, peer: int) -> None:
        """Empty a table, and draw the places of the small-world links anew."""
        self.of[peer] = {}
        self._far[peer] = [self._draw_place(peer) for _ in range(self.long)]

    def _draw_place(self, peer: int) -> int:
        """A place at a distance between 1/N and 1 of the ring, with density 1/distance."""
        share: float = self.net.size ** (self.net.random.random() - 1)
        return (self.ring.ids[peer] + int(share * self.ring.size)) % self.ring.size

    def distance(self, peer: int, place: int) -> int:
        """Ids between a peer and a place, by the shorter way round the ring."""
        apart = (self.ring.ids[peer] - place) % self.ring.size
        return min(apart, self.ring.size - apart)

    def choose(
        self, peer: int, topics: frozenset[int], candidates: Iterable[Description], oldest_us: int
    ) -> None:
        """Make the table anew of its peers and the candidates described since `oldest_us`."""
        known: dict[int, Description] = {}
        for one in (*self.of[peer].values(), *candidates):
            if one.made_us >= oldest_us and one.peer != peer:
                earlier = known.get(one.peer)
                if earlier is None or earlier.made_us < one.made_us:
                    known[one.peer] = one
        chosen: dict[int, Description] = {}
        if known:
            ids, own, size = self.ring.ids, self.ring.ids[peer], self.ring.size
            for nearest in (
                min(known, key=lambda other: (ids[other] - own) % size),
                min(known, key=lambda other: (own - ids[other]) % size),
            ):
                chosen[nearest] = known[nearest]
        for place in self._far[peer]:
            rest = known.keys() - chosen.keys()
            if rest:
                nearest = min(rest, key=lambda other: (self.distance(other, place), other))
                chosen[nearest] = known[nearest]
        friends = nlargest(
            self.capacity - len(chosen),
            known.keys() - chosen.keys(),
            key=lambda other: (utility(topics, known[other].topics), self.ring.ids[other]),
        )
        self.of[peer] = chosen | {other: known[other] for other in friends}

    def next_hop(self, peer: int, topic: int) -> int | None:
        """The peer of the table that is nearer to the topic's key than all others and the peer
        itself; null = the peer is the topic's rendezvous.
        """
        key = self.keys[topic]
        nearest = min((peer, *self.of[peer]), key=lambda other: (self.distance(other, key), other))
        return None if nearest == peer else nearest
