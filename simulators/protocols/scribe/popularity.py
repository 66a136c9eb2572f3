"""Broadcast or tree, by a topic's popularity: the publish/subscribe layer of the report by Vivoli,
Costa and Silva (2019), section 3, which left it to a later phase.

Subscribers are counted up each tree, so its root, the owner of the topic's key, knows how many
there are. A publisher asks the owner, routed as any message, whether to broadcast or to use the
tree, and keeps the answer for a while; until it comes the publication waits. A broadcast floods the
report's unstructured overlay, HyParView, or Chord's links; peers that do not subscribe only pass
it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from vizpub.simulators.engine.network import Copy, Links, Network, Publication
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.membership import Membership
from vizpub.simulators.protocols.chord.overlay import ChordOverlay
from vizpub.simulators.protocols.hyparview.membership import PartialViews
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters
from vizpub.simulators.protocols.routing import NOBODY, TOO_FAR
from vizpub.simulators.protocols.scribe.on_chord import ScribeChord
from vizpub.simulators.protocols.scribe.parameters import PopularityParameters

_COUNT_BYTES = 4
_CHOICE_BYTES = 1


class _Question(NamedTuple):
    """How to publish on a topic, on its way to the topic's owner."""

    topic: int
    publisher: int
    hops: int = 0


_TOLD_AGAIN = 10
"""Heartbeats after which a parent is told the same again."""


class _Counts:
    """What a peer knows of the subscribers below it."""

    __slots__ = ("age", "below", "told")

    def __init__(self) -> None:
        self.below: dict[int, int] = {}
        """Subscribers by child, that child included."""
        self.told = (NOBODY, 0)
        """The parent that was told a sum, and the sum."""
        self.age = 0
        """Heartbeats since then."""


class RingLinks(Membership):
    """Chord's links as a membership: successor, predecessor and random fingers."""

    layers = ()
    is_symmetric = False

    def __init__(self, net: Network, routing: ChordOverlay, degree: int) -> None:
        super().__init__(net)
        self.routing, self.degree = routing, degree

    def join(self, peer: int) -> None:
        """Nothing: Chord joins."""

    def neighbours(self, peer: int) -> Sequence[int]:
        """The two next to the peer, and fingers drawn each time."""
        node = self.routing.nodes[peer]
        ring = [node.successor, node.predecessor]
        near = [to for to in dict.fromkeys(ring) if to not in (NOBODY, peer)]
        others = [to for to in node.known_peers() if to not in near]
        room = min(self.degree - len(near), len(others))
        return near + self.net.random.sample(others, room)

    def links(self, peer: int) -> Iterable[Links]:
        """None of its own."""
        return ()


