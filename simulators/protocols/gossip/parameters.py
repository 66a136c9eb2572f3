"""Parameters of gossip on a topology, and what follows from its degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from vizpub.model.arrays import Int64s
from vizpub.simulators.engine.parameters import Duration, Positive, Share
from vizpub.simulators.protocols.broadcast.topologies import TopologyParameters

_ROUNDS = 10_000
_CLOSE = 1e-12


@dataclass(frozen=True)
class GossipParameters(TopologyParameters):
    """Parameters of the topology, of the gossip, and of the repair."""

    gamma: Annotated[
        Share,
        Meta(description="Probability that a neighbour that does not subscribe gets an event."),
    ] = 0.1
    ttl: Annotated[
        Positive | None,
        Meta(description="Links that an event travels; none: twice the estimated diameter."),
    ] = None
    memory: Annotated[
        Duration, Meta(description="How long a peer remembers the events that it handled.")
    ] = "60s"
    repair: Annotated[
        Duration | None,
        Meta(description="How often a peer seeks a link for one it lost; none: links stay."),
    ] = "1s"
    steps: Annotated[Positive, Meta(description="Peers that a search for a link visits.")] = 8


def estimated_diameter(degrees: Int64s) -> int:
    """Links between the farthest peers of the giant component of a random graph with these degrees.

    ln N · (1 / ln ν + 2 / |ln μ|), rounded up (Fernholz and Ramachandran 2007): ν is the mean
    number of further links of a peer at the end of a link, and μ the same where such a peer leads
    out of the giant component; its paths end in long tails. Where ν is at most 1 there is no giant
    component: N - 1, the longest path that there can be. Never more than that.
    """
    longest = max(1, degrees.size - 1)
    counts = np.bincount(degrees).astype(np.float64) if degrees.size else np.zeros(1)
    further = np.arange(counts.size) * counts
    if counts.size < 3 or not further.any():
        return longest
    excess = further[1:] / further.sum()
    rise = np.arange(1, excess.size) * excess[1:]
    if (spread := float(rise.sum())) <= 1:
        return longest
    ends = 0.0
    for _ in range(_ROUNDS):
        ends, last = float(np.polynomial.polynomial.polyval(ends, excess)), ends
        if ends - last < _CLOSE:
            break
    tails = float(np.polynomial.polynomial.polyval(ends, rise))
    tail = 2 / abs(math.log(tails)) if 0 < tails < 1 else 0.0
    return max(1, min(math.ceil(math.log(degrees.size) * (1 / math.log(spread) + tail)), longest))
