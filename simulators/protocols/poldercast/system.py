"""PolderCast: a ring per topic, with random links across it.

Setty, van Steen, Vitenberg, Voulgaris, PolderCast: Fast, Robust, and Scalable Architecture for
P2P Topic-Based Pub/Sub, Middleware 2012. Three layers gossip (`cyclon`, `vicinity`, `rings`);
publications travel along the ring of their topic, in both directions, and over random links:

- a peer that receives one from a ring neighbour forwards it to the other ring neighbour and to
  F − 1 random subscribers,
- a peer that receives it from another peer, or publishes it, forwards it to both ring neighbours
  and to F − 2 random subscribers (none if F = 1),
- a peer that already received it, or does not subscribe, does not forward it.

The random peers are subscribers of the topic that VICINITY knows; if these do not suffice, CYCLON,
then the rings of other topics. With complete rings of n ≥ 3 subscribers and F ≥ 2 each peer
forwards to F others, so there are n·F copies, if enough subscribers are known. A publisher that
does not subscribe sends it to F subscribers that it knows.

A peer remembers a message for at least `memory`, and forgets it when later messages arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from vizpub.simulators.engine.network import Copy, Links, Network, Publication, System
from vizpub.simulators.engine.parameters import Count, Duration, Positive, us
from vizpub.simulators.protocols.poldercast.cyclon import Cyclon, CyclonParameters
from vizpub.simulators.protocols.poldercast.rings import Rings, RingsParameters
from vizpub.simulators.protocols.poldercast.vicinity import Vicinity, VicinityParameters
from vizpub.simulators.protocols.poldercast.views_overlay import Capacities, OverlayState
from vizpub.simulators.protocols.poldercast.views_targets import targets_of
from vizpub.simulators.protocols.poldercast.views_vicinity import merge_nearest


@dataclass(frozen=True)
class PolderCastParameters:
    """Parameters of PolderCast."""

    fanout: Annotated[Positive, Meta(description="F: copies that a peer forwards.")] = 2
    cyclon_view: Annotated[Positive, Meta(description="CYCLON: neighbours of a peer.")] = 20
    cyclon_gossip: Annotated[Positive, Meta(description="CYCLON: entries in a shuffle.")] = 8
    vicinity_view: Annotated[Positive, Meta(description="VICINITY: neighbours of a peer.")] = 20
    vicinity_gossip: Annotated[Positive, Meta(description="VICINITY: entries in a message.")] = 10
    ring_side: Annotated[
        Positive, Meta(description="RINGS: successors per topic, and as many predecessors.")
    ] = 2
    ring_order: Annotated[
        Literal["random", "number"],
        Meta(description="RINGS: peers in random order, or by number as in the papers' figures."),
    ] = "random"
    period: Annotated[
        Duration, Meta(description="Each layer of a peer gossips once per period.")
    ] = "1s"
    min_random: Annotated[
        Count,
        Meta(description="Forward to at least N random subscribers (a public implementation: 1)."),
    ] = 0
    publisher_extra: Annotated[
        Count,
        Meta(description="More random subscribers for a publisher (a public implementation: 1)."),
    ] = 0
    memory: Annotated[Duration, Meta(description="How long a peer remembers a message.")] = "1m"


class PolderCast(System):
    """PolderCast over its three layers."""

    layers = ("cyclon", "vicinity", "rings")

    def __init__(self, net: Network, parameters: PolderCastParameters, topics: int) -> None:
        self.net, self.fanout = net, parameters.fanout
        self.publisher_extra = parameters.publisher_extra
        self.onward = max(parameters.fanout - 1, parameters.min_random)
        self.both = max(parameters.fanout - 2, parameters.min_random)
        capacities = Capacities(
            parameters.cyclon_view, parameters.vicinity_view, parameters.ring_side
        )
        self.overlay = OverlayState(net.size, topics, capacities, net.random)
        if parameters.ring_order == "number":
            self.overlay.order_by_number()
        period = parameters.period
        cyclon = CyclonParameters(parameters.cyclon_view, parameters.cyclon_gossip, period)
        self.cyclon = Cyclon(net, cyclon, topics, self.overlay)
        vicinity = VicinityParameters(parameters.vicinity_gossip, period)
        self.vicinity = Vicinity(net, vicinity, self.overlay)
        self.rings = Rings(net, RingsParameters(period), self.overlay)
        self.copies = net.kind("publication", self.on_copy, publication=True)
        self.seen = MessageMemory(net, us(parameters.memory))

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Start with one neighbour, from the bootstrap service."""
        self.seen.clear(peer)
        self.overlay.join(peer, topics)
        self.cyclon.join(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """Start a ring, which gossip fills."""
        self.overlay.subscribe(peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Leave a ring: others remove the peer when they learn its profile."""
        self.overlay.unsubscribe(peer, topic)

    def publish(self, peer: int, publication: Publication) -> None:
        """Forward it as if it came from a peer that is not a ring neighbour."""
        subscribes = publication.topic in self.overlay.topics[peer]
        randoms = (self.both if subscribes else self.fanout) + self.publisher_extra
        self.seen.add(peer, publication.message)
        self._pass_on(peer, peer, Copy(publication, 0), randoms)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Forward a new message of a subscribed topic."""
        if self.seen.add(peer, copy.publication.message):
            self._pass_on(peer, sender, copy, self.both)

    def _pass_on(self, peer: int, sender: int, copy: Copy, both: int) -> None:
        topic = copy.publication.topic
        targets = targets_of(self.overlay.packed, peer, sender, topic, self.onward, both)
        self.net.forward(self.copies, peer, targets.tolist(), copy)

    def settle(self, peers: Iterable[int]) -> None:
        """Set the state that gossip among these peers, which have joined, converges to: complete
        rings, random views in CYCLON, the nearest known peers in VICINITY.
        """
        among = sorted(peers)
        capacity = self.overlay.cyclon.shape[2]
        for peer in among:
            others = self.net.random.sample(among, min(len(among), capacity + 1))
            view = self.overlay.cyclon[peer]
            view[:], sampled = -1, [other for other in others if other != peer][:capacity]
            view[:, : len(sampled)] = np.array([sampled, [0] * len(sampled)], np.int32)
        self.rings.complete(among)
        for peer in among:
            self.overlay.vicinity[peer] = -1
            merge_nearest(self.overlay.packed, peer, np.empty((2, 0), np.int32))

    def links(self, peer: int) -> Iterator[Links]:
        """The links of the three layers."""
        layers = (self.cyclon, self.vicinity, self.rings)
        return chain.from_iterable(layer.links(peer) for layer in layers)


class MessageMemory:
    """The messages that each peer received recently."""

    def __init__(self, net: Network, duration_us: int) -> None:
        self._net, self._duration_us = net, duration_us
        self._until = duration_us
        self._recent: list[set[int]] = [set() for _ in range(net.size)]
        self._older: list[set[int]] = [set() for _ in range(net.size)]

    def add(self, peer: int, message: int) -> bool:
        """Remember a message; returns whether it is new to the peer."""
        if self._net.now >= self._until:
            self._until = self._net.now + self._duration_us
            self._older, self._recent = self._recent, [set() for _ in range(self._net.size)]
        recent = self._recent[peer]
        if message in recent or message in self._older[peer]:
            return False
        recent.add(message)
        return True

    def clear(self, peer: int) -> None:
        """Forget all messages of the peer."""
        self._recent[peer].clear()
        self._older[peer].clear()
