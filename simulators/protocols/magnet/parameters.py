"""Magnet's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive
from vizpub.simulators.protocols.scribe.parameters import TreeParameters
from vizpub.simulators.protocols.spidercast.views import ViewParameters


@dataclass(frozen=True)
class MagnetParameters(ViewParameters, TreeParameters):
    """Parameters of Magnet, and of the peer sampling below it."""

    cluster: Annotated[
        bool,
        Meta(description="Peers of like interests are near on the ring; otherwise at random."),
    ] = True
    near: Annotated[
        Positive, Meta(description="Neighbours on the ring that a peer has on either side.")
    ] = 3
    far: Annotated[Count, Meta(description="Small-world links of a peer.")] = 8
    period: Annotated[
        Duration, Meta(description="Once a period a peer gossips, and tells its neighbours.")
    ] = "1s"
