"""The interface between overlays that route by keys and what is built on them.

After the common interface of structured overlays (Dabek et al., IPTPS 2003): a peer knows the next
hop for a key, and is told when the keys it is responsible for change. Pastry and Chord fill it;
Scribe uses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from vizpub.simulators.engine.network import (
    TRANSPORT_BYTES,
    Copy,
    Links,
    Network,
    Publication,
    System,
)

NOBODY = -1
TOO_FAR = 32
"""Hops after which a message is in a loop, which is possible while peers disagree on the ring."""


class Sizes:
    """Sizes of messages in an overlay whose ids have that many bytes."""

    def __init__(self, id_bytes: int) -> None:
        self.id = id_bytes
        self.peer = id_bytes + 6
        """A peer that is named in a message: id, address and port."""
        self.header = TRANSPORT_BYTES + 8 + id_bytes
        """Of any message: the transport's, its kind and the sender's id."""

    def of(self, peers: int = 0, ids: int = 0) -> int:
        """Bytes of a message that names that many peers and ids."""
        return self.header + self.peer * peers + self.id * ids


class Upcalls:
    """Events that an overlay reports to what is built on it."""

    def ready(self, peer: int) -> None:
        """The peer has found its place; from now on it may route and answer for keys."""

    def responsibility_changed(self, peer: int) -> None:
        """Others have come near to the peer on the ring, so it may have lost keys to them."""

    def lost(self, peer: int, other: int) -> None:
        """The peer found that another one is down."""


class Routing(ABC):
    """The overlay of all peers, for what is built on it."""

    net: Network
    keys: Sequence[int]
    """The key of each topic."""
    sizes: Sizes

    @abstractmethod
    def join(self, peer: int) -> None:
        """The peer is up and looks for its place; `Upcalls.ready` is called when it has it."""

    @abstractmethod
    def leave(self, peer: int, others: Sequence[int] = ()) -> None:
        """The peer is about to go down: notify the peers it knows, and `others`."""

    @abstractmethod
    def go_down(self, peer: int) -> None:
        """The peer is down."""

    @abstractmethod
    def is_ready(self, peer: int) -> bool:
        """Return True if the peer has found its place."""

    @abstractmethod
    def next_hop(self, peer: int, key: int) -> int:
        """The next hop of a message for the key; the peer itself if it is responsible."""

    @abstractmethod
    def version(self, peer: int) -> object:
        """An object that is another one when the peer's routes may have changed: until then, what
        is built on the overlay keeps them.
        """

    @abstractmethod
    def doubt(self, peer: int, other: int) -> None:
        """A message of `peer` to the other one was not acknowledged: avoid it in routes, and find
        out whether it is down.
        """

    @abstractmethod
    def compare(self, peer: int, other: int) -> None:
        """The two seem to disagree on routes: exchange what they know."""

    @abstractmethod
    def links(self, peer: int) -> Iterable[Links]:
        """The links of the overlay's layers."""

    def route(self, peer: int, key: int) -> list[int]:
        """The route of a message from `peer` for the key, with both ends."""
        path = [peer]
        while (to := self.next_hop(path[-1], key)) != path[-1] and len(path) <= TOO_FAR:
            path.append(to)
        return path


class RingOverlay(Routing, Upcalls):
    """A routing overlay whose peers have places on a ring."""

    keeping: Any
    """Maintains the ring, and has a node for each peer: the state that it loses when it leaves."""
    joining: Any
    upcalls: Upcalls

    def reset(self, peer: int) -> None:
        """Give the peer an empty state."""
        self.keeping.reset(peer)

    def join(self, peer: int) -> None:
        """See Routing.join."""
        self.reset(peer)
        self.joining.enter(peer)

    def leave(self, peer: int, others: Sequence[int] = ()) -> None:
        """See Routing.leave."""
        self.keeping.take_leave(peer, others)

    def go_down(self, peer: int) -> None:
        """See Routing.go_down."""
        self.reset(peer)

    def is_ready(self, peer: int) -> bool:
        """See Routing.is_ready."""
        return bool(self.keeping.nodes[peer].is_ready)

    def doubt(self, peer: int, other: int) -> None:
        """See Routing.doubt."""
        self.keeping.doubt(peer, other)

    def ready(self, peer: int) -> None:
        """See Upcalls.ready."""
        self.upcalls.ready(peer)

    def responsibility_changed(self, peer: int) -> None:
        """See Upcalls.responsibility_changed."""
        self.upcalls.responsibility_changed(peer)

    def lost(self, peer: int, other: int) -> None:
        """See Upcalls.lost. A peer that has lost all others joins again."""
        node = self.keeping.nodes[peer]
        if node.is_ready and node.is_alone:
            node.is_placed = node.is_ready = False
            self.joining.enter(peer)
        self.upcalls.lost(peer, other)


MakeRouting = Callable[[Upcalls], Routing]


class Routed(System, Upcalls):
    """A routing overlay on its own. A publication goes to the peer responsible for its topic's
    key; subscriptions are ignored. That peer counts it as a route, and its hops: 0 where it
    published itself, which is no reception.
    """

    layers: ClassVar[Sequence[str]]

    def __init__(self, net: Network, make: MakeRouting) -> None:
        self.net = net
        self.routing = make(self)
        self.routed: Any = net.kind("routed", self.on_routed, failed=self.on_lost, publication=True)

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self.routing.join(peer)

    def leave(self, peer: int) -> None:
        """See System.leave."""
        self.routing.leave(peer)

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        self.routing.go_down(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """Nothing."""

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Nothing."""

    def publish(self, peer: int, publication: Publication) -> None:
        """Route it to its topic's key."""
        self._forward(peer, Copy(publication, 0))

    def links(self, peer: int) -> Iterable[Links]:
        """The links of the overlay."""
        return self.routing.links(peer)

    def on_routed(self, peer: int, sender: int, copy: Copy) -> None:
        """A publication in transit."""
        if copy.hops <= TOO_FAR:
            self._forward(peer, copy)

    def on_lost(self, peer: int, to: int, copy: Copy) -> None:
        """Use another route, as the peer did not acknowledge it."""
        self.routing.doubt(peer, to)
        self._forward(peer, Copy(copy.publication, copy.hops - 1))

    def _forward(self, peer: int, copy: Copy) -> None:
        to = self.routing.next_hop(peer, self.routing.keys[copy.publication.topic])
        if to == peer:
            self.net.gauge(peer, "routes", 1)
            self.net.gauge(peer, "route_hops", copy.hops)
        if to != peer or not copy.hops:
            self.net.forward(self.routed, peer, () if to == peer else (to,), copy)
