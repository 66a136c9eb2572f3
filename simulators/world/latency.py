"""Latency models.

A model is drawn once per run and returns a function of sender and receiver. That is called for
every message, and takes 0.1 µs in plain Python.
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

from vizpub.model.errors import UseError
from vizpub.simulators.engine.parameters import Duration, Share, us
from vizpub.simulators.world.roundtrips import incomplete, read_matrix, symmetric
from vizpub.simulators.world.routers import RouterNetwork, draw_transit_stub

Delay = Callable[[int, int], int]
"""(sender, receiver) → one-way delay of a message in µs."""


class Latency(Protocol):
    """A model of the network's delays."""

    is_fixed: ClassVar[bool]
    """Whether all messages from one peer to another take the same time."""

    def delays(self, peers: int, random: Random) -> Delay:
        """The delays among the peers 0 … peers − 1 of one run."""


@dataclass(frozen=True)
class ConstantLatency:
    """Every message takes the same time."""

    delay: Annotated[Duration, Meta(description="One way.")] = "50ms"
    example: ClassVar[str] = "constant:50ms"
    is_fixed: ClassVar[bool] = True

    def delays(self, peers: int, random: Random) -> Delay:
        """One delay for all."""
        microseconds = us(self.delay)
        return lambda sender, receiver: microseconds


@dataclass(frozen=True)
class NoLatency:
    """Messages arrive at once, after everything else that happens at that time."""

    example: ClassVar[str] = "none"
    is_fixed: ClassVar[bool] = True

    def delays(self, peers: int, random: Random) -> Delay:
        """No delay."""
        return lambda sender, receiver: 0


@dataclass(frozen=True)
class UniformLatency:
    """Each message takes a uniform random time; later ones may overtake earlier ones."""

    low: Annotated[Duration, Meta(description="Shortest, one way.")]
    high: Annotated[Duration, Meta(description="Longest, one way.")]
    example: ClassVar[str] = "uniform:10ms,high=100ms"
    is_fixed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if us(self.low) > us(self.high):
            raise UseError(f"latency 'uniform': low={self.low} is above high={self.high}")

    def delays(self, peers: int, random: Random) -> Delay:
        """A new random delay for every message."""
        low, choices, draw = us(self.low), us(self.high) - us(self.low) + 1, random.random
        return lambda sender, receiver: low + int(draw() * choices)


@dataclass(frozen=True)
class MatrixLatency:
    """Measured delays between sites: each peer is at a site, different ones if possible."""

    file: Annotated[str, Meta(description="A matrix of times or a King file, plain or gzip.")]
    unit: Annotated[Literal["us", "ms", "s"], Meta(description="Unit of the times in the file.")]
    times: Annotated[
        Literal["round-trip", "one-way"],
        Meta(description="Kind of times; one way is half a round trip."),
    ] = "round-trip"
    asymmetric: Annotated[
        Literal["refuse", "mean"],
        Meta(description="What to do if the times there and back differ."),
    ] = "refuse"
    missing: Annotated[
        Duration | None,
        Meta(description="One-way time where the file has none; none: refuse the file."),
    ] = None
    inside: Annotated[
        Duration, Meta(description="One-way time between peers at one site, and for times of 0.")
    ] = "500us"
    example: ClassVar[str] = "matrix:planetlab490_rtt_ms_slice1.txt.gz,unit=ms"
    is_fixed: ClassVar[bool] = True

    def delays(self, peers: int, random: Random) -> Delay:
        """The constant delay between the sites of two peers. Peers are assigned to sites at random,
        as evenly as possible.

        Raises: InputError if the file cannot be read or has invalid times.
        """
        delays = self._one_way_us()
        sites = random.sample(range(len(delays)), len(delays))
        site_of = [sites[peer % len(sites)] for peer in range(peers)]
        # Python's arrays: one item takes several times as long from numpy's, more room in lists.
        rows = [array("q", row) for row in delays.tolist()]
        row_of = [rows[site] for site in site_of]
        return lambda sender, receiver: row_of[sender][site_of[receiver]]

    def _one_way_us(self) -> NDArray[np.int64]:
        """One-way times [site, site] in µs."""
        times = symmetric(read_matrix(self.file), self.file, self.asymmetric == "mean")
        factor = us(f"1{self.unit}") / (2 if self.times == "round-trip" else 1)
        delays = np.rint(times * factor)
        delays[(times == 0) | np.eye(len(times), dtype=bool)] = us(self.inside)
        if np.isnan(delays).any():
            if self.missing is None:
                raise incomplete(times, self.file)
            delays[np.isnan(delays)] = us(self.missing)
        return delays.astype(np.int64)


_Few = Annotated[int, Meta(ge=1, le=100)]
_MOST_ROUTERS = 10_000


@dataclass(frozen=True)
class TransitStubLatency:
    """Messages take the fastest way over a random topology of routers; each peer is at a router of
    a stub domain.
    """

    domains: Annotated[_Few, Meta(description="Transit domains.")] = 4
    transit: Annotated[_Few, Meta(description="Routers in a transit domain.")] = 4
    stubs: Annotated[_Few, Meta(description="Stub domains at each of these.")] = 3
    stub: Annotated[_Few, Meta(description="Routers in a stub domain.")] = 8
    share: Annotated[
        Share, Meta(description="Of the pairs in a domain, those linked beside a random tree.")
    ] = 0.3
    between: Annotated[Duration, Meta(description="A link of two transit routers.")] = "20ms"
    uplink: Annotated[Duration, Meta(description="A stub domain's link to its router.")] = "5ms"
    inside: Annotated[Duration, Meta(description="A link within a stub domain.")] = "2ms"
    access: Annotated[Duration, Meta(description="A peer's link to its router.")] = "1ms"
    example: ClassVar[str] = "transit-stub:4,stub=8"
    is_fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        routers = self.domains * self.transit * (1 + self.stubs * self.stub)
        if routers > _MOST_ROUTERS:
            raise UseError(
                f"latency 'transit-stub': {routers:,} routers; the maximum is {_MOST_ROUTERS:,}"
            )

    def routers(self, peers: int, random: Random) -> RouterNetwork:
        """The topology, and the router of each peer."""
        domains = (self.domains, self.transit, self.stubs, self.stub)
        lengths_us = (us(self.between), us(self.uplink), us(self.inside))
        lengths, stubs = draw_transit_stub(domains, lengths_us, self.share, random)
        router_of = [random.choice(stubs) for _ in range(peers)]
        return RouterNetwork(lengths, router_of, us(self.access))

    def delays(self, peers: int, random: Random) -> Delay:
        """The constant delay of the fastest way between two peers."""
        return self.routers(peers, random).delay


LATENCIES: Mapping[str, type[Latency]] = {
    "constant": ConstantLatency,
    "none": NoLatency,
    "uniform": UniformLatency,
    "matrix": MatrixLatency,
    "transit-stub": TransitStubLatency,
}
