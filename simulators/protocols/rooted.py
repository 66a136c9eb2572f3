"""Multicast from a root: a publication is routed to the peer that is responsible for its topic's
key, and goes down a tree from there. Scribe and Bayeux differ in how the trees grow.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from vizpub.simulators.engine.network import Copy, MessageKind, Network, Publication, System
from vizpub.simulators.protocols.routing import TOO_FAR, Routing


class RootedMulticast(System):
    """Routes publications to their roots, and passes them down.

    Peers on the way to the root pass a publication on, and send it to their children only when it
    comes back down, as does a publisher in the tree.
    """

    def __init__(self, net: Network, routing: Routing) -> None:
        self.net, self.routing = net, routing
        self.up = self._kind("to root", self.on_up, self.on_up_lost)
        self.down = self._kind("multicast", self.on_down, self.on_down_lost)

    def _kind(self, name: str, handler: Any, failed: Any) -> MessageKind:
        return self.net.kind(name, handler, failed=failed, publication=True)

    @abstractmethod
    def is_new(self, peer: int, message: int) -> bool:
        """Mark a message as seen; returns whether it is new to the peer."""

    @abstractmethod
    def receivers(self, peer: int, topic: int) -> Sequence[int]:
        """The peers to which a peer passes publications on: its children in the tree, if any."""

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        self._pass_up(peer, Copy(publication, 0), self._towards_root(peer, publication.topic))

    def on_up(self, peer: int, sender: int, copy: Copy) -> None:
        """A copy on its way to the root, or at the root."""
        if copy.hops <= TOO_FAR:
            self._pass_up(peer, copy, self._next_hop(peer, copy.publication.topic))

    def on_up_lost(self, peer: int, to: int, copy: Copy) -> None:
        """Use another route; the peer may be the root now."""
        self.routing.doubt(peer, to)
        onward = self._next_hop(peer, copy.publication.topic)
        self._pass_up(peer, copy._replace(hops=copy.hops - 1), onward)

    def on_down(self, peer: int, sender: int, copy: Copy) -> None:
        """A copy from a parent: forward it to the children, once."""
        if self.is_new(peer, copy.publication.message):
            self._pass_down(peer, sender, copy)
        else:
            self.net.gauge(peer, "tree_duplicates", 1)

    def on_down_lost(self, peer: int, to: int, copy: Copy) -> None:
        """Send it again, as Scribe's paper says of its transport, until the child is known to be
        gone.
        """
        self.routing.doubt(peer, to)
        if to in self.receivers(peer, copy.publication.topic):
            self.net.forward(self.down, peer, (to,), copy._replace(hops=copy.hops - 1))

    def _towards_root(self, peer: int, topic: int) -> int:
        return self._next_hop(peer, topic)

    def _next_hop(self, peer: int, topic: int) -> int:
        return self.routing.next_hop(peer, self.routing.keys[topic])

    def _pass_up(self, peer: int, copy: Copy, to: int) -> None:
        """Send a copy on along its route, or down the tree where the route ends."""
        if to != peer:
            self.net.forward(self.up, peer, (to,), copy)
            return
        self.net.gauge(peer, "routes", 1)
        self.net.gauge(peer, "route_hops", copy.hops)
        self.net.gauge(peer, "tree_duplicates", 0)
        if self.is_new(peer, copy.publication.message):
            self._pass_down(peer, peer, copy)

    def _pass_down(self, peer: int, sender: int, copy: Copy) -> None:
        others = [to for to in self.receivers(peer, copy.publication.topic) if to != sender]
        self.net.forward(self.down, peer, others, copy)
