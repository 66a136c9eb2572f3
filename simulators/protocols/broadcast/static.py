"""Broadcasts on a topology that does not change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.protocols.broadcast.membership import Membership
from vizpub.simulators.protocols.broadcast.parameters import BroadcastParameters
from vizpub.simulators.protocols.broadcast.system import TREE_LAYERS, BroadcastSystem
from vizpub.simulators.protocols.broadcast.topologies import (
    Topology,
    TopologyParameters,
    neighbours_in,
)


@dataclass(frozen=True)
class BroadcastStaticParameters(TopologyParameters, BroadcastParameters):
    """Parameters of the topology, and of the broadcast on it."""

    def __post_init__(self) -> None:
        """Check the models in advance. Raises: UseError."""
        BroadcastParameters.__post_init__(self)
        TopologyParameters.__post_init__(self)


class StaticLinks(Membership):
    """Links between peers, whether these are up or not. Failures are not noticed."""

    def __init__(self, net: Network, topology: Topology) -> None:
        super().__init__(net)
        self.linked = neighbours_in(topology.edges(net.size, net.random), net.size)

    def join(self, peer: int) -> None:
        """Nothing: a peer returns to its links."""

    def neighbours(self, peer: int) -> Sequence[int]:
        """The peers it is linked to."""
        return self.linked[peer]

    def links(self, peer: int) -> Iterable[Links]:
        """All links of a peer."""
        yield Links("overlay", None, self.linked[peer])


class BroadcastStatic(BroadcastSystem):
    """A broadcast on a static topology; all peers take part, whatever they subscribe to."""

    layers: ClassVar[Sequence[str]] = (*StaticLinks.layers, *TREE_LAYERS)

    def __init__(
        self, net: Network, parameters: BroadcastStaticParameters, topics: int = 0
    ) -> None:
        super().__init__(net, StaticLinks(net, parameters.get_topology()), parameters)
