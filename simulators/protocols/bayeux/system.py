"""Bayeux: multicast trees that the root of a topic grows towards its members.

Zhuang, Zhao, Joseph, Katz, Kubiatowicz, Bayeux: An Architecture for Scalable and Fault-tolerant
Wide-area Data Dissemination, NOSSDAV 2001; Zhuang, UCB/CSD-02-1170, 2002. A member's JOIN is routed
to the root of the topic. The root answers with TREE, routed to the member: each peer on that way
adds the member to the list of those that it reaches by its next hop. LEAVE and PRUNE undo this. A
publication goes down these ways, one copy for each next hop. So a tree follows the routes from the
root to the members, while one of Scribe follows those from the members to the root, and the root
knows all members.

What is ours, as we could read the papers' abstracts, and how others describe them:

- Pastry stands in for Tapestry: both resolve a digit of an id with each hop, and prefer near peers;
  Pastry's numerically closest peer is the root, where Tapestry takes a surrogate.
- Lists are soft state: members join again once a period, and what is not refreshed expires. A peer
  that finds its next hop down sends TREE by another way at once, for all that it reached by it. A
  root that is not responsible any more passes its members' JOINs on.
- A topic has one root (the papers can replicate it), and a publisher sends to it (there, it is the
  root).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from vizpub.simulators.engine.network import Copy, Links, Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.bayeux.parameters import BayeuxParameters
from vizpub.simulators.protocols.bayeux.receivers import Receiver, Receivers
from vizpub.simulators.protocols.pastry.overlay import LAYERS, PastryOverlay
from vizpub.simulators.protocols.rooted import RootedMulticast
from vizpub.simulators.protocols.routing import NOBODY, Upcalls
from vizpub.simulators.protocols.scribe.state import RecentMessages

_Membership = tuple[int, int]
"""(topic, member)"""


class Bayeux(RootedMulticast, Upcalls):
    """Trees of routes from roots to members."""

    layers: ClassVar[Sequence[str]] = ("tree", *LAYERS)
    routing: PastryOverlay

    def __init__(self, net: Network, parameters: BayeuxParameters, topics: int) -> None:
        super().__init__(net, PastryOverlay(net, parameters, topics, self))
        self.topics: list[dict[int, None]] = [{} for _ in range(net.size)]
        """What each peer subscribes to."""
        self.lists = [Receivers() for _ in range(net.size)]
        self.rooted: list[dict[int, None]] = [{} for _ in range(net.size)]
        """The topics of which each peer is the root, as far as it knows."""
        self.seen = [RecentMessages() for _ in range(net.size)]
        self.bytes = self.routing.sizes.of(peers=1, ids=1)
        self.join_kind = net.kind("tree join", self.on_join, failed=self.on_join_lost)
        self.leave_kind = net.kind("tree leave", self.on_leave, failed=self.on_leave_lost)
        self.tree = net.kind("tree", self.on_tree, failed=self.on_tree_lost)
        self.prune = net.kind("prune", self.on_prune)
        period_us = us(parameters.refresh)
        # Half a period allows for latencies that vary between refreshes.
        self.patience_us = (parameters.missed + 1) * period_us + period_us // 2
        net.every(period_us, self.on_tick)

    # Sessions and subscriptions.

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self._reset(peer)
        self.topics[peer] = dict.fromkeys(topics)
        self.routing.join(peer)

    def _reset(self, peer: int) -> None:
        self.topics[peer], self.rooted[peer] = {}, {}
        self.lists[peer], self.seen[peer] = Receivers(), RecentMessages()

    def leave(self, peer: int) -> None:
        """See System.leave."""
        for topic in self.topics[peer]:
            self._leave(peer, (topic, peer))
        self.routing.leave(peer, [hop for _, hops in self.lists[peer].next_hops() for hop in hops])

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        self._reset(peer)
        self.routing.go_down(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """See System.subscribe."""
        self.topics[peer][topic] = None
        if self.routing.is_ready(peer):
            self._join(peer, (topic, peer))

    def unsubscribe(self, peer: int, topic: int) -> None:
        """See System.unsubscribe."""
        self.topics[peer].pop(topic)
        self.lists[peer].drop(topic, peer)
        if self.routing.is_ready(peer):
            self._leave(peer, (topic, peer))

    def on_tick(self, peer: int) -> None:
        """Refresh the memberships, and forget those that others did not refresh."""
        self.lists[peer].expire(self.net.now)
        self.rooted[peer] = {t: None for t in self.rooted[peer] if self.lists[peer].members(t)}
        self.ready(peer)

    # What the overlay tells.

    def ready(self, peer: int) -> None:
        """See Upcalls.ready: join all trees."""
        if self.routing.is_ready(peer):
            for topic in self.topics[peer]:
                self._join(peer, (topic, peer))

    def responsibility_changed(self, peer: int) -> None:
        """See Upcalls.responsibility_changed: hand members over to the new root."""
        for topic in list(self.rooted[peer]):
            if self._next_hop(peer, topic) != peer:
                del self.rooted[peer][topic]
                for member in self.lists[peer].members(topic):
                    self._join(peer, (topic, member))

    def lost(self, peer: int, other: int) -> None:
        """See Upcalls.lost: reach members by other ways."""
        self._regrow(peer, other)

    # Membership.

    def _join(self, peer: int, membership: _Membership) -> None:
        """Pass a join on towards the root, which answers."""
        to = self._next_hop(peer, membership[0])
        if to != peer:
            self.net.send(self.join_kind, peer, to, membership, self.bytes)
        else:
            self.rooted[peer][membership[0]] = None
            self._grow(peer, membership, peer)

    def on_join(self, peer: int, sender: int, membership: _Membership) -> None:
        """A join on its way, or at the root."""
        if self.routing.is_ready(peer):
            self._join(peer, membership)

    def on_join_lost(self, peer: int, to: int, membership: _Membership) -> None:
        """Use another route."""
        self.routing.doubt(peer, to)
        self._join(peer, membership)

    def _grow(self, peer: int, membership: _Membership, previous: int) -> None:
        """Lead the way to a member one hop on; a way that led elsewhere ends."""
        topic, member = membership
        to = self.routing.next_hop(peer, self.routing.ring.ids[member])
        if to == peer != member:
            self._cut(peer, membership)
            return
        before = self.lists[peer].get(topic, member)
        until_us = self.net.now + self.patience_us
        self.lists[peer].put(topic, member, Receiver(previous, to, until_us))
        if before and before.next_hop not in (to, peer):
            self.net.send(self.prune, peer, before.next_hop, membership, self.bytes)
        if to != peer:
            self.net.send(self.tree, peer, to, membership, self.bytes)

    def _regrow(self, peer: int, lost: int) -> None:
        """Lead the ways that led on to a peer elsewhere."""
        for topic, member, receiver in self.lists[peer].through(lost):
            self._grow(peer, (topic, member), receiver.previous_hop)

    def on_tree(self, peer: int, sender: int, membership: _Membership) -> None:
        """Be a part of the way to a member; one that has left ends it."""
        topic, member = membership
        if member == peer and topic not in self.topics[peer]:
            self.net.send(self.prune, peer, sender, membership, self.bytes)
        elif self.routing.is_ready(peer):
            self._grow(peer, membership, sender)

    def on_tree_lost(self, peer: int, to: int, membership: _Membership) -> None:
        """Use another route."""
        self.routing.doubt(peer, to)
        self._regrow(peer, to)

    def _leave(self, peer: int, membership: _Membership) -> None:
        """Pass a departure on towards the root, which cuts the way."""
        to = self._next_hop(peer, membership[0])
        if to != peer:
            self.net.send(self.leave_kind, peer, to, membership, self.bytes)
        else:
            self._cut(peer, membership)

    def on_leave(self, peer: int, sender: int, membership: _Membership) -> None:
        """A departure on its way, or at the root."""
        if self.routing.is_ready(peer):
            self._leave(peer, membership)

    def on_leave_lost(self, peer: int, to: int, membership: _Membership) -> None:
        """Use another route."""
        self.routing.doubt(peer, to)
        self._leave(peer, membership)

    def _cut(self, peer: int, membership: _Membership, told_by: int = NOBODY) -> None:
        """End the way to a member, in both directions."""
        receiver = self.lists[peer].get(*membership)
        if receiver is None or told_by not in (NOBODY, *receiver[:2]):
            return
        self.lists[peer].drop(*membership)
        for to in sorted({*receiver[:2]} - {peer, told_by}):
            self.net.send(self.prune, peer, to, membership, self.bytes)

    def on_prune(self, peer: int, sender: int, membership: _Membership) -> None:
        """The way to a member no longer leads from the sender, or to it."""
        self._cut(peer, membership, sender)

    # Publications.

    def is_new(self, peer: int, message: int) -> bool:
        """See RootedMulticast.is_new."""
        return self.seen[peer].is_new(message)

    def receivers(self, peer: int, topic: int) -> list[int]:
        """See RootedMulticast.receivers: the next hops to members."""
        return [to for to in self.lists[peer].next_hops_of(topic) if to != peer]

    def on_down_lost(self, peer: int, to: int, copy: Copy) -> None:
        """Send it by the new ways of the members that were reached by a peer that is down."""
        topic = copy.publication.topic
        before = self.receivers(peer, topic)
        self.routing.doubt(peer, to)
        self._regrow(peer, to)
        onward = [hop for hop in self.receivers(peer, topic) if hop == to or hop not in before]
        if onward:
            self.net.forward(self.down, peer, onward, copy._replace(hops=copy.hops - 1))

    def links(self, peer: int) -> Iterable[Links]:
        """The layer tree, from a parent to its children, and the overlay's layers."""
        for topic, hops in self.lists[peer].next_hops():
            if children := [to for to in hops if to != peer]:
                yield Links("tree", topic, children)
        yield from self.routing.links(peer)

    def roles(self, peer: int) -> Iterable[tuple[str, int | None]]:
        """The topics of which the peer is the rendezvous."""
        for topic in sorted(self.rooted[peer]):
            yield "rendezvous", topic
