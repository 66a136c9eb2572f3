"""Peer sampling within topics: who else subscribes, told to nobody outside.

The rule is NEWSCAST's, topic by topic: once a period, a peer and another one of its view send each
other some of the peers that they know and themselves; both keep those that were heard of last. A
peer without a view of a topic asks the bootstrap service, which knows the subscribers.
"""

from __future__ import annotations

from heapq import nlargest
from typing import NamedTuple, Protocol

from vizpub.simulators.engine.network import HEADER_BYTES, MessageKind, Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.membership import PEER_BYTES

View = dict[int, int]
"""Peers, and when each was up."""


class SamplingParameters(Protocol):
    """What the sampling needs to know."""

    @property
    def view(self) -> int:
        """Peers in a view."""

    @property
    def gossip(self) -> int:
        """Peers that a message names."""

    @property
    def expiry(self) -> str:
        """Age from which on a peer counts no more."""


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
