"""Pastry: routing by prefixes of ids on a ring (Rowstron and Druschel, Middleware 2001).

A message for a key goes from peer to peer, each of which shares one digit more with the key, to the
numerically closest peer: in about log₂ᵇ N hops.
"""

from __future__ import annotations

from vizpub.simulators.engine.network import Network
from vizpub.simulators.protocols.pastry.overlay import LAYERS, PastryOverlay
from vizpub.simulators.protocols.pastry.parameters import PastryParameters
from vizpub.simulators.protocols.routing import Routed


class Pastry(Routed):
    """The overlay on its own."""

    layers = LAYERS

    def __init__(self, net: Network, parameters: PastryParameters, topics: int) -> None:
        super().__init__(net, lambda upcalls: PastryOverlay(net, parameters, topics, upcalls))
