"""Pastry: routing by prefixes of ids on a ring (Rowstron and Druschel, Middleware 2001).

A message for a key goes from peer to peer, each sharing one digit more with the key, to whom
is numerically closest: in about log₂ᵇ N hops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simulators.network import Copy, Links, Network, Publication, System
from simulators.pastry_joining import Joining
from simulators.pastry_leaf_keeping import LeafKeeping
from simulators.pastry_leaves import Ring
from simulators.pastry_node import Node
from simulators.pastry_parameters import Application, PastryParameters

TOO_FAR = 32
"""Hops after which a message goes in circles, as may happen while leaf sets are wrong."""


class Pastry(System, Application):
    """The overlay of all peers. On its own it takes a publication to whom its topic's key is
    closest; subscriptions are not its affair.
    """

    def __init__(
        self,
        net: Network,
        parameters: PastryParameters,
        topics: int,
        application: Application | None = None,
    ) -> None:
        self.net = net
        self.ring = Ring.of(net.size, parameters.b, salt=net.random.getrandbits(64))
        self.keys = [self.ring.key(f"topic/{topic}") for topic in range(topics)]
        """Of each topic: where its rendezvous point lies on the ring."""
        self._application = application or Application()
        self.keeping = LeafKeeping(net, self.ring, parameters, self)
        self.joining = Joining(net, self.keeping, parameters)
        self.routed = net.kind("routed", self.on_routed, failed=self.on_lost, publication=True)

    @property
    def nodes(self) -> Sequence[Node]:
        """What each peer knows."""
        return self.keeping.nodes

    # As a system.

    def join(self, peer: int, topics: Sequence[int] = ()) -> None:
        """See System.join."""
        self.keeping.reset(peer)
        self.joining.enter(peer)

    def leave(self, peer: int, others: Sequence[int] = ()) -> None:
        """See System.leave. `others` are told as well."""
        self.keeping.take_leave(peer, others)

    def gone(self, peer: int) -> None:
        """See System.gone."""
        self.keeping.reset(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """Nothing: who subscribes is not Pastry's affair."""

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Nothing: who subscribes is not Pastry's affair."""

    def publish(self, peer: int, publication: Publication) -> None:
        """Route it to its topic's key."""
        self._forward(peer, Copy(publication, 0))

    def links(self, peer: int) -> Iterable[Links]:
        """The layers leafset, routing and neighbourhood."""
        node = self.nodes[peer]
        yield Links("leafset", None, node.leaves.view.members)
        yield Links("routing", None, tuple(dict.fromkeys(node.table.values())))
        yield Links("neighbourhood", None, tuple(node.near))

    # For what is built on it.

    def route(self, peer: int, key: int) -> list[int]:
        """The peers that a message from `peer` for the key would pass, with both ends."""
        path = [peer]
        while (to := self.nodes[path[-1]].next_hop(key)) != path[-1] and len(path) <= TOO_FAR:
            path.append(to)
        return path

    def doubt(self, peer: int, other: int) -> None:
        """What `peer` sent to the other one was not acknowledged: it is routed around at once,
        and probed.
        """
        self.keeping.doubt(peer, other)

    # As the application of its own leaf keeping.

    def ready(self, peer: int) -> None:
        """See Application.ready."""
        self.joining.serve(peer)
        self._application.ready(peer)

    def lost(self, peer: int, other: int) -> None:
        """See Application.lost. Who has lost everybody joins anew."""
        node = self.nodes[peer]
        if node.is_ready and not node.leaves.right:
            node.is_placed = node.is_ready = False
            self.joining.enter(peer)
        self._application.lost(peer, other)

    def on_routed(self, peer: int, sender: int, copy: Copy) -> None:
        """A publication on its way."""
        if copy.hops <= TOO_FAR:
            self._forward(peer, copy)

    def on_lost(self, peer: int, to: int, copy: Copy) -> None:
        """Route around somebody who did not take it."""
        self.doubt(peer, to)
        self._forward(peer, Copy(copy.publication, copy.hops - 1))

    def _forward(self, peer: int, copy: Copy) -> None:
        to = self.nodes[peer].next_hop(self.keys[copy.publication.topic])
        if to != peer or not copy.hops:
            self.net.forward(self.routed, peer, () if to == peer else (to,), copy)
