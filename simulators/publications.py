"""Who publishes what and when.

Plans are lazy: one publication is drawn when the one before has been asked for. They look at
the subscriptions then, and skip topics that have no subscribers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, NamedTuple, Protocol

from msgspec import Meta

from simulators.churn import Setting
from simulators.parameters import Count, Positive, PositiveReal
from simulators.subscriptions import Subscriptions

Size = Annotated[Positive, Meta(description="Bytes of a publication's content.")]
First = Annotated[Count, Meta(description="The first interval to publish in.")]
Last = Annotated[Count | None, Meta(description="The last one; none: that of the run.")]


class Planned(NamedTuple):
    """A publication that is to be made."""

    time_us: int
    topic: int
    publisher: int | None
    """None: any subscriber who is up."""
    size: int


class Publications(Protocol):
    """A model of what is published."""

    def planned(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[Planned]:
        """The publications of one run, by time, all before its end."""


@dataclass(frozen=True)
class NoPublications:
    """Nobody publishes."""

    example: ClassVar[str] = "none"

    def planned(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[Planned]:
        """Nothing."""
        return iter(())


@dataclass(frozen=True)
class Poisson:
    """On every topic at random times, as often on average."""

    rate: Annotated[PositiveReal, Meta(description="Publications per topic and interval.")] = 0.1
    size: Size = 512
    first: First = 0
    last: Last = None
    example: ClassVar[str] = "poisson:0.1,first=20"

    def planned(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[Planned]:
        """One Poisson process of all topics, each publication on any of them."""
        rate = self.rate * subscriptions.topics / setting.interval_us
        for time_us in arrivals(rate, publishing_span(self.first, self.last, setting), random):
            topic = random.randrange(subscriptions.topics)
            if subscriptions.subscribers(topic):
                yield Planned(time_us, topic, None, self.size)


def publishing_span(first: int, last: int | None, setting: Setting) -> tuple[int, int]:
    """[start, end) in µs of the intervals first … last, as far as the run goes."""
    end = setting.duration_us if last is None else (last + 1) * setting.interval_us
    return first * setting.interval_us, min(end, setting.duration_us)


def arrivals(rate: float, span: tuple[int, int], random: Random) -> Iterator[int]:
    """Times of a Poisson process of `rate` events per µs in [start, end)."""
    time, end = float(span[0]), span[1]
    while (time := time + random.expovariate(rate)) < end:
        yield int(time)


PUBLICATIONS: Mapping[str, type[Publications]] = {"none": NoPublications, "poisson": Poisson}
