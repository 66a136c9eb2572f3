"""StAN's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Positive
from vizpub.simulators.protocols.stan.sampling import SamplingParameters


@dataclass(frozen=True)
class StANParameters(SamplingParameters):
    """Parameters of StAN, and of the peer sampling in each topic below it."""

    neighbors: Annotated[
        Positive, Meta(description="Neighbours that a peer chooses in the overlay of each topic.")
    ] = 4
    sharing: Annotated[
        bool,
        Meta(description="Choose them alike in all topics, so that these share links."),
    ] = True
