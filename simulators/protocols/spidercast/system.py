"""SpiderCast: an overlay whose links cover the topics of both ends.

Chockler, Melamed, Tock, Vitenberg, SpiderCast: A Scalable Interest-Aware Overlay for Topic-Based
Pub/Sub Communication, DEBS 2007. For each of its topics a peer wants some neighbours that share it.
It chooses them by a coverage-optimizing heuristic from a partial view of interests, and others at
random, and gives up those that neither end needs.

What is ours, as we could read the paper's abstract and introduction, and how others describe it:

- A link is *greedy* or *random*. For each topic there are to be `greedy` links of the first kind
  and `random` of the second. Once a period a peer that lacks some asks the peer of its view that
  subscribes to most of the topics that lack greedy links, and a random one that subscribes to any
  of those that lack random links. Who is asked accepts; the link counts for both ends.
- Once a period a peer asks a neighbour that it does not need whether that one needs it.
- A publication floods the links between subscribers of its topic (the paper is on the overlay
  alone). A publisher that does not subscribe sends it to subscribers of its view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from vizpub.simulators.engine.network import (
    HEADER_BYTES,
    Copy,
    Links,
    MessageKind,
    Network,
    Publication,
    System,
)
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.spidercast.parameters import SpiderCastParameters
from vizpub.simulators.protocols.spidercast.views import Description, InterestViews

Offer = tuple[Description, bool]
"""Who wants a link, and whether it is a random one."""


class SpiderCast(System):
    """Neighbours by coverage."""

    layers = ("overlay", "view")

    def __init__(self, net: Network, parameters: SpiderCastParameters, topics: int) -> None:
        self.net, self.entries = net, parameters.entries
        self.wanted = (parameters.greedy, parameters.random)
        self.views = InterestViews(net, parameters)
        self.neighbours: list[dict[int, frozenset[int]]] = [{} for _ in range(net.size)]
        """The neighbours and their topics."""
        self.randoms: list[set[int]] = [set() for _ in range(net.size)]
        """Those of them to which the link is a random one."""
        self.held = FirstCopies(net, us(parameters.memory))
        self.connect = net.kind("connect", self.on_connect, failed=self.on_refused)
        self.accept = net.kind("accept", self.on_accept, failed=self.on_unaccepted)
        self.part = net.kind("part", self.on_part)
        self.parted = net.kind("parted", self.on_parted, failed=self.on_unparted)
        self.interests = net.kind("interests", self.on_interests)
        self.copies = net.kind("publication", self.on_copy, failed=self.on_unsent, publication=True)
        net.every(us(parameters.period), self.on_tick)

    # Sessions and subscriptions.

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Begin with an empty view."""
        self.held.clear(peer)
        self.views.topics[peer] = frozenset(topics)
        self.views.of[peer], self.neighbours[peer], self.randoms[peer] = {}, {}, set()
        self.views.exchange(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """Tell the neighbours; more follow."""
        self._set_topics(peer, self.views.topics[peer] | {topic})

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Tell the neighbours; those that are of no use are given up."""
        self._set_topics(peer, self.views.topics[peer] - {topic})

    def _set_topics(self, peer: int, topics: frozenset[int]) -> None:
        self.views.topics[peer] = topics
        for neighbour in self.neighbours[peer]:
            self._send(self.interests, peer, neighbour)

    def on_interests(self, peer: int, sender: int, offer: Offer) -> None:
        """A neighbour has other topics."""
        if sender in self.neighbours[peer]:
            self.neighbours[peer][sender] = offer[0].topics

    # Links.

    def on_tick(self, peer: int) -> None:
        """Gossip, ask for links that lack, and offer to give one up."""
        self.views.exchange(peer)
        coverage = self._coverage(peer)
        for is_random in (False, True):
            wanted = self.wanted[is_random]
            lacking = {t for t in self.views.topics[peer] if coverage[is_random][t] < wanted}
            chosen = self._choose(peer, lacking, is_random) if lacking else None
            if chosen is not None:
                self._send(self.connect, peer, chosen, is_random)
        spare = [other for other in self.neighbours[peer] if self._is_spare(peer, other, coverage)]
        if spare:
            self._send(self.part, peer, self.net.random.choice(spare))

    def _coverage(self, peer: int) -> tuple[Counter[int], Counter[int]]:
        """The greedy and the random links for each topic."""
        coverage = Counter[int](), Counter[int]()
        for neighbour, topics in self.neighbours[peer].items():
            coverage[neighbour in self.randoms[peer]].update(topics)
        return coverage

    def _choose(self, peer: int, lacking: set[int], is_random: bool) -> int | None:
        """A peer of the view that covers some of the topics, or the most of them."""
        gains = {
            one.peer: gain
            for one in self.views.of[peer].values()
            if one.peer not in self.neighbours[peer] and (gain := len(one.topics & lacking))
        }
        best = 0 if is_random else max(gains.values(), default=0)
        able = [other for other, gain in gains.items() if gain >= best]
        return self.net.random.choice(able) if able else None

    def _is_spare(self, peer: int, other: int, coverage: tuple[Counter[int], Counter[int]]) -> bool:
        """Return True for a neighbour without which all topics are still covered."""
        is_random = other in self.randoms[peer]
        shared = self.neighbours[peer][other] & self.views.topics[peer]
        return all(coverage[is_random][topic] > self.wanted[is_random] for topic in shared)

    def _send(self, kind: MessageKind, peer: int, to: int, is_random: bool = False) -> None:
        one = self.views.describe(peer)
        self.net.send(kind, peer, to, (one, is_random), HEADER_BYTES + 1 + one.size)

    def _link(self, peer: int, offer: Offer) -> None:
        one, is_random = offer
        if one.peer not in self.neighbours[peer]:
            self.net.watch(peer, one.peer, self.on_down)
            if is_random:
                self.randoms[peer].add(one.peer)
        self.neighbours[peer][one.peer] = one.topics

    def _unlink(self, peer: int, other: int) -> None:
        if self.neighbours[peer].pop(other, None) is not None:
            self.randoms[peer].discard(other)
            self.net.unwatch(peer, other)

    def on_down(self, peer: int, other: int) -> None:
        """A neighbour is down."""
        self.views.on_lost(peer, other, None)
        self._unlink(peer, other)

    def on_connect(self, peer: int, sender: int, offer: Offer) -> None:
        """Accept a link."""
        self._link(peer, offer)
        self._send(self.accept, peer, sender, offer[1])

    def on_accept(self, peer: int, sender: int, offer: Offer) -> None:
        """The other end has the link."""
        self._link(peer, offer)

    def on_refused(self, peer: int, to: int, offer: Offer) -> None:
        """Forget a peer that is down."""
        self.views.on_lost(peer, to, None)

    def on_unaccepted(self, peer: int, to: int, offer: Offer) -> None:
        """Say it again as long as there is the link."""
        if to in self.neighbours[peer]:
            self._send(self.accept, peer, to, offer[1])

    def on_part(self, peer: int, sender: int, offer: Offer) -> None:
        """End a link that this end does not need either, or does not have."""
        if sender not in self.neighbours[peer] or self._is_spare(
            peer, sender, self._coverage(peer)
        ):
            self._unlink(peer, sender)
            self._send(self.parted, peer, sender)

    def on_parted(self, peer: int, sender: int, offer: Offer) -> None:
        """The other end ended the link."""
        self._unlink(peer, sender)

    def on_unparted(self, peer: int, to: int, offer: Offer) -> None:
        """Say it again unless there is a link again."""
        if to not in self.neighbours[peer]:
            self._send(self.parted, peer, to)

    # Publications.

    def publish(self, peer: int, publication: Publication) -> None:
        """Flood the topic's links, or give it to subscribers that are known."""
        copy, topic = Copy(publication, 0), publication.topic
        self.held.add(peer, copy)
        if topic in self.views.topics[peer]:
            self._spread(peer, peer, copy)
        else:
            view = self.views.of[peer].values()
            known = [one.peer for one in view if topic in one.topics]
            chosen = self.net.random.sample(known, min(self.entries, len(known)))
            self.net.forward(self.copies, peer, chosen, copy)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Send the first copy on."""
        if copy.publication.topic in self.views.topics[peer] and self.held.add(peer, copy):
            self._spread(peer, sender, copy)

    def _spread(self, peer: int, sender: int, copy: Copy) -> None:
        topic = copy.publication.topic
        neighbours = self.neighbours[peer].items()
        to = [other for other, topics in neighbours if topic in topics and other != sender]
        self.net.forward(self.copies, peer, to, copy)

    def on_unsent(self, peer: int, to: int, copy: Copy) -> None:
        """Send a lost copy again along a link."""
        if to in self.neighbours[peer]:
            self.net.forward(self.copies, peer, (to,), copy._replace(hops=copy.hops - 1))

    def links(self, peer: int) -> Iterator[Links]:
        """The neighbours, and the peers of the view."""
        yield Links("overlay", None, sorted(self.neighbours[peer]))
        yield Links("view", None, sorted(self.views.of[peer]))