class BroadcastOrTree(ScribeChord):
    """Scribe on Chord, with broadcasts on topics with many subscribers."""

    layers: ClassVar[Sequence[str]] = (*ScribeChord.layers, *PartialViews.layers)

    def __init__(self, net: Network, parameters: PopularityParameters, topics: int) -> None:
        super().__init__(net, parameters, topics)
        self.threshold = parameters.threshold
        self.membership: Membership = (
            PartialViews(net, HyParViewParameters(active=parameters.degree))
            if parameters.broadcasts == "hyparview"
            else RingLinks(net, self.routing, parameters.degree)
        )
        self.answer_us, self.timeout_us = (
            us(parameters.answer_period),
            us(parameters.lookup_timeout),
        )
        self.counts: list[dict[int, _Counts]] = [{} for _ in range(net.size)]
        self.answers: list[dict[int, tuple[bool, int]]] = [{} for _ in range(net.size)]
        """Of each peer by topic: whether to broadcast, and until when this holds."""
        self.waiting: list[dict[int, list[Publication]]] = [{} for _ in range(net.size)]
        """Publications of each peer that wait for an answer, by topic."""
        self.count = net.kind("count", self.on_count)
        self.ask = net.kind("ask how", self.on_ask, failed=self.on_ask_lost)
        self.answer = net.kind("answer how", self.on_answer)
        self.broadcast = self._kind("broadcast", self.on_broadcast, self.on_broadcast_lost)
        net.every(us(parameters.heartbeat), self.on_count_tick)

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self._reset(peer)
        super().join(peer, topics)
        self.membership.join(peer)

    def leave(self, peer: int) -> None:
        """See System.leave."""
        super().leave(peer)
        self.membership.leave(peer)

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        self._reset(peer)
        super().go_down(peer)
        self.membership.go_down(peer)

    def links(self, peer: int) -> Iterable[Links]:
        """Scribe's and Chord's links, and those of broadcasts."""
        yield from super().links(peer)
        yield from self.membership.links(peer)

    def _reset(self, peer: int) -> None:
        self.counts[peer], self.answers[peer], self.waiting[peer] = {}, {}, {}

    # Popularity.

    def subscribers(self, peer: int, topic: int) -> int:
        """Subscribers in the peer's part of the topic's tree, as it was told."""
        group = self.trees.members[peer].groups.get(topic)
        if group is None:
            return 0
        counts = self.counts[peer].get(topic)
        below = counts.below if counts else {}
        return group.is_subscribed + sum(below.get(child, 0) for child in group.children)

    def on_count_tick(self, peer: int) -> None:
        """Tell each parent how many subscribers there are below: if that has changed, and from time
        to time, as the message may be lost, or the parent may have been away.
        """
        counts, groups = self.counts[peer], self.trees.members[peer].groups
        for topic in [topic for topic in counts if topic not in groups]:
            del counts[topic]
        for topic, group in groups.items():
            held = counts.setdefault(topic, _Counts())
            now = group.parent, self.subscribers(peer, topic)
            held.age += 1
            is_due = held.told != now or held.age >= _TOLD_AGAIN
            if group.parent not in (NOBODY, peer) and is_due:
                held.told, held.age = now, 0
                size = self.trees.topic_bytes + _COUNT_BYTES
                self.net.send(self.count, peer, group.parent, (topic, now[1]), size)

    def on_count(self, peer: int, sender: int, topic_count: tuple[int, int]) -> None:
        """A child's subscribers."""
        topic, subscribers = topic_count
        if topic in self.trees.members[peer].groups:
            self.counts[peer].setdefault(topic, _Counts()).below[sender] = subscribers

    # Question and answer.

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        topic = publication.topic
        is_broadcast, until_us = self.answers[peer].get(topic, (False, 0))
        if until_us > self.net.now:
            self._publish(peer, publication, is_broadcast=is_broadcast)
            return
        # It is published now, though its copies wait for the answer.
        self.net.forward(self.up, peer, (), Copy(publication, 0))
        if topic in self.waiting[peer]:
            self.waiting[peer][topic].append(publication)
        else:
            self.waiting[peer][topic] = [publication]
            self.net.gauge(peer, "questions", 1)
            self.net.after(self.timeout_us, peer, self._give_up, topic, publication)
            self._pass_question(peer, _Question(topic, peer))

    def on_ask(self, peer: int, sender: int, question: _Question) -> None:
        """Answer as the owner, or pass the question on."""
        if question.hops <= TOO_FAR:
            self._pass_question(peer, question)

    def on_ask_lost(self, peer: int, to: int, question: _Question) -> None:
        """Use another hop."""
        self.routing.doubt(peer, to)
        self._pass_question(peer, question._replace(hops=question.hops - 1))

    def on_answer(self, peer: int, sender: int, answer: tuple[int, bool]) -> None:
        """Keep the answer, and publish what waits for it."""
        topic, is_broadcast = answer
        self.answers[peer][topic] = is_broadcast, self.net.now + self.answer_us
        for publication in self.waiting[peer].pop(topic, ()):
            self._publish(peer, publication, is_broadcast=is_broadcast)

    def _pass_question(self, peer: int, question: _Question) -> None:
        topic, publisher, hops = question
        to = self._next_hop(peer, topic)
        if to != peer:
            size = self.routing.sizes.of(peers=1, ids=1)
            self.net.send(self.ask, peer, to, question._replace(hops=hops + 1), size)
            return
        answer = topic, self.subscribers(peer, topic) >= self.threshold
        if publisher == peer:
            self.on_answer(peer, peer, answer)
        else:
            size = self.trees.topic_bytes + _CHOICE_BYTES
            self.net.send(self.answer, peer, publisher, answer, size)

    def _give_up(self, peer: int, topic: int, first: Publication) -> None:
        """Without an answer, use the tree."""
        if first in self.waiting[peer].get(topic, ()):
            for publication in self.waiting[peer].pop(topic):
                self._publish(peer, publication, is_broadcast=False)

    # Copies.

    def on_broadcast(self, peer: int, sender: int, copy: Copy) -> None:
        """Pass a broadcast on, once; without a subscription, it is not delivered here."""
        neighbours = self.membership.neighbours(peer)
        if self.membership.is_symmetric and sender not in neighbours:
            self.membership.stranger(peer, sender)
        member = self.trees.members[peer]
        if not member.seen.is_new(copy.publication.message):
            return
        group = member.groups.get(copy.publication.topic)
        if group is None or not group.is_subscribed:
            self.net.gauge(peer, "filtered", 1)
        targets = [to for to in neighbours if to != sender]
        if targets:
            self.net.forward(self.broadcast, peer, targets, copy)

    def on_broadcast_lost(self, peer: int, to: int, copy: Copy) -> None:
        """A neighbour did not acknowledge a copy."""
        self.membership.on_failure(peer, to)

    def _publish(self, peer: int, publication: Publication, *, is_broadcast: bool) -> None:
        self.net.gauge(peer, "broadcasts" if is_broadcast else "by_tree", 1)
        if is_broadcast:
            self.trees.members[peer].seen.is_new(publication.message)
            neighbours = self.membership.neighbours(peer)
            self.net.forward(self.broadcast, peer, neighbours, Copy(publication, 0))
        else:
            super().publish(peer, publication)
