"""Static topologies: undirected graphs of all peers, by name in one line."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Protocol

import numpy as np
from msgspec import Meta

from vizpub.model.arrays import Int64s
from vizpub.model.errors import InputError, UseError
from vizpub.simulators.engine.parameters import MOST_PEERS, Positive, PositiveReal
from vizpub.simulators.engine.specs import parse
from vizpub.simulators.world.social import read_edges

Edges = Iterable[tuple[int, int]]


class Topology(Protocol):
    """A model of an undirected graph."""

    example: ClassVar[str]

    def edges(self, peers: int, random: Random) -> Edges:
        """Edges among the peers 0 … peers − 1 of one run; an edge may come twice, or both ways."""


class RandomGraph(ABC):
    """A graph of the configuration model: degrees are drawn, and their ends joined at random.

    Loops and double edges count once or not at all (`neighbours_in`), so some peers have fewer
    neighbours than the degree that was drawn for them.
    """

    @abstractmethod
    def degrees(self, peers: int, numbers: np.random.Generator) -> Int64s:
        """The degree of each peer. Raises: UseError for a number of peers that it cannot have."""

    def cut_off(self, peers: int) -> int:
        """The highest degree that can be drawn: a peer has at most all others as neighbours."""
        return peers - 1

    def edges(self, peers: int, random: Random) -> Edges:
        """See Topology.edges."""
        numbers = np.random.default_rng(random.getrandbits(64))
        one, other = join_ends(self.degrees(peers, numbers), numbers).T.tolist()
        return zip(one, other, strict=True)


def join_ends(degrees: Int64s, numbers: np.random.Generator) -> Int64s:
    """Edges between ends of links that are joined at random, `degrees[i]` of them at peer i: an
    array of shape (edges, 2). An odd end is left out.
    """
    ends = np.repeat(np.arange(degrees.size), degrees)
    numbers.shuffle(ends)
    return ends[: ends.size // 2 * 2].reshape(-1, 2)


@dataclass(frozen=True)
class PoissonGraph(RandomGraph):
    """Degrees are drawn from a Poisson distribution, and their ends joined at random."""

    mean: Annotated[PositiveReal, Meta(description="Mean degree.")] = 5.0
    example: ClassVar[str] = "poisson:5"

    def degrees(self, peers: int, numbers: np.random.Generator) -> Int64s:
        """See RandomGraph.degrees."""
        drawn: Int64s = numbers.poisson(self.mean, peers)
        return drawn.clip(max=self.cut_off(peers))


@dataclass(frozen=True)
class ScaleFreeGraph(RandomGraph):
    """Degrees k are drawn with weights k^-exponent, and their ends joined at random."""

    exponent: Annotated[PositiveReal, Meta(description="How fast degrees get rare.")] = 3.3
    lowest: Annotated[Positive, Meta(description="The lowest degree.")] = 1
    highest: Annotated[
        Positive | None, Meta(description="The highest degree; none: all others.")
    ] = None
    example: ClassVar[str] = "scale-free:3.3,highest=1000"

    def cut_off(self, peers: int) -> int:
        """See RandomGraph.cut_off."""
        return max(self.lowest, min(self.highest or peers - 1, peers - 1))

    def degrees(self, peers: int, numbers: np.random.Generator) -> Int64s:
        """See RandomGraph.degrees."""
        there_are = np.arange(self.lowest, self.cut_off(peers) + 1, dtype=np.float64)
        sums = np.cumsum(there_are**-self.exponent)
        drawn: Int64s = np.searchsorted(sums, numbers.random(peers) * sums[-1], "right")
        return drawn + self.lowest


@dataclass(frozen=True)
class AclGraph(RandomGraph):
    """A power law without chance: ⌊e^a / k^b⌋ peers have degree k (Aiello, Chung and Lu 2000)."""

    a: Annotated[PositiveReal, Meta(description="Logarithm of the number of degree 1.")] = 6.0
    b: Annotated[PositiveReal, Meta(description="How fast degrees get rare.")] = 1.0
    example: ClassVar[str] = "acl:a=6,b=1"

    def __post_init__(self) -> None:
        if max(self.a, self.a / self.b) > math.log(MOST_PEERS):
            most = f"{math.log(MOST_PEERS):.1f}"
            raise UseError(
                f"topology 'acl' with a={self.a:g} and b={self.b:g}: a and a/b, the logarithms of "
                f"peers and of the highest degree, are at most {most}"
            )

    @property
    def of_each_degree(self) -> Int64s:
        """Number of peers that have degree 0, 1, …, ⌊e^(a/b)⌋."""
        degrees = np.arange(1, math.floor(math.exp(self.a / self.b)) + 1)
        counts = np.floor(math.exp(self.a) / degrees**self.b).astype(np.int64)
        return np.concatenate([np.zeros(1, np.int64), counts])

    def cut_off(self, peers: int) -> int:
        """See RandomGraph.cut_off."""
        return self.of_each_degree.size - 1

    def degrees(self, peers: int, numbers: np.random.Generator) -> Int64s:
        """See RandomGraph.degrees. a and b fix the number of peers."""
        counts = self.of_each_degree
        if (fixed := int(counts.sum())) != peers:
            raise UseError(
                f"topology 'acl' with a={self.a:g} and b={self.b:g} has {fixed:,} peers, not "
                f"{peers:,}; give --peers {fixed}"
            )
        return np.repeat(np.arange(counts.size), counts)


@dataclass(frozen=True)
class GraphFile:
    """The edges of a file."""

    file: Annotated[str, Meta(description="Two peers per line, plain or gzip.")]
    example: ClassVar[str] = "file:edges.txt"

    def edges(self, peers: int, random: Random) -> Edges:
        """Peers are the numbers in the file.

        Raises: InputError if it cannot be read, or names a peer that there is not.
        """
        edges = read_edges(self.file)
        if edges and (largest := max(map(max, edges))) >= peers:
            raise InputError(
                f"{self.file} names peer {largest}, but there are only 0 to {peers - 1}",
                f"--peers {largest + 1} has them all",
            )
        return edges


@dataclass(frozen=True)
class GraphOfRun:
    """The overlay of a stored run at a time, which the command line passes on as a file."""

    run: Annotated[str, Meta(description="Name of the run.")]
    at: Annotated[str, Meta(description="The time, as in `vizpub topic`.")] = "last"
    layer: Annotated[
        str | None, Meta(description="Its links; none: those that the run's metrics count.")
    ] = None
    example: ClassVar[str] = "run:monday,at=12,layer=active"

    def edges(self, peers: int, random: Random) -> Edges:
        """Nothing. Raises: UseError, as simulations read no runs."""
        raise UseError(
            f"topology 'run:{self.run}' is known to `vizpub lab simulate` only; "
            "elsewhere, give its edges as file:EDGES"
        )


TOPOLOGIES: Mapping[str, type[Topology]] = {
    "poisson": PoissonGraph,
    "scale-free": ScaleFreeGraph,
    "acl": AclGraph,
    "file": GraphFile,
    "run": GraphOfRun,
}


@dataclass(frozen=True)
class TopologyParameters:
    """The choice of a topology."""

    topology: Annotated[
        str,
        Meta(
            description="Who is linked to whom: poisson:MEAN, scale-free:EXPONENT, acl:a=6,b=1, "
            "file:EDGES, or run:NAME,at=TIME,layer=LAYER, the overlay of a stored run."
        ),
    ] = "poisson:5"

    def __post_init__(self) -> None:
        """Check the topology in advance. Raises: UseError."""
        self.get_topology()

    def get_topology(self) -> Topology:
        """The model of the topology."""
        return parse(self.topology, TOPOLOGIES, "topology")


def neighbours_in(edges: Edges, peers: int) -> list[list[int]]:
    """The neighbours of each peer, ascending and each once; no peer is its own."""
    linked: list[set[int]] = [set() for _ in range(peers)]
    for one, other in edges:
        if one != other:
            linked[one].add(other)
            linked[other].add(one)
    return [sorted(others) for others in linked]
