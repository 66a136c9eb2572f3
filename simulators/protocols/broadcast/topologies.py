"""Static topologies: undirected graphs of all peers, by name in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from random import Random
from typing import Annotated, ClassVar, Protocol

from msgspec import Meta

from model.errors import InputError, UseError
from simulators.engine.parameters import Positive, PositiveReal
from simulators.world.social import read_edges

Edges = Iterable[tuple[int, int]]


class Topology(Protocol):
    """A model of an undirected graph."""

    example: ClassVar[str]

    def edges(self, peers: int, random: Random) -> Edges:
        """Edges among the peers 0 … peers − 1 of one run; an edge may come twice, or both ways."""


@dataclass(frozen=True)
class Poisson:
    """Degrees are drawn from a Poisson distribution, and their ends joined at random."""

    mean: Annotated[PositiveReal, Meta(description="Mean degree.")] = 5.0
    example: ClassVar[str] = "poisson:5"

    def edges(self, peers: int, random: Random) -> Edges:
        """A graph of the configuration model, without its loops and double edges."""
        return _joined([self._degree(random) for _ in range(peers)], random)

    def _degree(self, random: Random) -> int:
        # Knuth's method; in parts, so that no factor underflows.
        degree, left = 0, self.mean
        while left > 0:
            part, left = min(left, 500.0), left - 500.0
            bound, product = exp(-part), random.random()
            while product > bound:
                degree, product = degree + 1, product * random.random()
        return degree


@dataclass(frozen=True)
class ScaleFree:
    """Degrees k are drawn with weights k^-exponent, and their ends joined at random."""

    exponent: Annotated[PositiveReal, Meta(description="How fast degrees get rare.")] = 3.3
    lowest: Annotated[Positive, Meta(description="The lowest degree.")] = 1
    highest: Annotated[
        Positive | None, Meta(description="The highest degree; none: all others.")
    ] = None
    example: ClassVar[str] = "scale-free:3.3,highest=1000"

    def edges(self, peers: int, random: Random) -> Edges:
        """A graph of the configuration model, without its loops and double edges."""
        highest = max(self.lowest, min(self.highest or peers - 1, peers - 1))
        degrees = range(self.lowest, highest + 1)
        weights = list(accumulate(degree**-self.exponent for degree in degrees))
        return _joined(random.choices(degrees, cum_weights=weights, k=peers), random)


@dataclass(frozen=True)
class File:
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
class OfRun:
    """The overlay of a stored run at a time, which the command line passes on as a file."""

    run: Annotated[str, Meta(description="Name of the run.")]
    at: Annotated[str, Meta(description="The time, as in `vizpub topics`.")] = "last"
    layer: Annotated[
        str | None, Meta(description="Its links; none: those that the run's metrics count.")
    ] = None
    example: ClassVar[str] = "run:monday,at=12,layer=active"

    def edges(self, peers: int, random: Random) -> Edges:
        """Nothing. Raises: UseError, as simulations read no runs."""
        raise UseError(
            f"topology 'run:{self.run}' is known to `vizpub simulate broadcast-static` only",
            "elsewhere, give its edges as file:EDGES",
        )


TOPOLOGIES: Mapping[str, type[Topology]] = {
    "poisson": Poisson,
    "scale-free": ScaleFree,
    "file": File,
    "run": OfRun,
}


def neighbours_in(edges: Edges, peers: int) -> list[list[int]]:
    """The neighbours of each peer, ascending and each once; no peer is its own."""
    linked: list[set[int]] = [set() for _ in range(peers)]
    for one, other in edges:
        if one != other:
            linked[one].add(other)
            linked[other].add(one)
    return [sorted(others) for others in linked]


def _joined(degrees: Sequence[int], random: Random) -> Edges:
    """Random pairs of the peers' ends; an odd one is left out."""
    ends = [peer for peer, degree in enumerate(degrees) for _ in range(degree)]
    random.shuffle(ends)
    return zip(ends[::2], ends[1::2], strict=False)
