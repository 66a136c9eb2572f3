"""What the experiment simulates: networks, and points of sigma and gamma on each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from vizpub.analytics.prediction.percolation import (
    Degrees,
    critical_sigma,
    empirical_degrees,
    poisson_degrees,
    power_law_degrees,
)
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.protocols.broadcast.topologies import (
    TOPOLOGIES,
    AclGraph,
    PoissonGraph,
    RandomGraph,
    ScaleFreeGraph,
)

HUBS = "acl:a=6,b=1"
HUBS_PEERS = 2_482
FIVE = "poisson:5"
_GAMMAS = {
    "poisson": (0.0, 0.02, 0.05, 0.1, 0.15, 0.18),
    "scale-free": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
}
"""The lines of Figures 1 and 2."""
_OF_CRITICAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Sigma below the threshold, as shares of the critical one."""
SIGMA = 0.1
"""Of Figures 4 and 5."""
_ABOVE = (0.05, 0.12, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Gamma in Figures 4 and 5."""
FIXED_GAMMA = 0.15
"""Of Figures 4 and 5 over sigma."""
_SIGMAS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
EVENTS = 400
"""Of each network."""
_LARGE = {"small": 20_000, "full": 100_000}
"""Peers of the networks below the threshold."""
_SIZES = {"small": (1_000, 2_000), "full": (1_000, 2_000, 5_000, 20_000)}
"""Peers of the networks of Figures 3 and 4."""
_NETWORKS = {"small": 5, "full": 20}
_TOPOLOGIES = {
    "small": (FIVE, "scale-free:3.3", "scale-free:3.3,highest=100"),
    "full": (
        FIVE,
        "poisson:3",
        "poisson:8",
        "scale-free:3.3",
        "scale-free:3.3,highest=100",
        "scale-free:3.6",
        "scale-free:4",
    ),
}
"""Of Figures 1 and 2. Without a cut-off, the mean of a scale-free network is up to rare hubs, which
few events meet: with one, the formula is tested more sharply."""


class GossipPoint(NamedTuple):
    """How events spread."""

    sigma: float
    gamma: float


@dataclass(frozen=True, order=True)
class NetworkCase:
    """A network with its points."""

    topology: str
    peers: int
    seed: int
    points: tuple[GossipPoint, ...]

    @property
    def graph(self) -> RandomGraph:
        """The model of the network."""
        return cast(RandomGraph, parse(self.topology, TOPOLOGIES, "topology"))


@cache
def degrees_of(topology: str, peers: int | None = None) -> Degrees:
    """The degrees of a topology: of infinitely many peers, or with the cut-off of so many. A
    cut-off that the topology names holds for both.
    """
    graph = parse(topology, TOPOLOGIES, "topology")
    if isinstance(graph, AclGraph):
        return empirical_degrees(graph.of_each_degree.astype(np.float64))
    if isinstance(graph, PoissonGraph):
        return poisson_degrees(graph.mean)
    assert isinstance(graph, ScaleFreeGraph)
    highest = graph.highest if peers is None else graph.cut_off(peers)
    if highest is None:
        return power_law_degrees(graph.exponent)
    degrees = np.arange(1, highest + 1, dtype=np.float64)
    return empirical_degrees(np.concatenate([[0.0], degrees**-graph.exponent]))


def points_below(topology: str) -> Iterator[GossipPoint]:
    """The points of Figures 1 and 2: below the threshold of infinitely many peers, or up to 1 where
    the links are too few for one.
    """
    degrees = degrees_of(topology)
    for gamma in _GAMMAS[topology.partition(":")[0]]:
        if (critical := min(critical_sigma(degrees, gamma), 1.0)) > 0:
            yield from (GossipPoint(share * critical, gamma) for share in _OF_CRITICAL)


def points_above() -> Iterator[GossipPoint]:
    """The points of Figures 4 and 5: over gamma, then over sigma."""
    yield from (GossipPoint(SIGMA, gamma) for gamma in _ABOVE)
    yield from (GossipPoint(sigma, FIXED_GAMMA) for sigma in _SIGMAS)


def network_cases(scale: str, networks: int | None = None) -> list[NetworkCase]:
    """All networks of a scale, those that take longest last."""
    points_by_network: dict[tuple[str, int], list[GossipPoint]] = {}

    def add(topology: str, peers: int, points: Iterable[GossipPoint]) -> None:
        points_by_network.setdefault((topology, peers), []).extend(points)

    for topology in _TOPOLOGIES[scale]:
        add(topology, _LARGE[scale], points_below(topology))
    add(FIVE, _LARGE[scale], [GossipPoint(SIGMA, 0.05)])
    for peers in _SIZES[scale]:
        add(FIVE, peers, [*points_below(FIVE), *points_above()])
    add(HUBS, HUBS_PEERS, points_above())
    seeds = range(1, 1 + (_NETWORKS[scale] if networks is None else networks))
    return [
        NetworkCase(topology, peers, seed, tuple(dict.fromkeys(points)))
        for (topology, peers), points in points_by_network.items()
        for seed in seeds
    ]
