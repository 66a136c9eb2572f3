"""How long messages take.

A model draws once per run what it needs and gives a function of sender and receiver, which
is called for every message: plain Python, a tenth of a microsecond.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Literal, Protocol

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from model.errors import UseError
from simulators.engine.parameters import Duration, us
from simulators.world.roundtrips import incomplete, read_matrix, symmetric

Delay = Callable[[int, int], int]
"""(sender, receiver) → µs that a message between them takes, one way."""


class Latency(Protocol):
    """A model of the network's delays."""

    def delays(self, peers: int, random: Random) -> Delay:
        """The delays among the peers 0 … peers − 1 of one run."""


@dataclass(frozen=True)
class Constant:
    """Every message takes the same time."""

    delay: Annotated[Duration, Meta(description="One way.")] = "50ms"
    example: ClassVar[str] = "constant:50ms"

    def delays(self, peers: int, random: Random) -> Delay:
        """One delay for all."""
        microseconds = us(self.delay)
        return lambda sender, receiver: microseconds


@dataclass(frozen=True)
class Uniform:
    """Each message takes a uniform random time; later ones may overtake earlier ones."""

    low: Annotated[Duration, Meta(description="Shortest, one way.")]
    high: Annotated[Duration, Meta(description="Longest, one way.")]
    example: ClassVar[str] = "uniform:10ms,high=100ms"

    def __post_init__(self) -> None:
        if us(self.low) > us(self.high):
            raise UseError(f"latency 'uniform': low={self.low} is above high={self.high}")

    def delays(self, peers: int, random: Random) -> Delay:
        """A delay drawn anew for every message."""
        low, choices, draw = us(self.low), us(self.high) - us(self.low) + 1, random.random
        return lambda sender, receiver: low + int(draw() * choices)


@dataclass(frozen=True)
class Matrix:
    """As measured between sites: each peer is at a site, all at different ones while they last."""

    file: Annotated[str, Meta(description="A matrix of times or a King file, plain or gzip.")]
    unit: Annotated[Literal["us", "ms", "s"], Meta(description="Unit of the times in the file.")]
    times: Annotated[
        Literal["round-trip", "one-way"],
        Meta(description="Kind of times; one way is half a round trip."),
    ] = "round-trip"
    asymmetric: Annotated[
        Literal["refuse", "mean"], Meta(description="If the times there and back differ.")
    ] = "refuse"
    missing: Annotated[
        Duration | None,
        Meta(description="One-way time where the file has none; none: refuse the file."),
    ] = None
    inside: Annotated[
        Duration, Meta(description="One-way time between peers at one site, and for times of 0.")
    ] = "500us"
    example: ClassVar[str] = "matrix:planetlab490_rtt_ms_slice1.txt.gz,unit=ms"

    def delays(self, peers: int, random: Random) -> Delay:
        """The delay between the sites of the two, always the same. Peers are spread over the
        sites as evenly as can be, at random.

        Raises: InputError where the file cannot be read, or has times that are refused.
        """
        delays = self._one_way_us()
        sites = random.sample(range(len(delays)), len(delays))
        site = [sites[peer % len(sites)] for peer in range(peers)]
        rows = [array("q", row) for row in delays.tolist()]
        row = [rows[one] for one in site]
        return lambda sender, receiver: row[sender][site[receiver]]

    def _one_way_us(self) -> NDArray[np.int64]:
        """[site, site] in µs."""
        times = symmetric(read_matrix(self.file), self.file, self.asymmetric == "mean")
        factor = us(f"1{self.unit}") / (2 if self.times == "round-trip" else 1)
        delays = np.rint(times * factor)
        delays[(times == 0) | np.eye(len(times), dtype=bool)] = us(self.inside)
        if np.isnan(delays).any():
            if self.missing is None:
                raise incomplete(times, self.file)
            delays[np.isnan(delays)] = us(self.missing)
        return delays.astype(np.int64)


LATENCIES: Mapping[str, type[Latency]] = {
    "constant": Constant,
    "uniform": Uniform,
    "matrix": Matrix,
}
