"""The Chord overlay of all peers, for what is built on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.protocols.chord.joining import Joining
from vizpub.simulators.protocols.chord.keeping import Keeping
from vizpub.simulators.protocols.chord.lookups import Lookups
from vizpub.simulators.protocols.chord.node import Node
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.chord.ring import Ring
from vizpub.simulators.protocols.routing import NOBODY, Routing, Upcalls

LAYERS = ("successor", "successors", "predecessor", "finger")


class Overlay(Routing, Upcalls):
    """Peers on a ring of ids, each with its state."""

    def __init__(
        self, net: Network, parameters: ChordParameters, topics: int, upcalls: Upcalls
    ) -> None:
        self.net, self.upcalls = net, upcalls
        self.ring = Ring.of(net.size, parameters.bits, net.seed)
        self.keys = [self.ring.key(f"topic/{net.topic_name(topic)}") for topic in range(topics)]
        self.keeping = Keeping(net, self.ring, parameters, self)
        self.sizes = self.keeping.sizes
        self.lookups = Lookups(net, self.keeping, parameters)
        self.joining = Joining(net, self.keeping, self.lookups, parameters)

    @property
    def nodes(self) -> Sequence[Node]:
        """The state of each peer."""
        return self.keeping.nodes

    def described(self) -> dict[str, str]:
        """How anybody computes the ids: the first `bits` bits of the hash of the salt and a name,
        `peer/17` or `topic/news`.
        """
        return {"id_hash": self.ring.hash, "id_salt": self.ring.salt}

    def join(self, peer: int) -> None:
        """See Routing.join."""
        self.keeping.reset(peer)
        self.lookups.reset(peer)
        self.joining.enter(peer)

    def leave(self, peer: int, others: Sequence[int] = ()) -> None:
        """See Routing.leave."""
        self.keeping.take_leave(peer, others)

    def gone(self, peer: int) -> None:
        """See Routing.gone."""
        self.keeping.reset(peer)
        self.lookups.reset(peer)

    def is_ready(self, peer: int) -> bool:
        """See Routing.is_ready."""
        return self.nodes[peer].is_ready

    def next_hop(self, peer: int, key: int) -> int:
        """See Routing.next_hop."""
        return self.nodes[peer].step(key).to

    def version(self, peer: int) -> object:
        """See Routing.version."""
        return self.nodes[peer].version

    def doubt(self, peer: int, other: int) -> None:
        """See Routing.doubt."""
        self.keeping.doubt(peer, other)

    def compare(self, peer: int, other: int) -> None:
        """See Routing.compare. What the two disagree on is the ring."""
        self.keeping.ask_successor(peer)

    def links(self, peer: int) -> Iterable[Links]:
        """The layers successor (the first of the list), successors (the others), predecessor and
        finger.
        """
        node = self.nodes[peer]
        yield Links("successor", None, node.successors[:1])
        yield Links("successors", None, node.successors[1:])
        yield Links("predecessor", None, () if node.predecessor == NOBODY else (node.predecessor,))
        yield Links("finger", None, node.distinct_fingers())

    def ready(self, peer: int) -> None:
        """See Upcalls.ready."""
        self.upcalls.ready(peer)

    def responsibility_changed(self, peer: int) -> None:
        """See Upcalls.responsibility_changed."""
        self.upcalls.responsibility_changed(peer)

    def lost(self, peer: int, other: int) -> None:
        """See Upcalls.lost. A peer that has lost all others joins again."""
        node = self.nodes[peer]
        if node.is_ready and not node.successors:
            node.is_placed = node.is_ready = False
            self.joining.enter(peer)
        self.upcalls.lost(peer, other)
