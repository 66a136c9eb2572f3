"""Who subscribes to what."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Protocol

import numpy as np
from msgspec import Meta

from model.errors import UseError
from simulators.parameters import Positive, PositiveReal


class Subscriptions:
    """What every peer subscribes to while it is up: peers and topics are dense indexes."""

    def __init__(
        self,
        peers: int,
        topics: int,
        pairs: Iterable[tuple[int, int]] = (),
        names: Sequence[str] | None = None,
    ) -> None:
        """From pairs of (peer, topic), each once; `names` of the topics, None = their index."""
        self.peers = peers
        self.topics = topics
        self.names = names
        self._of: list[list[int]] = [[] for _ in range(peers)]
        self._subscribers: list[set[int]] = [set() for _ in range(topics)]
        for peer, topic in pairs:
            self.add(peer, topic)

    def of(self, peer: int) -> list[int]:
        """The topics of a peer, ascending."""
        return list(self._of[peer])

    def subscribers(self, topic: int) -> Set[int]:
        """The peers that subscribe to the topic, up or not."""
        return self._subscribers[topic]

    def add(self, peer: int, topic: int) -> None:
        """Subscribe; nothing happens where it is so already."""
        if peer not in self._subscribers[topic]:
            self._subscribers[topic].add(peer)
            insort(self._of[peer], topic)

    def remove(self, peer: int, topic: int) -> None:
        """End a subscription; nothing happens where there is none."""
        if peer in self._subscribers[topic]:
            self._subscribers[topic].remove(peer)
            del self._of[peer][bisect_left(self._of[peer], topic)]


class Workload(Protocol):
    """A model of subscriptions."""

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """The subscriptions of the peers 0 … peers − 1 of one run."""


@dataclass(frozen=True)
class Zipf:
    """Each peer subscribes to as many different topics, topic r (from 0) with a probability
    proportional to (r + 1)^-exponent.
    """

    topics: Annotated[Positive, Meta(description="How many topics there are.")] = 200
    subscriptions_: Annotated[Positive, Meta(description="Of each peer.")] = 20
    exponent: Annotated[PositiveReal, Meta(description="How uneven popularity is.")] = 0.5
    example: ClassVar[str] = "zipf:topics=200,subscriptions=20,exponent=0.5"

    def __post_init__(self) -> None:
        _refuse_too_many("zipf", self.subscriptions_, self.topics)

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Draws without replacement, so that no popularity is that of an endless urn."""
        numbers = np.random.default_rng(random.getrandbits(64))
        weights = -self.exponent * np.log(np.arange(1, self.topics + 1))
        return Subscriptions(peers, self.topics, self._pairs(peers, weights, numbers))

    def _pairs(
        self, peers: int, weights: np.ndarray, numbers: np.random.Generator
    ) -> Iterator[tuple[int, int]]:
        for peer in range(peers):
            # The largest of the log-weights with Gumbel noise are a draw without replacement.
            keys = weights + numbers.gumbel(size=self.topics)
            chosen = np.argpartition(-keys, self.subscriptions_ - 1)[: self.subscriptions_]
            yield from ((peer, topic) for topic in chosen.tolist())


def _refuse_too_many(name: str, subscriptions: int, topics: int) -> None:
    if subscriptions > topics:
        raise UseError(
            f"workload '{name}': a peer cannot subscribe to {subscriptions} of {topics} topics"
        )


WORKLOADS: Mapping[str, type[Workload]] = {"zipf": Zipf}
