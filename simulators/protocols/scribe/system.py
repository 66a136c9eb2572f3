"""Scribe: a multicast tree per topic (Castro et al., JSAC 20(8) 2002).

A publication is routed to its topic's root and goes down the tree from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from vizpub.simulators.engine.network import Copy, Links, Network
from vizpub.simulators.protocols.pastry.overlay import LAYERS, PastryOverlay
from vizpub.simulators.protocols.rooted import RootedMulticast
from vizpub.simulators.protocols.routing import NOBODY, MakeRouting
from vizpub.simulators.protocols.scribe.parameters import ScribeParameters, TreeParameters
from vizpub.simulators.protocols.scribe.trees import ScribeTrees


class Multicast(RootedMulticast):
    """Scribe on any overlay that routes, which `make` makes.

    A peer of the tree receives a publication once from its parent, and those on the way to the root
    once more before.
    """

    def __init__(self, net: Network, parameters: TreeParameters, make: MakeRouting) -> None:
        self.trees = ScribeTrees(net, parameters, make)
        super().__init__(net, self.trees.routing)
        self.cache_root = parameters.cache_root

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

    def is_new(self, peer: int, message: int) -> bool:
        """See RootedMulticast.is_new."""
        return self.trees.members[peer].seen.is_new(message)

    def receivers(self, peer: int, topic: int) -> list[int]:
        """See RootedMulticast.receivers."""
        group = self.trees.members[peer].groups.get(topic)
        return list(group.children) if group else []

    def on_down(self, peer: int, sender: int, copy: Copy) -> None:
        """See RootedMulticast.on_down. A parent in a tree that the peer is not in is left."""
        topic = copy.publication.topic
        if topic in self.trees.members[peer].groups:
            super().on_down(peer, sender, copy)
        else:
            self.trees.on_stranger(peer, sender, topic)

    def _towards_root(self, peer: int, topic: int) -> int:
        group = self.trees.members[peer].groups.get(topic)
        if self.cache_root and group and group.is_attached:
            return group.path[0] if group.path else peer
        return super()._towards_root(peer, topic)


class Scribe(Multicast):
    """Scribe on Pastry."""

    layers: ClassVar[Sequence[str]] = ("tree", "root", *LAYERS)

    def __init__(self, net: Network, parameters: ScribeParameters, topics: int) -> None:
        super().__init__(
            net, parameters, lambda upcalls: PastryOverlay(net, parameters, topics, upcalls)
        )
