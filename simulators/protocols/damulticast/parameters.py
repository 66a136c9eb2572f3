"""daMulticast's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Positive
from vizpub.simulators.protocols.stan.sampling import SamplingParameters


@dataclass(frozen=True)
class DaMulticastParameters(SamplingParameters):
    """Parameters of daMulticast."""

    more: Annotated[
        Count, Meta(description="c: a member sends to ln S + c others of its S members.")
    ] = 5
    upward: Annotated[
        Positive, Meta(description="g: members, on average, that send to the supertopic.")
    ] = 5
    supers: Annotated[
        Positive, Meta(description="z: members of the supertopic that a peer knows.")
    ] = 3
    reached: Annotated[
        Positive, Meta(description="a: of these, how many such a member sends to on average.")
    ] = 1
