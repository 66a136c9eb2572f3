"""The Pastry overlay of all peers, for what is built on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.protocols.pastry.joining import PastryJoining
from vizpub.simulators.protocols.pastry.leaf_keeping import LeafKeeping
from vizpub.simulators.protocols.pastry.leaves import PastryRing
from vizpub.simulators.protocols.pastry.node import PastryNode
from vizpub.simulators.protocols.pastry.parameters import SIZES, PastryParameters
from vizpub.simulators.protocols.routing import RingOverlay, Upcalls

LAYERS = ("leafset", "routing", "neighbourhood")


class PastryOverlay(RingOverlay):
    """Peers on a ring of ids, each with its state."""

    keeping: LeafKeeping
    joining: PastryJoining

    def __init__(
        self, net: Network, parameters: PastryParameters, topics: int, upcalls: Upcalls
    ) -> None:
        self.net, self.sizes = net, SIZES
        self.ring = PastryRing.of(net.size, parameters.b, salt=net.random.getrandbits(64))
        self.keys = [self.ring.key(f"topic/{topic}") for topic in range(topics)]
        """The position of each topic's rendezvous point on the ring."""
        self.upcalls = upcalls
        self.keeping = LeafKeeping(net, self.ring, parameters, self)
        self.joining = PastryJoining(net, self.keeping, parameters)

    @property
    def nodes(self) -> Sequence[PastryNode]:
        """The state of each peer."""
        return self.keeping.nodes

    def links(self, peer: int) -> Iterable[Links]:
        """The layers leafset, routing and neighbourhood."""
        node = self.nodes[peer]
        yield Links("leafset", None, node.leaves.view.members)
        yield Links("routing", None, tuple(dict.fromkeys(node.table.values())))
        yield Links("neighbourhood", None, tuple(node.near))

    def next_hop(self, peer: int, key: int) -> int:
        """See Routing.next_hop."""
        return self.nodes[peer].next_hop(key)

    def version(self, peer: int) -> object:
        """See Routing.version. It is the leaf set: routes are kept where the routing table only
        finds nearer peers.
        """
        return self.nodes[peer].leaves.view

    def compare(self, peer: int, other: int) -> None:
        """See Routing.compare."""
        self.keeping.ask(peer, other)

    def ready(self, peer: int) -> None:
        """See Upcalls.ready."""
        self.joining.serve(peer)
        self.upcalls.ready(peer)
