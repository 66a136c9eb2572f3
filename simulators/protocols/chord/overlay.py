"""The Chord overlay of all peers, for what is built on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.protocols.chord.joining import ChordJoining
from vizpub.simulators.protocols.chord.keeping import RingKeeping
from vizpub.simulators.protocols.chord.lookups import Lookups
from vizpub.simulators.protocols.chord.node import ChordNode
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.chord.ring import ChordRing
from vizpub.simulators.protocols.routing import NOBODY, RingOverlay, Upcalls

LAYERS = ("successor", "successors", "predecessor", "finger")


class ChordOverlay(RingOverlay):
    """Peers on a ring of ids, each with its state."""

    keeping: RingKeeping
    joining: ChordJoining

    def __init__(
        self, net: Network, parameters: ChordParameters, topics: int, upcalls: Upcalls
    ) -> None:
        self.net, self.upcalls = net, upcalls
        self.ring = ChordRing.of(net.size, parameters.bits, net.seed)
        self.keys = [self.ring.key(f"topic/{net.topic_name(topic)}") for topic in range(topics)]
        self.keeping = RingKeeping(net, self.ring, parameters, self)
        self.sizes = self.keeping.sizes
        self.lookups = Lookups(net, self.keeping, parameters)
        self.joining = ChordJoining(net, self.keeping, self.lookups, parameters)

    @property
    def nodes(self) -> Sequence[ChordNode]:
        """The state of each peer."""
        return self.keeping.nodes

    def describe_ids(self) -> dict[str, str]:
        """The hash and salt of ids: an id is the first `bits` bits of the hash of the salt and a
        name, `peer/17` or `topic/news`.
        """
        return {"id_hash": self.ring.hash, "id_salt": self.ring.salt}

    def reset(self, peer: int) -> None:
        """See RingOverlay.reset."""
        super().reset(peer)
        self.lookups.reset(peer)

    def next_hop(self, peer: int, key: int) -> int:
        """See Routing.next_hop."""
        return self.nodes[peer].next_hop(key).to

    def version(self, peer: int) -> object:
        """See Routing.version."""
        return self.nodes[peer].version

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
