"""Bayeux' parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Duration, Positive
from vizpub.simulators.protocols.pastry.parameters import PastryParameters


@dataclass(frozen=True)
class BayeuxParameters(PastryParameters):
    """Parameters of Bayeux, and of the routing by prefixes below it."""

    refresh: Annotated[
        Duration, Meta(description="A member joins each of its trees again once per period.")
    ] = "3s"
    missed: Annotated[
        Positive, Meta(description="Missed refreshes until a member counts as gone.")
    ] = 1
