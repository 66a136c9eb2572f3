"""Automated clients: each peer publishes, subscribes and unsubscribes at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive, Share, Topics, us
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.hierarchy import HierarchyWorkload
from vizpub.simulators.world.interest import Changes, InterestChange
from vizpub.simulators.world.publications import From, PlannedPublication, arrivals, publishing_span
from vizpub.simulators.world.subscriptions import (
    WORKLOADS,
    Subscriptions,
    UniformWorkload,
    Workload,
    refuse_too_many,
)


@dataclass(frozen=True)
class ClientWorkload:
    """Automated clients: each publishes, subscribes and unsubscribes at random times."""

    topics: Topics = 30
    every: Annotated[Duration, Meta(description="Mean time between two actions of a peer.")] = "10s"
    publish: Annotated[
        Share, Meta(description="Share of actions that publish; others change a subscription.")
    ] = 0.5
    messages: Annotated[
        Count | None, Meta(description="Most publications of a peer; none: no limit.")
    ] = None
    from_: Annotated[
        From, Meta(description="Topics: those of the peer at that time, or of anyone.")
    ] = "anyone"
    subscriptions_: Annotated[Count, Meta(description="Topics of each peer at the start.")] = 0
    size: Annotated[Positive, Meta(description="Bytes of a publication's content.")] = 512
    first: Annotated[Count, Meta(description="The first interval to publish in.")] = 0
    example: ClassVar[str] = "client:topics=30,every=10s,messages=20"

    def __post_init__(self) -> None:
        refuse_too_many("client", self.subscriptions_, self.topics)

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Distinct topics, all equally likely."""
        return UniformWorkload(self.topics, self.subscriptions_).subscriptions(peers, random)


@dataclass(frozen=True)
class ClientPublications:
    """What clients publish."""

    client: ClientWorkload

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """A Poisson process of each peer, until it has planned as many as it may."""
        client = self.client
        span = publishing_span(client.first, None, setting)
        rate = client.publish * subscriptions.peers / us(client.every)
        planned = [0] * subscriptions.peers
        for time_us in arrivals(rate, span, random) if rate else ():
            peer = random.randrange(subscriptions.peers)
            if client.messages is None or planned[peer] < client.messages:
                planned[peer] += 1
                yield PlannedPublication(time_us, None, peer, client.size, client.from_)


@dataclass(frozen=True)
class ClientInterest:
    """The subscriptions that clients begin and end."""

    client: ClientWorkload

    def changes(self, subscriptions: Subscriptions, setting: Setting, random: Random) -> Changes:
        """A Poisson process of each peer: it subscribes to a random topic, or ends a random
        subscription, equally likely; neither where it has all topics or none.
        """
        rate = (1 - self.client.publish) * subscriptions.peers / us(self.client.every)
        for time_us in arrivals(rate, (0, setting.duration_us), random) if rate else ():
            peer, subscribes = random.randrange(subscriptions.peers), random.random() < 0.5
            held = subscriptions.of(peer)
            topics = [t for t in range(self.client.topics) if t not in held] if subscribes else held
            if topics:
                yield InterestChange(time_us, peer, random.choice(topics), subscribes)


ALL_WORKLOADS: Mapping[str, type[Workload]] = {
    **WORKLOADS,
    "hierarchy": HierarchyWorkload,
    "client": ClientWorkload,
}
