"""Peer sampling within topics: who else subscribes, told to nobody outside.

The rule is NEWSCAST's, topic by topic: once a period, a peer and another one of its view send each
other some of the peers that they know and themselves; both keep those that were heard of last. A
peer without a view of a topic asks the bootstrap service, which knows the subscribers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Annotated, NamedTuple

from msgspec import Meta

from vizpub.simulators.engine.network import HEADER_BYTES, Copy, MessageKind, Network, System
from vizpub.simulators.engine.parameters import Duration, Positive, us
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.broadcast.membership import PEER_BYTES

View = dict[int, int]
"""Peers, and when each was up."""


@dataclass(frozen=True)
class SamplingParameters:
    """Parameters of the sampling, and of systems that build on it."""

    view: Annotated[Positive, Meta(description="Peers of a topic that a peer knows.")] = 20
    gossip: Annotated[Positive, Meta(description="Peers that a message of gossip names.")] = 10
    expiry: Annotated[
        Duration, Meta(description="Age from which on peers of a view, and links, count no more.")
    ] = "10s"
    period: Annotated[Duration, Meta(description="Once a period a peer gossips in each topic.")] = (
        "1s"
    )
    memory: Annotated[Duration, Meta(description="How long a message is remembered.")] = "1m"


class _Sample(NamedTuple):
    topic: int
    peers: View


class TopicSampling:
    """The views of all peers, by topic."""

    def __init__(self, net: Network, parameters: SamplingParameters, topics: int) -> None:
        self.net, self.capacity, self.gossip = net, parameters.view, parameters.gossip
        self.expiry_us = us(parameters.expiry)
        self.of: list[dict[int, View]] = [{} for _ in range(net.size)]
        """The view of each topic that the peer subscribes to."""
        self._subscribers: list[dict[int, None]] = [{} for _ in range(topics)]
        """Of peers that are up: what the bootstrap service knows."""
        self.request = net.kind("view request", self.on_request, failed=self.on_lost)
        self.reply = net.kind("view reply", self.on_reply)

    def join(self, peer: int, topic: int) -> None:
        """The peer subscribes from now on."""
        self.of[peer][topic] = {}
        self._subscribers[topic][peer] = None
        self._exchange(peer, topic)

    def leave(self, peer: int, topic: int) -> None:
        """The peer no longer subscribes."""
        self.of[peer].pop(topic, None)
        self._subscribers[topic].pop(peer, None)

    def go_down(self, peer: int) -> None:
        """The peer is down."""
        for topic in list(self.of[peer]):
            self.leave(peer, topic)

    def size(self, topic: int) -> int:
        """Subscribers that are up."""
        return len(self._subscribers[topic])

    def draw(self, topic: int, peer: int, most: int = 1) -> list[int]:
        """Random other subscribers, from the bootstrap service."""
        others = [other for other in self._subscribers[topic] if other != peer]
        return self.net.random.sample(others, min(most, len(others)))

    def exchange(self, peer: int) -> None:
        """Exchange peers in each topic."""
        for topic in self.of[peer]:
            self._exchange(peer, topic)

    def _exchange(self, peer: int, topic: int) -> None:
        oldest = self.net.now - self.expiry_us
        view = {other: seen for other, seen in self.of[peer][topic].items() if seen >= oldest}
        self.of[peer][topic] = view
        to = [self.net.random.choice([*view])] if view else self.draw(topic, peer)
        if to:
            self._send(self.request, peer, to[0], topic)

    def _send(self, kind: MessageKind, peer: int, to: int, topic: int) -> None:
        known = [other for other in self.of[peer][topic] if other != to]
        chosen = self.net.random.sample(known, min(self.gossip - 1, len(known)))
        peers = {peer: self.net.now} | {other: self.of[peer][topic][other] for other in chosen}
        size = HEADER_BYTES + 4 + (PEER_BYTES + 4) * len(peers)
        self.net.send(kind, peer, to, _Sample(topic, peers), size)

    def on_request(self, peer: int, sender: int, sample: _Sample) -> None:
        """Answer alike, to a subscriber of the same topic."""
        if sample.topic in self.of[peer]:
            self._send(self.reply, peer, sender, sample.topic)
            self._merge(peer, sample)

    def on_reply(self, peer: int, sender: int, sample: _Sample) -> None:
        """Learn from it."""
        if sample.topic in self.of[peer]:
            self._merge(peer, sample)

    def on_lost(self, peer: int, to: int, message: object) -> None:
        """Forget a peer that does not answer."""
        for view in self.of[peer].values():
            view.pop(to, None)

    def _merge(self, peer: int, sample: _Sample) -> None:
        view = self.of[peer][sample.topic]
        for other, seen in sample.peers.items():
            if other != peer:
                view[other] = max(seen, view.get(other, 0))
        newest = nlargest(self.capacity, view.items(), key=lambda item: (item[1], item[0]))
        self.of[peer][sample.topic] = dict(newest)


class TopicGossip(System):
    """A system in which the subscribers of each topic keep to themselves."""

    def __init__(self, net: Network, parameters: SamplingParameters, topics: int) -> None:
        self.net = net
        self.sampling = TopicSampling(net, parameters, topics)
        self.held = FirstCopies(net, us(parameters.memory))
        self.copies = net.kind("publication", self.on_copy, failed=self.on_lost, publication=True)
        net.every(us(parameters.period), self.on_tick)

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self.held.clear(peer)
        for topic in topics:
            self.sampling.join(peer, topic)

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        self.sampling.go_down(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """Take part in one more topic."""
        self.sampling.join(peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Leave a topic; others notice when the peer is not heard of any more."""
        self.sampling.leave(peer, topic)

    def on_tick(self, peer: int) -> None:
        """Gossip."""
        self.sampling.exchange(peer)

    def on_lost(self, peer: int, to: int, message: object) -> None:
        """Forget a peer that does not answer."""
        self.sampling.on_lost(peer, to, message)

    @abstractmethod
    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """A copy of a publication arrived."""
