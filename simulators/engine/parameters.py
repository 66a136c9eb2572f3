"""Types of the parameters of systems, network models, churn and workloads.

A group of parameters is a frozen dataclass whose fields have one of these types and a
description:

    @dataclass(frozen=True)
    class CyclonParameters:
        view: Annotated[Positive, Meta(description="Peers in a view.")] = 20
        period: Annotated[Duration, Meta(description="One shuffle a period.")] = "1s"

The command line has an option for each; msgspec checks the values.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from vizpub.model.clock import parse_duration_us

MOST = 10**9
"""The most of anything that a system or world counts."""
MOST_PEERS = MOST_INTERVALS = 10**7
MOST_TOPICS = MOST_OF_PEER = 10**6
"""Topics, and publications of a peer: each is an object of its own."""
Positive = Annotated[int, Meta(ge=1, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Topics = Annotated[int, Meta(ge=1, le=MOST_TOPICS, description="Number of topics.")]
Share = Annotated[float, Meta(ge=0, le=1)]
PositiveReal = Annotated[float, Meta(gt=0, le=MOST)]
Duration = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(us|µs|ms|s|m|h)$")]
"""Such as 50ms, 1s or 1.5h."""

us = parse_duration_us
"""µs of a Duration."""
