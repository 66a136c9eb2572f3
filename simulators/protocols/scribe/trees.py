"""Scribe's trees: joins, departures and repair (Castro et al., JSAC 20(8) 2002, section III).

The parent of a peer is the next hop of its route to the topic's key at the time when the peer last
looked for one: initially, when the parent is gone, and when its neighbours on the ring change, as
routes may then end elsewhere. A peer does not leave its parent because its routing table has found
nearer peers: so without churn trees do not change, and each member receives each publication once,
whatever the latencies.

A peer that changes its parent is served by the former one until it is connected to the root again.
Once a period a parent sends each child one heartbeat for all their trees, with the path from the
root in each. From it a child sees the root of its tree, loops (it is on its own path), and trees on
which the two disagree.
"""

from __future__ import annotations

from collections.abc import Iterable

from vizpub.simulators.engine.network import Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.routing import NOBODY, MakeRouting, Upcalls
from vizpub.simulators.protocols.scribe.parameters import TreeParameters
from vizpub.simulators.protocols.scribe.state import UNSURE, Beat, TreeMember, TreeParent, TreePlace


class ScribeTrees(Upcalls):
    """The trees of all topics over one overlay that routes."""

    def __init__(self, net: Network, parameters: TreeParameters, make: MakeRouting) -> None:
        self.net = net
        self.routing = make(self)
        self.keys = self.routing.keys
        self.topic_bytes = self.routing.sizes.of(ids=1)
        self.members = [TreeMember(peer) for peer in range(net.size)]
        period_us = us(parameters.heartbeat)
        # Half a period allows for latencies that vary between heartbeats.
        self.patience_us = parameters.missed * period_us + period_us // 2
        self.join = net.kind("tree join", self.on_join, failed=self.on_join_lost)
        self.leave = net.kind("tree leave", self.on_leave)
        self.heartbeat = net.kind("tree heartbeat", self.on_heartbeat, failed=self.on_beat_lost)
        net.every(period_us, self.on_tick)

    def reset(self, peer: int) -> TreeMember:
        """Give the peer an empty state."""
        self.members[peer] = TreeMember(peer)
        return self.members[peer]

    # Subscriptions of the peer.

    def enter(self, peer: int, topic: int) -> None:
        """Subscribe: join the tree, if the peer is not in it as a relay."""
        self.members[peer].group(topic).is_subscribed = True
        self._attach_if_new(peer, topic)

    def quit(self, peer: int, topic: int) -> None:
        """End a subscription; the peer stays in the tree while it has children."""
        self.members[peer].groups[topic].is_subscribed = False
        self._leave_unused(peer, topic)

    def ready(self, peer: int) -> None:
        """The overlay has found the peer's place: look for all parents."""
        for topic in list(self.members[peer].groups):
            self._attach_if_new(peer, topic)

    def responsibility_changed(self, peer: int) -> None:
        """Stop at once being the root of topics to whose keys another peer is closer now, as
        publications go there.
        """
        for topic in self.members[peer].topics_under(peer):
            if self.routing.next_hop(peer, self.keys[topic]) != peer:
                self._attach(peer, topic)

    def lost(self, peer: int, other: int) -> None:
        """Another peer is down: replace it as a parent, and remove it as a child."""
        member = self.members[peer]
        member.parents.pop(other, None)
        for topic in member.topics_under(other):
            self._attach(peer, topic)
        if child := member.children.get(other):
            for topic in list(child.topics):
                member.drop_child(topic, other)
                self._leave_unused(peer, topic)

    # Joining and leaving.

    def on_join(self, peer: int, sender: int, topic: int) -> None:
        """Add the child; a peer that is not in the tree joins it."""
        group = self.members[peer].group(topic)
        self.members[peer].add_child(topic, sender)
        if group.parent == sender:
            self._orphan(peer, topic)
        else:
            self._attach_if_new(peer, topic)
        if group.is_attached:
            self._beat(peer, [sender])

    def on_join_lost(self, peer: int, to: int, topic: int) -> None:
        """Use another route."""
        self.routing.doubt(peer, to)
        group = self.members[peer].groups.get(topic)
        if group and group.parent == to:
            self._attach(peer, topic)

    def on_leave(self, peer: int, sender: int, topic: int) -> None:
        """Drop the child."""
        if topic in self.members[peer].groups:
            self.members[peer].drop_child(topic, sender)
            self._leave_unused(peer, topic)

    def on_stranger(self, peer: int, sender: int, topic: int) -> None:
        """Leave a parent in a tree that the peer is not in."""
        self.net.send(self.leave, peer, sender, topic, self.topic_bytes)

    # Heartbeats.

    def on_tick(self, peer: int) -> None:
        """Send heartbeats to the children, and check those of the parents."""
        member = self.members[peer]
        if self.routing.is_ready(peer) and member.routes is not self.routing.version(peer):
            member.routes = self.routing.version(peer)
            # Routes may have changed; a former root steps down this way.
            next_hop = self.routing.next_hop
            for topic, group in member.groups.items():
                if group.parent != NOBODY and group.parent != next_hop(peer, self.keys[topic]):
                    self._attach(peer, topic)
        if member.orphans:
            self._adopt_orphans(peer)
        deadline = self.net.now - self.patience_us
        silent = [one for one, parent in member.parents.items() if parent.heard_us < deadline]
        for parent in silent:
            self._miss(peer, parent)
        self._beat(peer, member.children)

    def _beat(self, peer: int, children: Iterable[int]) -> None:
        member, send, heartbeat = self.members[peer], self.net.send, self.heartbeat
        for to in children:
            child = member.children[to]
            send(
                heartbeat,
                peer,
                to,
                child.beat or member.beat_for(child, self.routing.sizes),
                child.size,
            )

    def on_heartbeat(self, peer: int, sender: int, beat: Beat) -> None:
        """Handle a heartbeat, if it differs from the last one."""
        parent = self.members[peer].parents.get(sender)
        if parent is not None:
            parent.heard_us = self.net.now
            if parent.beat is beat:
                return
        is_agreed = self._reconcile(peer, sender, beat)
        # The reconciliation may have found another parent.
        if parent is not None:
            parent.beat = beat if is_agreed else None

    def on_beat_lost(self, peer: int, to: int, beat: Beat) -> None:
        """A child may be down; the overlay detects that."""
        self.routing.doubt(peer, to)

    def _reconcile(self, peer: int, sender: int, beat: Beat) -> bool:
        """Agree with a parent on the trees it names; returns whether no message was needed."""
        member, is_agreed = self.members[peer], True
        to_notify: dict[int, None] = {}
        for topic, path in beat:
            group = member.groups.get(topic)
            if group is None or group.parent != sender:
                self.on_stranger(peer, sender, topic)
                is_agreed = False
            elif peer in path:
                # Loops are due to inconsistent routes: compare them, and wait.
                self.routing.compare(peer, self.members[peer].groups[topic].parent)
                self._orphan(peer, topic)
                is_agreed = False
            elif member.set_path(topic, path) and group.is_attached:
                self._quit_former(peer, topic, group)
                to_notify |= group.children
        self._beat(peer, to_notify)
        topics = {topic for topic, _ in beat}
        for topic in member.topics_under(sender):
            if topic not in topics:
                self._join(peer, topic, sender)
                is_agreed = False
        return is_agreed

    def _miss(self, peer: int, parent: int) -> None:
        """A parent is silent: join it again, which shows whether it is up."""
        member = self.members[peer]
        del member.parents[parent]
        for topic in member.topics_under(parent):
            self._join(peer, topic, parent)

    # Parents.

    def _attach_if_new(self, peer: int, topic: int) -> None:
        is_new = self.members[peer].groups[topic].parent == NOBODY
        if is_new and self.routing.is_ready(peer):
            self._attach(peer, topic)

    def _attach(self, peer: int, topic: int) -> None:
        """Join at the next hop to the topic's key; without one, become the root."""
        member = self.members[peer]
        group, to = member.groups[topic], self.routing.next_hop(peer, self.keys[topic])
        if group.parent != to and group.parent in member.parents:
            self._change(peer, topic, group)
        self._join(peer, topic, to)

    def _change(self, peer: int, topic: int, group: TreePlace) -> None:
        """Leave the parent; the first of several in a row serves until a new one does."""
        if group.former != NOBODY:
            self.net.send(self.leave, peer, group.parent, topic, self.topic_bytes)
            return
        group.former = group.parent
        # If this message is lost, its next heartbeat is answered again.
        self.members[peer].parents[group.former].beat = None

    def _join(self, peer: int, topic: int, to: int) -> None:
        member = self.members[peer]
        group = member.groups[topic]
        group.parent = to
        member.set_path(topic, () if to == peer else UNSURE)
        if to == peer:
            self._quit_former(peer, topic, group)
            self._beat(peer, group.children)
        else:
            member.parents.setdefault(to, TreeParent(self.net.now)).beat = None
            self.net.send(self.join, peer, to, topic, self.topic_bytes)

    def _quit_former(self, peer: int, topic: int, group: TreePlace) -> None:
        """Leave the former parent, as the new one serves the peer."""
        former, group.former = group.former, NOBODY
        if former not in (NOBODY, group.parent):
            self.net.send(self.leave, peer, former, topic, self.topic_bytes)

    def _orphan(self, peer: int, topic: int) -> None:
        member = self.members[peer]
        member.groups[topic].parent = NOBODY
        member.set_path(topic, UNSURE)
        member.orphans[topic] = None

    def _adopt_orphans(self, peer: int) -> None:
        member = self.members[peer]
        orphans, member.orphans = member.orphans, {}
        for topic in orphans:
            if topic in member.groups:
                self._attach_if_new(peer, topic)

    def _leave_unused(self, peer: int, topic: int) -> None:
        """Leave a tree if the peer neither subscribes nor has children."""
        member = self.members[peer]
        group = member.groups[topic]
        if group.is_subscribed or group.children:
            return
        del member.groups[topic]
        if group.parent not in (NOBODY, peer):
            self.net.send(self.leave, peer, group.parent, topic, self.topic_bytes)
