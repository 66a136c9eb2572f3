"""The links of all peers, with what each knows of its neighbours' subscriptions.

The links of the topology, of those peers that are up. In the paper nobody comes or goes. Our
extension is local: a peer that loses a neighbour, or comes back without any, seeks another one
along its links. A random walk ends at a peer that has lost one too, and the two link, so a peer
keeps its degree. A peer without neighbours begins at one that the bootstrap service names, which
takes it in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vizpub.simulators.engine.network import HEADER_BYTES, MessageKind, Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.membership import PEER_BYTES
from vizpub.simulators.protocols.broadcast.topologies import neighbours_in
from vizpub.simulators.protocols.gossip.parameters import GossipParameters

TOPIC_BYTES = 4


class NeighbourTables:
    """For each peer, its neighbours and the topics that each of them subscribes to."""

    def __init__(self, net: Network, parameters: GossipParameters) -> None:
        self.net, self.steps = net, parameters.steps
        self.repair_us = us(parameters.repair) if parameters.repair else 0
        """0: links stay."""
        topology = parameters.get_topology()
        self.planned = neighbours_in(topology.edges(net.size, net.random), net.size)
        """The neighbours of each peer in the topology."""
        self.known: list[dict[int, set[int]]] = [{} for _ in range(net.size)]
        self.topics: list[set[int]] = [set() for _ in range(net.size)]
        """What each peer subscribes to itself."""
        self._has_been_up = [False] * net.size
        self._seeks = [False] * net.size
        """Whether the peer's next search is planned."""
        self._hello = net.kind("hello", self.on_hello)
        self._welcome = net.kind("welcome", self.on_welcome)
        self._subscribe = net.kind("subscribe", self.on_subscribe)
        self._unsubscribe = net.kind("unsubscribe", self.on_unsubscribe)
        self._unlink = net.kind("unlink", self.on_unlink)
        self._seek = net.kind("seek", self.on_seek)

    def join(self, peer: int, topics: Iterable[int]) -> None:
        """The peer is up: it takes its place in the topology, or seeks one if it has lost it."""
        self.known[peer], self.topics[peer] = {}, {*topics}
        self._seeks[peer] = False
        if self.repair_us and self._has_been_up[peer]:
            self._search(peer)
        else:
            self._has_been_up[peer] = True
            for neighbour in self.planned[peer]:
                self._send(self._hello, peer, neighbour, self.topics[peer])

    def subscribe(self, peer: int, topic: int) -> None:
        """The peer subscribes, and tells its neighbours."""
        self.topics[peer].add(topic)
        self._tell(self._subscribe, peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """The peer ends a subscription, and tells its neighbours."""
        self.topics[peer].discard(topic)
        self._tell(self._unsubscribe, peer, topic)

    def stranger(self, peer: int, sender: int) -> None:
        """A peer that is no neighbour takes this one for one."""
        self.net.send(self._unlink, peer, sender, None, HEADER_BYTES)

    # Messages.

    def on_hello(self, peer: int, sender: int, topics: Sequence[int]) -> None:
        """Link to the sender, and answer with the peer's subscriptions."""
        # The peer has room, or the topology links the two.
        links, planned = self.known[peer], self.planned[peer]
        if sender in links or len(links) < len(planned) or sender in planned or not links:
            self._link(peer, sender, topics)
            self._send(self._welcome, peer, sender, self.topics[peer])
        else:
            self.stranger(peer, sender)

    def on_welcome(self, peer: int, sender: int, topics: Sequence[int]) -> None:
        """The sender has linked to the peer."""
        self._link(peer, sender, topics)

    def on_subscribe(self, peer: int, sender: int, topics: Sequence[int]) -> None:
        """A neighbour has more subscriptions."""
        if sender in self.known[peer]:
            self.known[peer][sender].update(topics)

    def on_unsubscribe(self, peer: int, sender: int, topics: Sequence[int]) -> None:
        """A neighbour has fewer subscriptions."""
        if sender in self.known[peer]:
            self.known[peer][sender].difference_update(topics)

    def on_unlink(self, peer: int, sender: int, payload: object) -> None:
        """The sender is no neighbour."""
        self.on_lost(peer, sender)
        self.net.unwatch(peer, sender)

    # Repair.

    def on_lost(self, peer: int, other: int) -> None:
        """A neighbour went down."""
        if self.known[peer].pop(other, None) is not None and self.repair_us:
            self._search_later(peer)

    def on_seek(self, peer: int, sender: int, sought: tuple[int, int, bool]) -> None:
        """Link to a peer that seeks one, or send its search on."""
        seeker, steps, is_alone = sought
        is_other = seeker != peer and seeker not in self.known[peer]
        if is_other and (self._open(peer) or (is_alone and steps == self.steps)):
            self._link(peer, seeker, ())
            self._send(self._hello, peer, seeker, self.topics[peer])
            return
        others = [other for other in self.known[peer] if other not in (sender, seeker)]
        if steps > 1 and others:
            self._walk(peer, self.net.random.choice(others), (seeker, steps - 1, is_alone))

    def _open(self, peer: int) -> int:
        """Neighbours that the peer lacks."""
        return max(0, len(self.planned[peer]) - len(self.known[peer]))

    def _link(self, peer: int, other: int, topics: Iterable[int]) -> None:
        self.known[peer][other] = {*topics}
        if self.repair_us:
            self.net.watch(peer, other, self.on_lost)

    def _search(self, peer: int) -> None:
        """One search for each neighbour that the peer lacks."""
        self._seeks[peer] = False
        if not (lacking := self._open(peer)):
            return
        neighbours = [*self.known[peer]]
        for _ in range(lacking if neighbours else 1):
            to = self.net.random.choice(neighbours) if neighbours else self.net.contact(peer)
            if to is not None:
                self._walk(peer, to, (peer, self.steps, not neighbours))
        self._search_later(peer)

    def _search_later(self, peer: int) -> None:
        if not self._seeks[peer]:
            self._seeks[peer] = True
            self.net.after(self.repair_us, peer, self._search)

    def _walk(self, peer: int, to: int, sought: tuple[int, int, bool]) -> None:
        self.net.send(self._seek, peer, to, sought, HEADER_BYTES + PEER_BYTES)

    def _tell(self, kind: MessageKind, peer: int, topic: int) -> None:
        for neighbour in sorted(self.known[peer]):
            self._send(kind, peer, neighbour, (topic,))

    def _send(self, kind: MessageKind, peer: int, to: int, topics: Iterable[int]) -> None:
        sorted_topics = tuple(sorted(topics))
        self.net.send(
            kind, peer, to, sorted_topics, HEADER_BYTES + TOPIC_BYTES * len(sorted_topics)
        )
