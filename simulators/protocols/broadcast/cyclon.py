"""Broadcasts on CYCLON's views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from vizpub.simulators.engine.network import Links, Network
from vizpub.simulators.engine.parameters import Duration, Positive
from vizpub.simulators.protocols.broadcast.membership import Membership
from vizpub.simulators.protocols.broadcast.parameters import BroadcastParameters
from vizpub.simulators.protocols.broadcast.system import TREE_LAYERS, BroadcastSystem
from vizpub.simulators.protocols.poldercast.cyclon import Cyclon, CyclonParameters
from vizpub.simulators.protocols.poldercast.views import drop, entries, place_of


@dataclass(frozen=True)
class BroadcastCyclonParameters(BroadcastParameters):
    """Parameters of CYCLON, and of the broadcast on it; views as in HyParView's evaluation."""

    broadcast: Annotated[
        str,
        Meta(description="How publications spread: flood, fanout:F, gossip:P or plumtree."),
    ] = "fanout:4"
    view: Annotated[Positive, Meta(description="Neighbours of a peer.")] = 35
    gossip: Annotated[Positive, Meta(description="Entries in a shuffle.")] = 14
    period: Annotated[Duration, Meta(description="Each peer starts one shuffle per period.")] = "1s"
    acknowledged: Annotated[
        bool,
        Meta(description="Peers drop neighbours that do not acknowledge a copy (CyclonAcked)."),
    ] = False


class CyclonViews(Membership):
    """CYCLON as a membership: the neighbours of a peer are its view, which shuffles change."""

    layers = Cyclon.layers
    is_symmetric = False

    def __init__(self, net: Network, parameters: BroadcastCyclonParameters) -> None:
        super().__init__(net)
        self.acknowledged = parameters.acknowledged
        self.cyclon = Cyclon(
            net, CyclonParameters(parameters.view, parameters.gossip, parameters.period)
        )

    def join(self, peer: int) -> None:
        """See Membership.join."""
        self.cyclon.join(peer)

    def neighbours(self, peer: int) -> Sequence[int]:
        """The view."""
        return entries(self.cyclon.views[peer])

    def on_failure(self, peer: int, other: int) -> None:
        """Drop a neighbour, if failures are noticed; entries of a pending shuffle stay."""
        view = self.cyclon.views[peer]
        place = place_of(view, other)
        if self.acknowledged and place >= self.cyclon.lent[peer]:
            drop(view, place)

    def links(self, peer: int) -> Iterable[Links]:
        """The view."""
        return self.cyclon.links(peer)


class BroadcastCyclon(BroadcastSystem):
    """A broadcast on CYCLON; all peers take part, whatever they subscribe to."""

    layers: ClassVar[Sequence[str]] = (*CyclonViews.layers, *TREE_LAYERS)

    def __init__(
        self, net: Network, parameters: BroadcastCyclonParameters, topics: int = 0
    ) -> None:
        super().__init__(net, CyclonViews(net, parameters), parameters)
