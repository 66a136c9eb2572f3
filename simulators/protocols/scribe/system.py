"""Scribe: a multicast tree per topic (Castro et al., JSAC 20(8) 2002).

A publication is routed to its topic's root and goes down the tree from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from vizpub.simulators.engine.network import (
    Copy,
    Links,
    MessageKind,
    Network,
    Publication,
    System,
)
from vizpub.simulators.protocols.pastry.overlay import LAYERS, PastryOverlay
from vizpub.simulators.protocols.routing import NOBODY, TOO_FAR, MakeRouting
from vizpub.simulators.protocols.scribe.parameters import ScribeParameters, TreeParameters
from vizpub.simulators.protocols.scribe.trees import ScribeTrees


class Multicast(System):
    """Scribe on any overlay that routes, which `make` makes.

    A peer of the tree receives a publication once from its parent, and those on the way to the root
    once more before: they pass it on, and send it to their children only when it comes back down,
    as does a publisher in the tree.
    """

    def __init__(self, net: Network, parameters: TreeParameters, make: MakeRouting) -> None:
        self.net = net
        self.trees = ScribeTrees(net, parameters, make)
        self.routing = self.trees.routing
        self.cache_root = parameters.cache_root
        self.up = self._kind("to root", self.on_up, self.on_up_lost)
        self.down = self._kind("multicast", self.on_down, self.on_down_lost)

    def _kind(self, name: str, handler: Any, failed: Any) -> MessageKind:
        return self.net.kind(name, handler, failed=failed, publication=True)

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self.trees.reset(peer)
        for topic in topics:
            self.trees.enter(peer, topic)
        self.routing.join(peer)

    def leave(self, peer: int) -> None:
        """See System.leave. Parents and children are notified like all that know the peer."""
        member = self.trees.members[peer]
        self.routing.leave(peer, [*member.parents, *member.children])

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        self.trees.reset(peer)
        self.routing.go_down(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """See System.subscribe."""
        self.trees.enter(peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """See System.unsubscribe."""
        self.trees.quit(peer, topic)

    def links(self, peer: int) -> Iterable[Links]:
        """The layer tree, from a child to its parent; with `cache_root` the layer root, to what the
        peer knows as the root; and the overlay's layers.
        """
        for topic, group in sorted(self.trees.members[peer].groups.items()):
            if group.parent not in (NOBODY, peer):
                yield Links("tree", topic, (group.parent,))
            if self.cache_root and group.is_attached:
                yield Links("root", topic, group.path[:1])
        yield from self.routing.links(peer)

    def roles(self, peer: int) -> Iterable[tuple[str, int | None]]:
        """The topics of which the peer is the rendezvous."""
        for topic, group in sorted(self.trees.members[peer].groups.items()):
            if group.parent == peer:
                yield "rendezvous", topic

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
        member = self.trees.members[peer]
        if copy.publication.topic not in member.groups:
            self.trees.on_stranger(peer, sender, copy.publication.topic)
        elif member.seen.is_new(copy.publication.message):
            self._pass_down(peer, sender, copy)
        else:
            self.net.gauge(peer, "tree_duplicates", 1)

    def on_down_lost(self, peer: int, to: int, copy: Copy) -> None:
        """Send it again, as the paper's transport does, until the child is known to be gone."""
        self.routing.doubt(peer, to)
        if to in self._receivers(peer, copy.publication.topic):
            self.net.forward(self.down, peer, (to,), copy._replace(hops=copy.hops - 1))

    def _towards_root(self, peer: int, topic: int) -> int:
        group = self.trees.members[peer].groups.get(topic)
        if self.cache_root and group and group.is_attached:
            return group.path[0] if group.path else peer
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
        if self.trees.members[peer].seen.is_new(copy.publication.message):
            self._pass_down(peer, peer, copy)

    def _pass_down(self, peer: int, sender: int, copy: Copy) -> None:
        others = [to for to in self._receivers(peer, copy.publication.topic) if to != sender]
        self.net.forward(self.down, peer, others, copy)

    def _receivers(self, peer: int, topic: int) -> list[int]:
        """The peers to which a peer passes publications on: its children in the tree, if any."""
        group = self.trees.members[peer].groups.get(topic)
        return list(group.children) if group else []


class Scribe(Multicast):
    """Scribe on Pastry."""

    layers: ClassVar[Sequence[str]] = ("tree", "root", *LAYERS)

    def __init__(self, net: Network, parameters: ScribeParameters, topics: int) -> None:
        super().__init__(
            net, parameters, lambda upcalls: PastryOverlay(net, parameters, topics, upcalls)
        )
