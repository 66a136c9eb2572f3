"""StAN: an overlay for each topic, which share their links.

Matos, Nunes, Oliveira, Pereira, StAN: Exploiting Shared Interests without Disclosing Them in
Gossip-based Publish/Subscribe, IPTPS 2010; Matos, Felber, Oliveira, Pereira, Rivière, Scaling Up
Publish/Subscribe Overlays Using Interest Correlation for Link Sharing, TPDS 2013. Each topic has an
overlay of its own. They organize themselves apart, without telling anybody of a topic that it does
not subscribe to, and so that the links of different topics are the same pairs of peers where they
can be.

What is ours, as we could read the papers' abstracts, and how others describe them:

- A peer has `neighbors` places on a ring of ids, the same in all topics, and links in each topic to
  the first peer from each of them on that it has heard of. Places and ids are hashes, so that each
  overlay is a random graph. Without `sharing` each topic has places of its own.
- Peers are heard of by sampling within the topic. A link is told once a period to its other end; it
  carries publications in both directions, and ends when it is not told any more.
- A publication floods the overlay of its topic (the papers are on the overlay). A publisher outside
  sends it to a random subscriber, which the bootstrap service names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vizpub.simulators.engine.network import HEADER_BYTES, Copy, Links, Network, Publication
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.chord.ring import ChordRing
from vizpub.simulators.protocols.stan.parameters import StANParameters
from vizpub.simulators.protocols.stan.sampling import TopicGossip

_BITS = 64


class StAN(TopicGossip):
    """Overlays of topics."""

    layers = ("overlay", "entry")

    def __init__(self, net: Network, parameters: StANParameters, topics: int) -> None:
        super().__init__(net, parameters, topics)
        self.parameters, self.expiry_us = parameters, us(parameters.expiry)
        self.ring = ChordRing.of(net.size, _BITS, net.seed)
        self.neighbours: list[dict[int, list[int]]] = [{} for _ in range(net.size)]
        """The neighbours that a peer chose, by topic."""
        self.choosers: list[dict[int, dict[int, int]]] = [{} for _ in range(net.size)]
        """By topic, those that chose the peer, and until when that counts."""
        self.entries: list[dict[int, int]] = [{} for _ in range(net.size)]
        """By topic, to whom the peer sent what it published from outside."""
        self.link = net.kind("link", self.on_link, failed=self.on_lost)

    # Sessions and subscriptions.

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Begin without neighbours."""
        self.neighbours[peer], self.choosers[peer], self.entries[peer] = {}, {}, {}
        super().join(peer, topics)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Leave an overlay; its peers notice when links are not told any more."""
        super().unsubscribe(peer, topic)
        self.neighbours[peer].pop(topic, None)
        self.choosers[peer].pop(topic, None)

    def on_lost(self, peer: int, to: int, message: object) -> None:
        """Forget a peer that does not answer."""
        super().on_lost(peer, to, message)
        for topic, neighbours in self.neighbours[peer].items():
            if to in neighbours:
                self.neighbours[peer][topic] = [other for other in neighbours if other != to]
        for choosers in self.choosers[peer].values():
            choosers.pop(to, None)

    # Links.

    def on_tick(self, peer: int) -> None:
        """Gossip, choose neighbours, and tell them."""
        super().on_tick(peer)
        for topic, view in self.sampling.of[peer].items():
            known = {*view, *self.neighbours[peer].get(topic, ())}
            self.neighbours[peer][topic] = self._choose(peer, topic, known)
            choosers = self.choosers[peer].get(topic, {}).items()
            self.choosers[peer][topic] = {one: end for one, end in choosers if end > self.net.now}
            for to in self.neighbours[peer][topic]:
                self.net.send(self.link, peer, to, topic, HEADER_BYTES + 4)

    def _choose(self, peer: int, topic: int, known: set[int]) -> list[int]:
        """The first known peer from each place on."""
        ids, size, chosen = self.ring.ids, self.ring.size, set[int]()
        of = "" if self.parameters.sharing else f"/{self.net.topic_name(topic)}"
        for number in range(min(self.parameters.neighbors, len(known))):
            place = self.ring.key(f"peer/{peer}{of}/{number}")
            chosen.add(min(known - chosen, key=lambda other: (ids[other] - place) % size))
        return sorted(chosen)

    def on_link(self, peer: int, sender: int, topic: int) -> None:
        """Another one chose this peer."""
        if topic in self.sampling.of[peer]:
            self.choosers[peer].setdefault(topic, {})[sender] = self.net.now + self.expiry_us

    # Publications.

    def publish(self, peer: int, publication: Publication) -> None:
        """Flood the topic's overlay, or give it to a subscriber."""
        copy, topic = Copy(publication, 0), publication.topic
        self.held.add(peer, copy)
        if topic in self.sampling.of[peer]:
            self._spread(peer, peer, copy)
        else:
            to = self.sampling.draw(topic, peer)
            self.entries[peer] |= dict.fromkeys((topic,), to[0]) if to else {}
            self.net.forward(self.copies, peer, to, copy)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Send the first copy on."""
        if copy.publication.topic in self.sampling.of[peer] and self.held.add(peer, copy):
            self._spread(peer, sender, copy)

    def _spread(self, peer: int, sender: int, copy: Copy) -> None:
        topic = copy.publication.topic
        neighbours = dict.fromkeys(self.neighbours[peer].get(topic, ()))
        neighbours |= dict.fromkeys(self.choosers[peer].get(topic, ()))
        neighbours.pop(sender, None)
        if neighbours or sender == peer:
            self.net.forward(self.copies, peer, [*neighbours], copy)

    def links(self, peer: int) -> Iterator[Links]:
        """The chosen neighbours of each topic, and where publications from outside entered."""
        for topic in sorted(self.neighbours[peer]):
            yield Links("overlay", topic, self.neighbours[peer][topic])
        for topic, to in sorted(self.entries[peer].items()):
            yield Links("entry", topic, (to,))
