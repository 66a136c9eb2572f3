"""HyParView with a broadcast on its active view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from vizpub.simulators.engine.network import Network
from vizpub.simulators.protocols.broadcast.system import TREE_LAYERS, BroadcastSystem
from vizpub.simulators.protocols.hyparview.membership import PartialViews
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters


class HyParView(BroadcastSystem):
    """HyParView; all its peers take part in broadcasts, whatever they subscribe to."""

    layers: ClassVar[Sequence[str]] = (*PartialViews.layers, *TREE_LAYERS)

    def __init__(self, net: Network, parameters: HyParViewParameters, topics: int = 0) -> None:
        self.views = PartialViews(net, parameters)
        super().__init__(net, self.views, parameters)
