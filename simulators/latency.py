"""How long a message is on its way.

A model draws once per run what it needs and gives a function of sender and receiver, which
is called for every message: plain Python, a tenth of a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Protocol

from msgspec import Meta

from model.errors import UseError
from simulators.parameters import Duration, us

Delay = Callable[[int, int], int]
"""(sender, receiver) → µs that a message between them takes, one way."""


class Latency(Protocol):
    """A model of the network's delays."""

    def delays(self, peers: int, random: Random) -> Delay:
        """The delays among the peers 0 … peers − 1 of one run."""


@dataclass(frozen=True)
class Constant:
    """Every message takes as long."""

    delay: Annotated[Duration, Meta(description="One way.")] = "50ms"
    example: ClassVar[str] = "constant:50ms"

    def delays(self, peers: int, random: Random) -> Delay:
        """One delay for all."""
        microseconds = us(self.delay)
        return lambda sender, receiver: microseconds


@dataclass(frozen=True)
class Uniform:
    """Each message takes a time of its own, evenly drawn; later ones may overtake earlier ones."""

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


LATENCIES: Mapping[str, type[Latency]] = {"constant": Constant, "uniform": Uniform}
