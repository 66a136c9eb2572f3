"""A ring with small-world links, whose peers are placed by their interests.

Places are not spread evenly, so small-world links are drawn by rank, as in Oscar (Girdzijauskas,
Datta, Aberer 2005 to 2010): of the peers that a peer knows, in the order of the ring, the one of
number r with a probability in proportion to 1/r.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import accumulate

from vizpub.simulators.engine.network import HEADER_BYTES, Links, MessageKind, Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.chord.ring import ChordRing
from vizpub.simulators.protocols.magnet.parameters import MagnetParameters
from vizpub.simulators.protocols.routing import Routing, Sizes, Upcalls
from vizpub.simulators.protocols.spidercast.views import Description, InterestViews

LAYERS = ("ring", "far")
_BITS = 64
_ID_BYTES = 8
_CLUSTER_BITS = 16
"""Bits of a place that each of the two first topics of a peer decides."""

_Message = tuple[Description, ...]


class SmallWorld(Routing):
    """The places and neighbours of all peers."""

    def __init__(
        self, net: Network, parameters: MagnetParameters, topics: int, upcalls: Upcalls
    ) -> None:
        self.net, self.upcalls, self.sizes = net, upcalls, Sizes(_ID_BYTES)
        self.near, self.far_links = parameters.near, parameters.far
        self.clusters, self.expiry_us = parameters.cluster, us(parameters.expiry)
        self.views = InterestViews(net, parameters)
        self.hashes = ChordRing.of(net.size, _BITS, net.seed)
        names = [net.topic_name(topic) for topic in range(topics)]
        self.keys = [self.hashes.key(f"topic/{name}") for name in names]
        self._order = [self.hashes.key(f"order/{name}") for name in names]
        self._topic_of = {key: topic for topic, key in enumerate(self.keys)}
        self.ids = [*self.hashes.ids]
        """The place of each peer, which it tells with its interests."""
        self.ring: list[dict[int, Description]] = [{} for _ in range(net.size)]
        """The nearest peers on either side."""
        self.far: list[dict[int, Description]] = [{} for _ in range(net.size)]
        self._heard: list[list[Description]] = [[] for _ in range(net.size)]
        """What others told since the peer last chose its neighbours."""
        self._ready = [False] * net.size
        self._versions: list[object] = [None] * net.size
        self._lost_us: list[dict[int, int]] = [{} for _ in range(net.size)]
        """When others did not answer: what they said before counts no more."""
        self.request = net.kind("table request", self.on_request, failed=self.on_silence)
        self.reply = net.kind("table reply", self.on_reply)
        self.bye = net.kind("bye", self.on_bye)
        net.every(us(parameters.period), self.on_tick)

    # Sessions.

    def join(self, peer: int) -> None:
        """See Routing.join. `views.topics` has what the peer subscribes to."""
        self._reset(peer)
        self.ids[peer] = self._place(peer)
        self.views.exchange(peer)
        self._ask_contact(peer)

    def _reset(self, peer: int) -> None:
        self.ring[peer], self.far[peer], self._lost_us[peer] = {}, {}, {}
        self.views.of[peer], self._heard[peer] = {}, []
        self._ready[peer], self._versions[peer] = False, object()

    def _place(self, peer: int) -> int:
        """The place of a peer: near the key of the first of its topics in an order that is the same
        for all peers; of those that have it in common, those with the same second one are together.
        Two peers have the same first topic with the probability of what both subscribe to over
        what either does (min-wise hashing).
        """
        own = self.hashes.ids[peer]
        topics = nsmallest(2, self.views.topics[peer], key=self._order.__getitem__)
        if not topics or not self.clusters:
            return own
        place, kept = 0, _BITS
        for topic in topics:
            kept -= _CLUSTER_BITS
            place |= self.keys[topic] >> (_BITS - _CLUSTER_BITS) << kept
        return place | own & ((1 << kept) - 1)

    def _ask_contact(self, peer: int) -> None:
        contact = self.net.contact(peer)
        if contact is None:
            self._become_ready(peer)
        else:
            self._send(self.request, peer, contact)

    def _become_ready(self, peer: int) -> None:
        if not self._ready[peer]:
            self._ready[peer] = True
            self.upcalls.ready(peer)

    def leave(self, peer: int, others: Sequence[int] = ()) -> None:
        """See Routing.leave."""
        for other in dict.fromkeys([*self.ring[peer], *self.far[peer], *others]):
            self.net.send(self.bye, peer, other, None, HEADER_BYTES)

    def on_bye(self, peer: int, sender: int, payload: None) -> None:
        """Another peer goes down."""
        self.doubt(peer, sender)

    def go_down(self, peer: int) -> None:
        """See Routing.go_down."""
        self._reset(peer)

    # Neighbours.

    def on_tick(self, peer: int) -> None:
        """Gossip, choose neighbours, and exchange with all of them."""
        self.views.exchange(peer)
        heard, self._heard[peer] = self._heard[peer], []
        self._learn(peer, (*self.views.of[peer].values(), *heard))
        for other in (*self.ring[peer], *self.far[peer]):
            self._send(self.request, peer, other)
        if not self._ready[peer]:
            self._ask_contact(peer)

    def _send(self, kind: MessageKind, peer: int, to: int) -> None:
        """Send the own description, and along the ring what is nearest to the receiver's place."""
        known = {} if to in self.far[peer] else self.views.of[peer] | self.ring[peer]
        known.pop(to, None)
        nearest = nsmallest(
            2 * self.near, known, key=lambda other: self._distance(other, self.ids[to])
        )
        message = (self.views.describe(peer), *(known[other] for other in nearest))
        size = sum(one.size + _ID_BYTES for one in message)
        self.net.send(kind, peer, to, message, HEADER_BYTES + size)

    def on_request(self, peer: int, sender: int, message: _Message) -> None:
        """Answer alike."""
        self._send(self.reply, peer, sender)
        self._heard[peer] += message

    def on_reply(self, peer: int, sender: int, message: _Message) -> None:
        """Learn from it. With its first neighbours a peer has joined."""
        self._heard[peer] += message
        if not self._ready[peer]:
            self._learn(peer, message)
            if self.ring[peer]:
                self._become_ready(peer)

    def on_silence(self, peer: int, to: int, message: _Message) -> None:
        """Forget a peer that does not answer."""
        self.doubt(peer, to)

    def _learn(self, peer: int, described: Iterable[Description]) -> None:
        """Choose the neighbours anew from them and from what is described."""
        known: dict[int, Description] = {}
        oldest, lost_us = self.net.now - self.expiry_us, self._lost_us[peer]
        for one in (*self.far[peer].values(), *self.ring[peer].values(), *described):
            other = one.peer
            is_new = other not in known or one.made_us > known[other].made_us
            if other != peer and is_new and one.made_us > max(oldest, lost_us.get(other, -1)):
                known[other] = one
        self._set_ring(peer, known)
        far = {other: known[other] for other in self.far[peer] if other in known}
        taken = self.ring[peer].keys() | far.keys()
        rest = [other for other in self.views.of[peer] if other in known.keys() - taken]
        rest.sort(key=lambda other: (self.ids[other] - self.ids[peer]) % (1 << _BITS))
        while rest and len(far) < self.far_links:
            shares = [*accumulate(1 / number for number in range(1, len(rest) + 1))]
            (place,) = self.net.random.choices(range(len(rest)), cum_weights=shares)
            other = rest.pop(place)
            far[other] = known[other]
        self.far[peer] = far

    def _set_ring(self, peer: int, known: dict[int, Description]) -> None:
        own, size = self.ids[peer], 1 << _BITS
        after = nsmallest(self.near, known, key=lambda other: (self.ids[other] - own) % size)
        before = nsmallest(self.near, known, key=lambda other: (own - self.ids[other]) % size)
        ring = {other: known[other] for other in (*after, *before)}
        is_changed = ring.keys() != self.ring[peer].keys()
        self.ring[peer] = ring
        if is_changed:
            self._versions[peer] = object()
            if self._ready[peer]:
                self.upcalls.responsibility_changed(peer)

    # Routes.

    def is_ready(self, peer: int) -> bool:
        """See Routing.is_ready."""
        return self._ready[peer]

    def next_hop(self, peer: int, key: int) -> int:
        """See Routing.next_hop. Of the neighbours that are nearer to the key than the peer, the
        nearest that subscribes to its topic, or otherwise the nearest.
        """
        own, topic = (self._distance(peer, key), peer), self._topic_of.get(key)
        nearer, subscribed = own, own
        for other, one in (*self.ring[peer].items(), *self.far[peer].items()):
            apart = (self._distance(other, key), other)
            nearer = min(nearer, apart)
            if topic in one.topics:
                subscribed = min(subscribed, apart)
        return (subscribed if subscribed < own else nearer)[1]

    def _distance(self, peer: int, place: int) -> int:
        apart = (self.ids[peer] - place) % (1 << _BITS)
        return min(apart, (1 << _BITS) - apart)

    def version(self, peer: int) -> object:
        """See Routing.version. It follows the neighbours on the ring."""
        return self._versions[peer]

    def doubt(self, peer: int, other: int) -> None:
        """See Routing.doubt. The other one is forgotten until it is heard of again."""
        self.views.on_lost(peer, other, None)
        self._lost_us[peer][other] = self.net.now
        self._learn(peer, ())
        self.upcalls.lost(peer, other)

    def compare(self, peer: int, other: int) -> None:
        """See Routing.compare."""
        self._send(self.request, peer, other)

    def links(self, peer: int) -> Iterable[Links]:
        """The layers ring and far."""
        yield Links("ring", None, sorted(self.ring[peer]))
        yield Links("far", None, sorted(self.far[peer]))
