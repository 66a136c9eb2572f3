"""Broadcasts on a topology that does not change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.protocols.broadcast.membership import Membership
from vizpub.simulators.protocols.broadcast.parameters import BroadcastParameters
from vizpub.simulators.protocols.broadcast.system import TREE_LAYERS, BroadcastSystem
from vizpub.simulators.protocols.broadcast.topologies import TOPOLOGIES, Topology, neighbours_in


@dataclass(frozen=True)
class BroadcastStaticParameters(BroadcastParameters):
    """Parameters of the topology, and of the broadcast on it."""

    topology: Annotated[
        str,
        Meta(
            description="Who is linked to whom: poisson:MEAN, scale-free:EXPONENT, acl:a=6,b=1, "
            "file:EDGES, or run:NAME,at=TIME,layer=LAYER, the overlay of a stored run."
        ),
    ] = "poisson:5"

    def __post_init__(self) -> None:
        """Check the models in advance. Raises: UseError."""
        super().__post_init__()
        self.get_topology()

    def get_topology(self) -> Topology:
        """The model of the topology."""
        return parse(self.topology, TOPOLOGIES, "topology")


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
