"""The Pastry overlay of all peers, for applications on top of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simulators.engine.network import Links, Network
from simulators.protocols.pastry.joining import Joining
from simulators.protocols.pastry.leaf_keeping import LeafKeeping
from simulators.protocols.pastry.leaves import Ring
from simulators.protocols.pastry.node import Node
from simulators.protocols.pastry.parameters import Application, PastryParameters

TOO_FAR = 32
"""Hops after which a message is in a loop, which is possible while leaf sets are wrong."""


class Overlay(Application):
    """Peers on a ring of ids, each with its state."""

    def __init__(
        self, net: Network, parameters: PastryParameters, topics: int, application: Application
    ) -> None:
        self.net = net
        self.ring = Ring.of(net.size, parameters.b, salt=net.random.getrandbits(64))
        self.keys = [self.ring.key(f"topic/{topic}") for topic in range(topics)]
        """The position of each topic's rendezvous point on the ring."""
        self.application = application
        self.keeping = LeafKeeping(net, self.ring, parameters, self)
        self.joining = Joining(net, self.keeping, parameters)

    @property
    def nodes(self) -> Sequence[Node]:
        """The state of each peer."""
        return self.keeping.nodes

    def join(self, peer: int) -> None:
        """The peer is up and looks for its place."""
        self.keeping.reset(peer)
        self.joining.enter(peer)

    def leave(self, peer: int, others: Sequence[int] = ()) -> None:
        """The peer is about to go down: notify all peers it knows, and `others`."""
        self.keeping.take_leave(peer, others)

    def gone(self, peer: int) -> None:
        """The peer is down."""
        self.keeping.reset(peer)

    def links(self, peer: int) -> Iterable[Links]:
        """The layers leafset, routing and neighbourhood."""
        node = self.nodes[peer]
        yield Links("leafset", None, node.leaves.view.members)
        yield Links("routing", None, tuple(dict.fromkeys(node.table.values())))
        yield Links("neighbourhood", None, tuple(node.near))

    def route(self, peer: int, key: int) -> list[int]:
        """The route of a message from `peer` for the key, with both ends."""
        path = [peer]
        while (to := self.nodes[path[-1]].next_hop(key)) != path[-1] and len(path) <= TOO_FAR:
            path.append(to)
        return path

    def doubt(self, peer: int, other: int) -> None:
        """A message of `peer` to the other one was not acknowledged: avoid it in routes, and probe
        it.
        """
        self.keeping.doubt(peer, other)

    def ready(self, peer: int) -> None:
        """See Application.ready."""
        self.joining.serve(peer)
        self.application.ready(peer)

    def leaves_changed(self, peer: int) -> None:
        """See Application.leaves_changed."""
        self.application.leaves_changed(peer)

    def lost(self, peer: int, other: int) -> None:
        """See Application.lost. A peer that has lost all others joins again."""
        node = self.nodes[peer]
        if node.is_ready and not node.leaves.right:
            node.is_placed = node.is_ready = False
            self.joining.enter(peer)
        self.application.lost(peer, other)
