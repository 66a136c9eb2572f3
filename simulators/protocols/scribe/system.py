"""Scribe: a multicast tree per topic (Castro et al., JSAC 20(8) 2002).

A publication is routed to its topic's root and goes down the tree from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from vizpub.simulators.engine.network import (
    COPY_BYTES,
    Copy,
    Kind,
    Links,
    Network,
    Publication,
    System,
)
from vizpub.simulators.protocols.pastry.overlay import LAYERS, Overlay
from vizpub.simulators.protocols.routing import TOO_FAR, MakeRouting
from vizpub.simulators.protocols.scribe.parameters import ScribeParameters, TreeParameters
from vizpub.simulators.protocols.scribe.trees import Trees


class Passing(NamedTuple):
    """A copy whose arrival is not a reception: on its way to the root, or back at its publisher
    to be forwarded to the children.
    """

    publication: Publication
    hops: int


class Multicast(System):
    """Scribe on any overlay that routes, which `make` makes.

    With `deliver_on_route` copies on the way to the root are receptions: a peer of the tree on
    that way receives two, and the publisher its own copy. Without it each peer of the tree
    receives one: copies on the way up count as traffic only, and so does the copy that returns to
    a publisher with children.
    """

    def __init__(self, net: Network, parameters: TreeParameters, make: MakeRouting) -> None:
        self.net = net
        self.trees = Trees(net, parameters, make)
        self.routing = self.trees.routing
        self.deliver_on_route = parameters.deliver_on_route
        self.cache_root = parameters.cache_root
        self.up = self._kind("to root", self.on_up, self.on_up_lost)
        self.down = self._kind("multicast", self.on_down, self.on_down_lost)

    def _kind(self, name: str, handler: Any, failed: Any) -> Kind:
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

    def gone(self, peer: int) -> None:
        """See System.gone."""
        self.trees.reset(peer)
        self.routing.gone(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """See System.subscribe."""
        self.trees.enter(peer, topic)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """See System.unsubscribe."""
        self.trees.quit(peer, topic)

    def links(self, peer: int) -> Iterable[Links]:
        """The layer tree, from a child to its parent, and the overlay's layers."""
        for topic, group in sorted(self.trees.members[peer].groups.items()):
            if group.parent not in (-1, peer):
                yield Links("tree", topic, (group.parent,))
        yield from self.routing.links(peer)

    def roles(self, peer: int) -> Iterable[tuple[str, int | None]]:
        """The topics of which the peer is the rendezvous."""
        for topic, group in sorted(self.trees.members[peer].groups.items()):
            if group.parent == peer:
                yield "rendezvous", topic

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        to = self._towards_root(peer, publication.topic)
        if to == peer:
            self._down(peer, Copy(publication, 0))
        elif self.deliver_on_route:
            self.net.forward(self.up, peer, (to,), Copy(publication, 0))
        else:
            self.net.forward(self.up, peer, (), Copy(publication, 0))
            self._send(self.up, peer, to, Passing(publication, 1))

    def on_up(self, peer: int, sender: int, copy: Copy | Passing) -> None:
        """A copy on its way to the root, or at the root."""
        if copy.hops <= TOO_FAR:
            self._pass_up(peer, copy)

    def on_up_lost(self, peer: int, to: int, copy: Copy | Passing) -> None:
        """Use another route; handle the copy here if this peer is now the root."""
        self.routing.doubt(peer, to)
        onward = self._next_hop(peer, copy.publication.topic)
        if onward == peer:
            self._at_root(peer, copy._replace(hops=copy.hops - 1))
        else:
            self._send(self.up, peer, onward, copy)

    def on_down(self, peer: int, sender: int, copy: Copy | Passing) -> None:
        """A copy from a parent: forward it to the children, once."""
        member = self.trees.members[peer]
        if copy.publication.topic not in member.groups:
            self.trees.on_stranger(peer, sender, copy.publication.topic)
        elif member.seen.is_new(copy.publication.message):
            self._pass_down(peer, Copy(copy.publication, copy.hops))

    def on_down_lost(self, peer: int, to: int, copy: Copy | Passing) -> None:
        """Send it again, as the paper's transport does, until the child is known to be gone."""
        self.routing.doubt(peer, to)
        topic = copy.publication.topic
        if topic in self.trees.members[peer].groups and to in self._receivers(peer, topic):
            self._send(self.down, peer, to, copy)

    def _towards_root(self, peer: int, topic: int) -> int:
        group = self.trees.members[peer].groups.get(topic)
        if self.cache_root and group and group.is_attached:
            return group.path[0] if group.path else peer
        return self._next_hop(peer, topic)

    def _next_hop(self, peer: int, topic: int) -> int:
        return self.routing.next_hop(peer, self.routing.keys[topic])

    def _pass_up(self, peer: int, copy: Copy | Passing) -> None:
        to = self._next_hop(peer, copy.publication.topic)
        if to == peer:
            self._at_root(peer, copy)
        elif isinstance(copy, Copy):
            self.net.forward(self.up, peer, (to,), copy)
        else:
            self._send(self.up, peer, to, copy._replace(hops=copy.hops + 1))

    def _at_root(self, peer: int, copy: Copy | Passing) -> None:
        publication = copy.publication
        arrived = Copy(publication, copy.hops)
        if peer != publication.publisher and isinstance(copy, Passing):
            self.net.received(peer, publication.publisher, arrived)
        self._down(peer, arrived)

    def _down(self, peer: int, copy: Copy) -> None:
        """Send a copy from the root down the tree."""
        member = self.trees.members[peer]
        if member.seen.is_new(copy.publication.message):
            if copy.publication.topic in member.groups:
                self._pass_down(peer, copy)
            elif not copy.hops:
                self.net.forward(self.down, peer, (), copy)

    def _pass_down(self, peer: int, copy: Copy) -> None:
        children = self._receivers(peer, copy.publication.topic)
        if children or not copy.hops:
            self._to_children(peer, children, copy)

    def _receivers(self, peer: int, topic: int) -> list[int]:
        """The peers to which a peer of the tree passes publications on: its children."""
        return list(self.trees.members[peer].groups[topic].children)

    def _to_children(self, peer: int, children: Sequence[int], copy: Copy) -> None:
        publisher = copy.publication.publisher
        if self.deliver_on_route or publisher not in children:
            self.net.forward(self.down, peer, children, copy)
            return
        self.net.forward(self.down, peer, [to for to in children if to != publisher], copy)
        self._send(self.down, peer, publisher, Passing(copy.publication, copy.hops + 1))

    def _send(self, kind: Kind, peer: int, to: int, copy: Copy | Passing) -> None:
        """Send a copy that is not reported: a `Passing`, or a repeated one."""
        self.net.send(kind, peer, to, copy, COPY_BYTES + copy.publication.size)


class Scribe(Multicast):
    """Scribe on Pastry."""

    layers: ClassVar[Sequence[str]] = ("tree", *LAYERS)

    def __init__(self, net: Network, parameters: ScribeParameters, topics: int) -> None:
        super().__init__(net, parameters, lambda upcalls: Overlay(net, parameters, topics, upcalls))
