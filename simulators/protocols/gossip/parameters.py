"""Parameters of gossip on a topology, and what follows from its degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from model.arrays import Int64s
from simulators.engine.parameters import Duration, Positive, Share
from simulators.engine.specs import parse
from simulators.protocols.broadcast.topologies import TOPOLOGIES, Topology


@dataclass(frozen=True)
class GossipParameters:
    """Parameters of the topology, of the gossip, and of the repair."""

    topology: Annotated[
        str,
        Meta(
            description="Who is linked to whom: poisson:MEAN, scale-free:EXPONENT, acl:a=6,b=1, "
            "file:EDGES, or run:NAME,at=TIME,layer=LAYER, the overlay of a stored run."
        ),
    ] = "poisson:5"
    gamma: Annotated[
        Share, Meta(description="Probability that a neighbour that does not subscribe gets it.")
    ] = 0.1
    ttl: Annotated[
        Positive | None,
        Meta(description="Links that an event travels; none: twice the estimated diameter."),
    ] = None
    memory: Annotated[Duration, Meta(description="How long a peer knows what it handled.")] = "60s"
    repair: Annotated[
        Duration | None,
        Meta(description="How often a peer seeks a link for one it lost; none: links stay."),
    ] = "1s"
    steps: Annotated[Positive, Meta(description="Peers that a search for a link visits.")] = 8

    def __post_init__(self) -> None:
        """Check the topology in advance. Raises: UseError."""
        self.get_topology()

    def get_topology(self) -> Topology:
        """The model of the topology."""
        return parse(self.topology, TOPOLOGIES, "topology")


def estimated_diameter(degrees: Int64s) -> int:
    """Links between far peers of a random graph with these degrees.

    1 + ln(N / z₁) / ln(z₂ / z₁), rounded up, with the mean numbers z₁ and z₂ of peers at one and
    two links (Newman, Strogatz and Watts 2001, equation 53). Where z₂ does not exceed z₁ there
    is no giant component: N − 1, the longest path that there can be.
    """
    peers = degrees.size
    first = degrees.mean() if peers else 0.0
    second = (degrees.astype(np.float64) ** 2).mean() - first if peers else 0.0
    longest = max(1, peers - 1)
    if second <= first or not first:
        return longest
    estimate = 1 + math.log(max(peers / first, 1.0)) / math.log(second / first)
    return max(1, min(math.ceil(estimate), longest))
