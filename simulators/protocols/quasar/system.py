"""Quasar: group multicast by directed walks, without rendezvous.

Wong, Guha, Quasar: A Probabilistic Publish-Subscribe System for Social Networks, IPTPS 2008. On an
overlay of arbitrary links, peers tell their neighbours in aggregated routing vectors which groups
have members near by. A publication goes in parallel random walks, which turn to a member as soon as
a vector tells of one; walks carry which members they have been to, and these routes are negated.

What is ours, as we could read the paper's abstract and introduction, and how others describe it:

- The overlay is HyParView's active view: symmetric, random, and repaired.
- Level i of the vector that a neighbour sends has the members i hops behind it. The paper's are
  attenuated Bloom filters; here they are exact, and only as large as filters. No walk is misled by
  a false positive.
- The publisher, and each member at its first copy, begins `walks` walks, one for each neighbour
  with the nearest members that are not negated, and others at random. A walk that comes to a member
  which has the message ends there: it absorbs it.
- A peer that is no member passes a walk on to a nearest member, or to a random neighbour, not back
  if it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vizpub.simulators.engine.network import (
    HEADER_BYTES,
    Copy,
    Links,
    Network,
    Publication,
    System,
)
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.hyparview.membership import PartialViews
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters
from vizpub.simulators.protocols.quasar.parameters import QuasarParameters

Level = dict[int, frozenset[int]]
"""Members at some distance, and their topics."""


class Quasar(System):
    """Routing vectors and walks."""

    layers = PartialViews.layers

    def __init__(self, net: Network, parameters: QuasarParameters, topics: int) -> None:
        self.net, self.parameters = net, parameters
        views = HyParViewParameters(
            active=parameters.degree, contact="random", period=parameters.period
        )
        self.views = PartialViews(net, views)
        self.topics: list[frozenset[int]] = [frozenset()] * net.size
        self.vectors: list[dict[int, list[Level]]] = [{} for _ in range(net.size)]
        """What each neighbour told last: its members, those one hop behind it, and so on."""
        self.held = FirstCopies(net, us(parameters.memory))
        self.tell = net.kind("routing vector", self.on_vector)
        self.copies = net.kind("publication", self.on_copy, failed=self.on_lost, publication=True)
        net.every(us(parameters.period), self.on_tick)

    # Sessions and subscriptions.

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Begin without vectors."""
        self.held.clear(peer)
        self.topics[peer], self.vectors[peer] = frozenset(topics), {}
        self.views.join(peer)

    def leave(self, peer: int) -> None:
        """See System.leave."""
        self.views.leave(peer)

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        self.views.go_down(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """The next vectors tell of it."""
        self.topics[peer] |= {topic}

    def unsubscribe(self, peer: int, topic: int) -> None:
        """The next vectors no longer tell of it."""
        self.topics[peer] -= {topic}

    # Routing vectors.

    def on_tick(self, peer: int) -> None:
        """Forget those who are no neighbours any more, and send vectors to the others."""
        neighbours = self.views.neighbours(peer)
        vectors = self.vectors[peer]
        self.vectors[peer] = {other: vectors[other] for other in neighbours if other in vectors}
        for to in neighbours:
            levels = [{peer: self.topics[peer]}, *self._levels_behind(peer, to)]
            entries = sum(len(topics) for level in levels for topics in level.values())
            size = HEADER_BYTES - (-entries * self.parameters.filter_bits // 8)
            self.net.send(self.tell, peer, to, levels, size)

    def _levels_behind(self, peer: int, to: int) -> Iterator[Level]:
        """The members that the other neighbours tell of, one hop farther away."""
        for hops in range(self.parameters.depth - 1):
            merged: Level = {}
            for other, levels in self.vectors[peer].items():
                if other != to and hops < len(levels):
                    merged |= levels[hops]
            merged.pop(to, None)
            yield merged

    def on_vector(self, peer: int, sender: int, levels: list[Level]) -> None:
        """Keep what a neighbour tells."""
        self.vectors[peer][sender] = levels

    # Walks.

    def publish(self, peer: int, publication: Publication) -> None:
        """Begin walks."""
        copy = Copy(publication, 0)
        self.held.add(peer, copy)
        self._begin(peer, peer, copy)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """A walk arrived."""
        if copy.publication.topic in self.topics[peer]:
            if self.held.add(peer, copy):
                self._begin(peer, sender, copy)
            return
        steps, *visited = copy.note
        if steps > 1:
            targets = self._targets(peer, sender, copy, visited, 1)
            self.net.forward(self.copies, peer, targets, copy._replace(note=(steps - 1, *visited)))

    def _begin(self, peer: int, sender: int, copy: Copy) -> None:
        """Begin walks in as many directions as there are to be."""
        visited = (
            [*copy.note[1:], peer][-self.parameters.negated :] if self.parameters.negated else []
        )
        targets = self._targets(peer, sender, copy, visited, self.parameters.walks)
        self.net.forward(
            self.copies, peer, targets, copy._replace(note=(self.parameters.ttl, *visited))
        )

    def _targets(
        self, peer: int, sender: int, copy: Copy, visited: list[int], most: int
    ) -> list[int]:
        """The neighbours with the nearest members that were not visited, then random ones; back to
        the sender only if there is no other.
        """
        others = [other for other in self.views.neighbours(peer) if other != sender]
        if not others:
            return list(self.views.neighbours(peer))[:most]
        self.net.random.shuffle(others)
        topic, vectors = copy.publication.topic, self.vectors[peer]

        def hops_to_member(other: int) -> int:
            for hops, level in enumerate(vectors.get(other, ())):
                if any(topic in topics and one not in visited for one, topics in level.items()):
                    return hops
            return self.parameters.depth

        return sorted(others, key=hops_to_member)[:most]

    def on_lost(self, peer: int, to: int, copy: Copy) -> None:
        """A neighbour is down, and the walk with it."""
        self.views.on_failure(peer, to)

    def links(self, peer: int) -> Iterator[Links]:
        """HyParView's views."""
        yield from self.views.links(peer)
