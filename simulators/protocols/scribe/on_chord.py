"""Scribe on Chord, as in the report by Vivoli, Costa and Silva (2019): a topic's root is the first
peer from its key on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vizpub.simulators.engine.network import Copy, Network, Publication
from vizpub.simulators.protocols.chord.overlay import LAYERS, Overlay
from vizpub.simulators.protocols.routing import NOBODY
from vizpub.simulators.protocols.scribe.parameters import ScribeChordParameters
from vizpub.simulators.protocols.scribe.system import Multicast, Passing


class ScribeChord(Multicast):
    """Scribe on Chord.

    With `both_ways` (the report's variation) a publication does not go to the root first: the first
    peer of the tree on its way sends it to its children and its parent, and each peer passes it on
    to all of them but the sender.
    """

    layers: ClassVar[Sequence[str]] = ("tree", *LAYERS)
    routing: Overlay

    def __init__(self, net: Network, parameters: ScribeChordParameters, topics: int) -> None:
        super().__init__(net, parameters, lambda upcalls: Overlay(net, parameters, topics, upcalls))
        self.both_ways = parameters.both_ways

    def described(self) -> Mapping[str, Any]:
        """See System.described."""
        return self.routing.described()

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        if not self.both_ways:
            super().publish(peer, publication)
        elif publication.topic in self.trees.members[peer].groups:
            self._flood(peer, peer, Copy(publication, 0))
        else:
            self.net.forward(self.up, peer, (), Copy(publication, 0))
            if (to := self._next_hop(peer, publication.topic)) != peer:
                self._send(self.up, peer, to, Passing(publication, 1))

    def on_down(self, peer: int, sender: int, copy: Copy | Passing) -> None:
        """A copy from a parent, or from a child."""
        if self.both_ways and copy.publication.topic in self.trees.members[peer].groups:
            self._flood(peer, sender, Copy(copy.publication, copy.hops))
        else:
            super().on_down(peer, sender, copy)

    def _pass_up(self, peer: int, copy: Copy | Passing) -> None:
        publication = copy.publication
        if self.both_ways and publication.topic in self.trees.members[peer].groups:
            arrived = Copy(publication, copy.hops)
            self.net.received(peer, publication.publisher, arrived)
            self._flood(peer, publication.publisher, arrived)
        else:
            super()._pass_up(peer, copy)

    def _flood(self, peer: int, sender: int, copy: Copy) -> None:
        member = self.trees.members[peer]
        if not member.seen.is_new(copy.publication.message):
            return
        targets = [to for to in self._receivers(peer, copy.publication.topic) if to != sender]
        if targets or not copy.hops:
            self.net.forward(self.down, peer, targets, copy)

    def _receivers(self, peer: int, topic: int) -> list[int]:
        children = super()._receivers(peer, topic)
        parent = self.trees.members[peer].groups[topic].parent
        is_upward = self.both_ways and parent not in (NOBODY, peer, *children)
        return [*children, parent] if is_upward else children
