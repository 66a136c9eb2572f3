"""gossipsub v1.1 (libp2p's specification, revision 8): a mesh per topic, and gossip beside it.

Each subscriber keeps a *mesh* of D_low to D_high connected subscribers for each topic, and sends
the first copy of a message to all of them. Once per heartbeat it names the messages of the last
heartbeats to some other subscribers (IHAVE), which ask for those that they lack (IWANT). The
specification's additions of v1.1 act too: backoff after PRUNE, flood publishing, adaptive gossip,
quotas of outbound neighbours, opportunistic grafting and scores. Left out are explicit peering,
peer exchange (off by default, and discovery finds peers here), and the limits against spam.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from vizpub.simulators.engine.network import Copy, Links, Network, Publication
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.libp2p.parameters import GossipsubParameters, NoScores
from vizpub.simulators.protocols.libp2p.pubsub import Control, Pubsub
from vizpub.simulators.protocols.libp2p.scores import PeerScores


class _Router:
    """The state of a peer beside its connections."""

    __slots__ = ("backoff", "beats", "fanout", "mesh", "published_us", "windows")

    def __init__(self, topics: Sequence[int], history: int) -> None:
        self.mesh: dict[int, dict[int, None]] = {topic: {} for topic in topics}
        self.fanout: dict[int, dict[int, None]] = {}
        """Subscribers to which the peer publishes on topics that it does not subscribe to."""
        self.published_us: dict[int, int] = {}
        """When it last did."""
        self.backoff: dict[tuple[int, int], int] = {}
        """Until when (topic, peer) may not be grafted."""
        self.windows: deque[dict[int, list[int]]] = deque([{}], history)
        """The messages of each topic in each of the last heartbeats, the present one first."""
        self.beats = 0


class Gossipsub(Pubsub):
    """Meshes, gossip and scores."""

    layers = ("streams", "mesh")

    def __init__(self, net: Network, parameters: GossipsubParameters, topics: int) -> None:
        super().__init__(net, parameters, topics)
        self.parameters = parameters
        model = parameters.get_scores()
        self.model = None if isinstance(model, NoScores) else model
        self.scores = PeerScores(net, self.model)
        self.routers = [_Router((), parameters.history) for _ in range(net.size)]
        self._heartbeat_us = us(parameters.heartbeat)
        self._backoff_us = us(parameters.prune_backoff)
        self._opportunistic = max(1, us(parameters.opportunistic_period) // self._heartbeat_us)
        self.grafts = self.control("graft", self.on_graft)
        self.prunes = self.control("prune", self.on_prune)
        self.announcements = self.control("ihave", self.on_announced)
        self.requests = self.control("iwant", self.on_requested)
        net.every(self._heartbeat_us, self.on_heartbeat)

    def is_valid(self, peer: int, publication: Publication) -> bool:
        """Validate a message for the application: all are valid, but to subclasses."""
        return True

    def is_connected(self, peer: int, sender: int) -> bool:
        """See Pubsub.is_connected; peers on the graylist count as not there."""
        graylist = self.model.graylist_threshold if self.model else 0.0
        return super().is_connected(peer, sender) and self.scores.accepts(peer, sender, graylist)

    # Sessions and subscriptions.

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join; heartbeats fill the meshes."""
        self.routers[peer] = _Router(topics, self.parameters.history)
        self.scores.clear(peer)
        super().join(peer, topics)

    def subscribe(self, peer: int, topic: int) -> None:
        """Make a mesh, of the peers that the peer published to before, and of others."""
        super().subscribe(peer, topic)
        router = self.routers[peer]
        router.mesh[topic] = {}
        former = router.fanout.pop(topic, {})
        there_are = self._candidates(peer, topic)
        first = [other for other in there_are if other in former][: self.parameters.d]
        self._graft(peer, topic, first)
        others = [other for other in there_are if other not in former]
        self._graft(peer, topic, self._sample(others, self.parameters.d - len(first)))

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Take leave of the mesh."""
        super().unsubscribe(peer, topic)
        for other in [*self.routers[peer].mesh[topic]]:
            self._prune(peer, topic, other, us(self.parameters.unsubscribe_backoff))
        del self.routers[peer].mesh[topic]

    def disconnect(self, peer: int, other: int) -> None:
        """See Pubsub.disconnect: the other is in no mesh."""
        for topic in self.routers[peer].mesh:
            self._remove(peer, topic, other)
        for fanout in self.routers[peer].fanout.values():
            fanout.pop(other, None)
        super().disconnect(peer, other)

    def on_unsubscribed(self, peer: int, sender: int, control: Control) -> None:
        """See Pubsub.on_unsubscribed."""
        super().on_unsubscribed(peer, sender, control)
        for topic in control.topics:
            self._remove(peer, topic, sender)
            self.routers[peer].fanout.get(topic, {}).pop(sender, None)

    # The mesh.

    def _candidates(self, peer: int, topic: int) -> list[int]:
        """The connected subscribers that may be grafted."""
        router, now = self.routers[peer], self.net.now
        mesh = router.mesh[topic]
        return [
            other
            for other in self.connections[peer].known.get(topic, ())
            if other not in mesh
            and router.backoff.get((topic, other), 0) <= now
            and self.scores.accepts(peer, other)
        ]

    def _sample(self, others: Sequence[int], count: int) -> list[int]:
        return self.net.random.sample(others, max(0, min(count, len(others))))

    def _graft(self, peer: int, topic: int, others: Iterable[int]) -> None:
        for other in others:
            self._add(peer, topic, other)
            self.tell(self.grafts, peer, other, Control((topic,)))

    def _prune(self, peer: int, topic: int, other: int, backoff_us: int) -> None:
        self._remove(peer, topic, other)
        self._back_off(peer, topic, other, backoff_us)
        self.tell(self.prunes, peer, other, Control((topic,), (backoff_us,)))

    def _add(self, peer: int, topic: int, other: int) -> None:
        self.routers[peer].mesh[topic][other] = None
        self.scores.grafted(peer, other, topic)

    def _remove(self, peer: int, topic: int, other: int) -> None:
        mesh = self.routers[peer].mesh.get(topic, {})
        if other in mesh:
            del mesh[other]
            self.scores.pruned(peer, other, topic)

    def _back_off(self, peer: int, topic: int, other: int, backoff_us: int) -> None:
        """A heartbeat more, so that the other's has ended."""
        self.routers[peer].backoff[topic, other] = self.net.now + backoff_us + self._heartbeat_us

    def on_graft(self, peer: int, sender: int, control: Control) -> None:
        """Accept a neighbour, or prune it at once."""
        (topic,), router = control.topics, self.routers[peer]
        mesh = router.mesh.get(topic)
        if mesh is None or sender in mesh:
            return
        is_too_early = router.backoff.get((topic, sender), 0) - self._heartbeat_us > self.net.now
        has_no_room = (
            len(mesh) >= self.parameters.d_high and sender not in self.connections[peer].outbound
        )
        if is_too_early or has_no_room or not self.scores.accepts(peer, sender):
            self._prune(peer, topic, sender, self._backoff_us)
        else:
            self._note(peer, sender, topic)
            self._add(peer, topic, sender)

    def on_prune(self, peer: int, sender: int, control: Control) -> None:
        """The other end removed a link."""
        (topic,), (backoff_us,) = control.topics, control.numbers
        self._remove(peer, topic, sender)
        self._back_off(peer, topic, sender, backoff_us)

    # Heartbeats.

    def on_heartbeat(self, peer: int) -> None:
        """Keep meshes and fanout in their bounds, and gossip."""
        router = self.routers[peer]
        router.beats += 1
        now = self.net.now
        if router.beats % self.parameters.history == 0:
            router.backoff = {pair: end for pair, end in router.backoff.items() if end > now}
        for topic in router.mesh:
            self._keep_mesh(peer, topic)
            self._announce(peer, topic, router.mesh[topic])
        for topic in [*router.fanout]:
            if now - router.published_us[topic] > us(self.parameters.fanout_ttl):
                del router.fanout[topic]
            else:
                self._announce(peer, topic, self._fill_fanout(peer, topic))
        router.windows.appendleft({})

    def _keep_mesh(self, peer: int, topic: int) -> None:
        of, mesh = self.parameters, self.routers[peer].mesh[topic]
        for other in [*mesh]:
            if not self.scores.accepts(peer, other):
                self._prune(peer, topic, other, self._backoff_us)
        if len(mesh) < of.d_low:
            chosen = self._sample(self._candidates(peer, topic), of.d - len(mesh))
            self._graft(peer, topic, chosen)
        elif len(mesh) > of.d_high:
            for other in self._surplus(peer, [*mesh]):
                self._prune(peer, topic, other, self._backoff_us)
        outbound = self.connections[peer].outbound
        missing = of.d_out - sum(other in outbound for other in mesh)
        if len(mesh) >= of.d_low and missing > 0:
            dialled = [other for other in self._candidates(peer, topic) if other in outbound]
            self._graft(peer, topic, self._sample(dialled, missing))
        if self.model and len(mesh) > 1 and self.routers[peer].beats % self._opportunistic == 0:
            median = self.scores.median(peer, mesh)
            if median < self.model.graft_threshold:
                others = self._candidates(peer, topic)
                better = [other for other in others if self.scores.of(peer, other) > median]
                self._graft(peer, topic, self._sample(better, of.opportunistic_peers))

    def _surplus(self, peer: int, mesh: list[int]) -> list[int]:
        """Those to prune: all but D, among them the best by score and enough outbound ones.

        Outbound peers beyond the first D take the places of the last of these that are not.
        """
        of, outbound = self.parameters, self.connections[peer].outbound
        self.net.random.shuffle(mesh)
        mesh.sort(key=lambda other: -self.scores.of(peer, other))
        rest = mesh[of.d_score :]
        self.net.random.shuffle(rest)
        order = mesh[: of.d_score] + rest
        first, beyond = order[: of.d], order[of.d :]
        lacking = max(0, of.d_out - sum(other in outbound for other in first))
        moved = [other for other in beyond if other in outbound][:lacking]
        dropped = [other for other in reversed(first) if other not in outbound][: len(moved)]
        return dropped + [other for other in beyond if other not in moved]

    def _fill_fanout(self, peer: int, topic: int) -> dict[int, None]:
        """The peers that messages on a topic without subscription go to, D if there are."""
        fanout = self.routers[peer].fanout.setdefault(topic, {})
        floor = self.model.publish_threshold if self.model else 0.0
        others = [
            other
            for other in self.connections[peer].known.get(topic, ())
            if other not in fanout and self.scores.accepts(peer, other, floor)
        ]
        fanout.update(dict.fromkeys(self._sample(others, self.parameters.d - len(fanout))))
        return fanout

    # Gossip.

    def _announce(self, peer: int, topic: int, near: Iterable[int]) -> None:
        """Name the latest messages to some subscribers that are not in the mesh."""
        windows = [*self.routers[peer].windows][: self.parameters.history_gossip]
        messages = tuple(message for window in windows for message in window.get(topic, ()))
        if not messages:
            return
        floor = self.model.gossip_threshold if self.model else 0.0
        others = [
            other
            for other in self.connections[peer].known.get(topic, ())
            if other not in near and self.scores.accepts(peer, other, floor)
        ]
        count = max(self.parameters.d_lazy, int(self.parameters.gossip_factor * len(others)))
        for other in self._sample(others, count):
            self.tell(self.announcements, peer, other, Control((topic,), messages))

    def on_announced(self, peer: int, sender: int, control: Control) -> None:
        """Ask for the messages that the peer lacks."""
        floor = self.model.gossip_threshold if self.model else 0.0
        (topic,) = control.topics
        if topic in self.routers[peer].mesh and self.scores.accepts(peer, sender, floor):
            lacking = tuple(one for one in control.numbers if not self.held.has(peer, one))
            if lacking:
                self.tell(self.requests, peer, sender, Control((), lacking))

    def on_requested(self, peer: int, sender: int, control: Control) -> None:
        """Send messages of the last heartbeats."""
        windows = self.routers[peer].windows
        there_are = {one for window in windows for of in window.values() for one in of}
        for message in control.numbers:
            copy = self.held.copy(peer, message)
            if copy and message in there_are:
                self.net.forward(self.copies, peer, (sender,), copy)

    # Messages.

    def publish(self, peer: int, publication: Publication) -> None:
        """Send to all connected subscribers, or else to the mesh or the fanout."""
        copy, topic, router = Copy(publication, 0), publication.topic, self.routers[peer]
        self._hold(peer, copy)
        floor = self.model.publish_threshold if self.model else 0.0
        if self.parameters.flood_publish:
            known: Iterable[int] = self.connections[peer].known.get(topic, ())
        elif topic in router.mesh:
            known = router.mesh[topic]
        else:
            router.published_us[topic] = self.net.now
            known = self._fill_fanout(peer, topic)
        targets = [other for other in known if self.scores.accepts(peer, other, floor)]
        self.net.forward(self.copies, peer, targets, copy)

    def _hold(self, peer: int, copy: Copy) -> bool:
        """Remember a message; returns whether it is new."""
        message, topic = copy.publication.message, copy.publication.topic
        is_new = self.held.add(peer, copy)
        if is_new:
            self.routers[peer].windows[0].setdefault(topic, []).append(message)
        return is_new

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Send the first copy on along the mesh, but not back, and not to the publisher."""
        publication, mesh = copy.publication, self.routers[peer].mesh.get(copy.publication.topic)
        if not self.is_connected(peer, sender) or mesh is None:
            return
        if not self.is_valid(peer, publication):
            self.scores.invalid(peer, sender, publication.topic)
            return
        is_first = self._hold(peer, copy)
        self.scores.delivered(peer, sender, publication.topic, publication.message, is_first)
        if is_first:
            done = (sender, publication.publisher)
            self.net.forward(self.copies, peer, [to for to in mesh if to not in done], copy)

    def links(self, peer: int) -> Iterator[Links]:
        """The connections, and the mesh of each topic."""
        yield from super().links(peer)
        for topic, mesh in sorted(self.routers[peer].mesh.items()):
            yield Links("mesh", topic, sorted(mesh))
