"""What floodsub and gossipsub share: connections, and what connected peers subscribe to.

libp2p's interface of publish/subscribe leaves it to the environment how peers find each other
("ambient peer discovery"). Here a peer dials some random peers of the bootstrap service, and of
each of its topics some subscribers, which a service of the same kind names at no cost: up to
`topic_peers` that it is connected to, whoever dialled. Connections are symmetric and reliable: a
lost message is sent again, and a peer that goes down is noticed one latency later.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

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
from vizpub.simulators.protocols.libp2p.parameters import FloodsubParameters


class Control(NamedTuple):
    """A control message of any kind: 44 bytes, 4 for each topic, 8 for each number."""

    topics: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    """Messages, or the µs of a backoff."""

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return HEADER_BYTES + 4 * len(self.topics) + 8 * len(self.numbers)


class Connections:
    """The connections of a peer."""

    __slots__ = ("anyone", "dialled", "known", "outbound", "subscribed", "topics")

    def __init__(self, topics: Sequence[int]) -> None:
        self.subscribed = dict.fromkeys(topics)
        self.topics: dict[int, dict[int, None]] = {}
        """The connected peers, and their topics."""
        self.known: dict[int, dict[int, None]] = {}
        """The connected subscribers of each topic."""
        self.dialled: dict[int, tuple[int, ...]] = {}
        """Peers that have not answered yet, and the topics that they were told."""
        self.outbound: dict[int, None] = {}
        """The connected peers that this one dialled."""
        self.anyone: dict[int, None] = {}
        """Those dialled at random, connected or not answered yet."""


class Pubsub(System):
    """A router on connections."""

    layers: ClassVar[Sequence[str]] = ("streams",)

    def __init__(self, net: Network, parameters: FloodsubParameters, topics: int) -> None:
        self.net = net
        self.dials, self.topic_peers = parameters.dials, parameters.topic_peers
        self.connections = [Connections(()) for _ in range(net.size)]
        self.held = FirstCopies(net, us(parameters.seen_ttl))
        self.directory: list[list[int]] = [[] for _ in range(topics)]
        """The subscribers of each topic that are up, which a service names."""
        self.dial = net.kind("dial", self.on_dial, failed=self.on_refused)
        self.hello = self.control("hello", self.on_hello)
        self.subscriptions = self.control("subscribe", self.on_subscribed)
        self.unsubscriptions = self.control("unsubscribe", self.on_unsubscribed)
        self.close = net.kind("close", self.on_close)
        self.copies = net.kind("message", self.on_copy, failed=self.on_unsent, publication=True)
        net.every(us(parameters.discovery_period), self.discover)

    def control(self, name: str, handle: Callable[[int, int, Control], None]) -> MessageKind:
        """A kind of control messages, which are sent again as long as the connection holds; who
        sends one without a connection is told that there is none.
        """

        def receive(peer: int, sender: int, control: Control) -> None:
            if self.is_connected(peer, sender):
                handle(peer, sender, control)

        def send_again(peer: int, to: int, control: Control) -> None:
            if to in self.connections[peer].topics:
                self.net.send(kind, peer, to, control, control.size)

        kind = self.net.kind(name, receive, failed=send_again)
        return kind

    def is_connected(self, peer: int, sender: int) -> bool:
        """Return True for a connected peer, which may be one that has just been dialled."""
        own = self.connections[peer]
        if sender in own.dialled:
            self.connect(peer, sender)
        if sender in own.topics:
            return True
        self.net.send(self.close, peer, sender, None, HEADER_BYTES)
        return False

    # Sessions and subscriptions.

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Look for peers."""
        self.held.clear(peer)
        self.connections[peer] = Connections(topics)
        for topic in topics:
            insort(self.directory[topic], peer)
        self.discover(peer)

    def go_down(self, peer: int) -> None:
        """The service no longer names the peer."""
        for topic in self.connections[peer].subscribed:
            self._unlist(peer, topic)

    def subscribe(self, peer: int, topic: int) -> None:
        """Tell all connected peers."""
        self.connections[peer].subscribed[topic] = None
        insort(self.directory[topic], peer)
        self._tell_all(self.subscriptions, peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Tell all connected peers."""
        del self.connections[peer].subscribed[topic]
        self._unlist(peer, topic)
        self._tell_all(self.unsubscriptions, peer, topic)

    def _unlist(self, peer: int, topic: int) -> None:
        listed = self.directory[topic]
        del listed[bisect_left(listed, peer)]

    def _tell_all(self, kind: MessageKind, peer: int, topic: int) -> None:
        for other in self.connections[peer].topics:
            self.tell(kind, peer, other, Control((topic,)))

    def tell(self, kind: MessageKind, peer: int, to: int, control: Control) -> None:
        """Send a control message."""
        self.net.send(kind, peer, to, control, control.size)

    # Connections.

    def discover(self, peer: int) -> None:
        """Dial random peers, and subscribers of topics of which the peer knows too few."""
        own = self.connections[peer]
        for _ in range(self.dials - len(own.anyone)):
            contact = self.net.contact(peer)
            if contact is not None and self._dial(peer, contact):
                own.anyone[contact] = None
        for topic in own.subscribed:
            missing = self.topic_peers - len(own.known.get(topic, ()))
            if missing > 0:
                listed = self.directory[topic]
                asked = min(missing + len(own.topics) + 1, len(listed))
                strangers = (
                    other
                    for other in self.net.random.sample(listed, asked)
                    if other not in own.topics
                )
                for other, _ in zip(strangers, range(missing), strict=False):
                    self._dial(peer, other)

    def _dial(self, peer: int, other: int) -> bool:
        """Dial a peer. Return False if it is connected or dialled already."""
        own = self.connections[peer]
        if other == peer or other in own.topics or other in own.dialled:
            return False
        own.dialled[other] = tuple(own.subscribed)
        self.tell(self.dial, peer, other, Control(own.dialled[other]))
        return True

    def on_refused(self, peer: int, to: int, control: Control) -> None:
        """Nobody answered."""
        own = self.connections[peer]
        own.dialled.pop(to, None)
        own.anyone.pop(to, None)

    def on_dial(self, peer: int, sender: int, control: Control) -> None:
        """Accept a connection."""
        self.connect(peer, sender, control.topics)
        self.tell(self.hello, peer, sender, Control(tuple(self.connections[peer].subscribed)))

    def on_hello(self, peer: int, sender: int, control: Control) -> None:
        """The dialled peer answered."""
        self.connect(peer, sender, control.topics)

    def connect(self, peer: int, other: int, topics: Iterable[int] = ()) -> None:
        """Have a connection; one that the peer dialled is outbound, and the other is told what
        the peer has subscribed to, or no longer does, since.
        """
        own = self.connections[peer]
        if other not in own.topics:
            own.topics[other] = {}
            self.net.watch(peer, other, self.disconnect)
        for topic in topics:
            self._note(peer, other, topic)
        told = own.dialled.pop(other, None)
        if told is not None:
            own.outbound[other] = None
            for topic in own.subscribed.keys() - told:
                self.tell(self.subscriptions, peer, other, Control((topic,)))
            for topic in {*told} - own.subscribed.keys():
                self.tell(self.unsubscriptions, peer, other, Control((topic,)))

    def disconnect(self, peer: int, other: int) -> None:
        """The connection is broken."""
        own = self.connections[peer]
        for topic in own.topics.pop(other, ()):
            own.known[topic].pop(other, None)
        own.outbound.pop(other, None)
        own.anyone.pop(other, None)
        self.net.unwatch(peer, other)

    def on_close(self, peer: int, sender: int, payload: None) -> None:
        """The other knows of no connection."""
        self.disconnect(peer, sender)

    def _note(self, peer: int, other: int, topic: int) -> None:
        own = self.connections[peer]
        own.topics[other][topic] = None
        own.known.setdefault(topic, {})[other] = None

    def on_subscribed(self, peer: int, sender: int, control: Control) -> None:
        """A connected peer subscribed."""
        self._note(peer, sender, *control.topics)

    def on_unsubscribed(self, peer: int, sender: int, control: Control) -> None:
        """A connected peer ended a subscription."""
        own = self.connections[peer]
        for topic in control.topics:
            own.topics[sender].pop(topic, None)
            own.known.get(topic, {}).pop(sender, None)

    # Publications.

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """See Handler: a copy arrived."""
        raise NotImplementedError

    def on_unsent(self, peer: int, to: int, copy: Copy) -> None:
        """Send a lost copy again."""
        if to in self.connections[peer].topics:
            self.net.forward(self.copies, peer, (to,), copy._replace(hops=copy.hops - 1))

    def links(self, peer: int) -> Iterable[Links]:
        """The connections."""
        yield Links("streams", None, sorted(self.connections[peer].topics))


class Floodsub(Pubsub):
    """Flooding among the subscribers of a topic: each sends its first copy to all connected ones,
    but not back, and not to the publisher.
    """

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        self._flood(peer, peer, Copy(publication, 0))

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Send the first copy on."""
        if copy.publication.topic in self.connections[peer].subscribed:
            self._flood(peer, sender, copy)

    def _flood(self, peer: int, sender: int, copy: Copy) -> None:
        if self.held.add(peer, copy):
            known: Any = self.connections[peer].known.get(copy.publication.topic, ())
            done = (sender, copy.publication.publisher)
            self.net.forward(self.copies, peer, [to for to in known if to not in done], copy)
