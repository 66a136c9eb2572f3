"""Scribe on Chord, as in the report by Vivoli, Costa and Silva (2019): a topic's root is the first
peer from its key on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vizpub.simulators.engine.network import Copy, Network
from vizpub.simulators.protocols.chord.overlay import LAYERS, ChordOverlay
from vizpub.simulators.protocols.routing import NOBODY
from vizpub.simulators.protocols.scribe.parameters import ScribeChordParameters
from vizpub.simulators.protocols.scribe.system import Multicast


class ScribeChord(Multicast):
    """Scribe on Chord.

    With `both_ways` (the report's variation) a publication does not go to the root first: the first
    peer of the tree on its way sends it to its children and its parent, and each peer passes it on
    to all of them but the sender.
    """

    layers: ClassVar[Sequence[str]] = ("tree", "root", *LAYERS)
    routing: ChordOverlay

    def __init__(self, net: Network, parameters: ScribeChordParameters, topics: int) -> None:
        super().__init__(
            net, parameters, lambda upcalls: ChordOverlay(net, parameters, topics, upcalls)
        )
        self.both_ways = parameters.both_ways

    def header_facts(self) -> Mapping[str, Any]:
        """See System.header_facts."""
        return self.routing.describe_ids()

    def _pass_up(self, peer: int, copy: Copy, to: int) -> None:
        ends_here = self.both_ways and copy.publication.topic in self.trees.members[peer].groups
        super()._pass_up(peer, copy, peer if ends_here else to)

    def receivers(self, peer: int, topic: int) -> list[int]:
        """See RootedMulticast.receivers."""
        children = super().receivers(peer, topic)
        group = self.trees.members[peer].groups.get(topic)
        if not self.both_ways or group is None or group.parent in (NOBODY, peer, *children):
            return children
        return [*children, group.parent]
