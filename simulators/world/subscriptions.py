"""Models of subscriptions."""

from __future__ import annotations

import csv
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Literal, Protocol

import numpy as np
from msgspec import Meta

from vizpub.model.errors import UseError
from vizpub.model.wording import amount
from vizpub.reports.fields import Key
from vizpub.simulators.engine.files import is_whole_number, lines, not_understood
from vizpub.simulators.engine.parameters import Count, Positive, PositiveReal, Share, Topics
from vizpub.simulators.world.social import connected_users, neighbours, random_users, read_edges

_Sample = Annotated[
    Literal["random", "connected"],
    Meta(description="Any users, or users that a random walk connects."),
]
_PerPeer = Annotated[Positive, Meta(description="Number of topics of each peer.")]


class Subscriptions:
    """The subscriptions of each peer while it is up. Peers and topics are dense indexes."""

    def __init__(
        self,
        peers: int,
        topics: int,
        pairs: Iterable[tuple[int, int]] = (),
        names: Sequence[str] | None = None,
    ) -> None:
        """From distinct pairs (peer, topic); `names` of the topics, None = their index."""
        self.peers = peers
        self.topics = topics
        self.names = names
        self.supertopics: Mapping[int, int] = {}
        """The topic above each topic of a hierarchy; empty = topics are flat."""
        self.choices = self
        """What peers chose and can end: with a hierarchy, they subscribe to what is below it, too
        (vizpub.simulators.world.hierarchy)."""
        self._of: list[list[int]] = [[] for _ in range(peers)]
        self._subscribers: list[set[int]] = [set() for _ in range(topics)]
        for peer, topic in pairs:
            self.add(peer, topic)

    def of(self, peer: int) -> list[int]:
        """The topics of a peer, in ascending order."""
        return list(self._of[peer])

    def has(self, peer: int, topic: int) -> bool:
        """Return True if the peer subscribes to the topic."""
        return peer in self._subscribers[topic]

    def subscribers(self, topic: int) -> Set[int]:
        """The peers that subscribe to the topic, up or not."""
        return self._subscribers[topic]

    def add(self, peer: int, topic: int) -> list[int]:
        """Add a subscription, if it does not exist; return the topics that are new to the peer."""
        if peer in self._subscribers[topic]:
            return []
        self._subscribers[topic].add(peer)
        insort(self._of[peer], topic)
        return [topic]

    def remove(self, peer: int, topic: int) -> list[int]:
        """End a subscription, if it exists; return the topics that the peer wants no more."""
        if peer not in self._subscribers[topic]:
            return []
        self._subscribers[topic].remove(peer)
        del self._of[peer][bisect_left(self._of[peer], topic)]
        return [topic]


class Workload(Protocol):
    """A model of subscriptions."""

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """The subscriptions of the peers 0 … peers − 1 of one run."""


@dataclass(frozen=True)
class Friends:
    """Users of a social network, which are topics as well: each subscribes to its friends."""

    file: Annotated[str, Meta(description="Friendships, two users per line, plain or gzip.")]
    sample: _Sample = "random"
    example: ClassVar[str] = "friends:facebook_combined_relabelled.txt.gz,sample=connected"

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Peer i and topic i are the i-th user of the sample. A user without friends in the
        sample has no subscriptions.

        Raises: InputError if the file cannot be read, UseError if it has too few users.
        """
        edges = read_edges(self.file)
        index = _sampled(edges, self.sample, peers, random)
        pairs = ((index[u], index[v]) for u, v in edges if u in index and v in index)
        both_ways = (pair for one, other in pairs for pair in ((one, other), (other, one)))
        return Subscriptions(peers, peers, both_ways)


@dataclass(frozen=True)
class Follows:
    """Users that follow others, which are topics as well: each subscribes to those it follows."""

    file: Annotated[str, Meta(description="Who follows whom, two users per line, plain or gzip.")]
    sample: _Sample = "random"
    follower: Annotated[
        Literal["first", "second"], Meta(description="Which of the two follows the other.")
    ] = "second"
    example: ClassVar[str] = "follows:twitter_follow_hersheycareers.edges.gz,sample=connected"

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Peer i and topic i are the i-th user of the sample.

        Lists of Twitter's users name the follower second (Kwak et al., WWW 2010: `user
        follower`), as do those of Anwar, Saveski and Roy (WSDM 2021), whose edges have the
        direction of information; the collections of SNAP name the follower first.

        Raises: InputError if the file cannot be read, UseError if it has too few users.
        """
        edges = read_edges(self.file)
        index = _sampled(edges, self.sample, peers, random)
        pairs = ((index[u], index[v]) for u, v in edges if u in index and v in index)
        if self.follower == "second":
            pairs = ((follower, user) for user, follower in pairs)
        return Subscriptions(peers, peers, pairs)


def _sampled(
    edges: Sequence[tuple[int, int]], sample: str, peers: int, random: Random
) -> dict[int, int]:
    """The peers of the users of a sample."""
    choose = connected_users if sample == "connected" else random_users
    users = choose(neighbours(edges), peers, random)
    return {user: peer for peer, user in enumerate(users)}


@dataclass(frozen=True)
class ZipfWorkload:
    """The same number of topics per peer; topic r = 0, 1, … has the weight (r + 1)^-exponent."""

    topics: Topics = 200
    subscriptions_: _PerPeer = 20
    exponent: Annotated[PositiveReal, Meta(description="How uneven popularity is.")] = 0.5
    communities: Annotated[
        Count, Meta(description="Groups of peers of like interests; 0: interests are independent.")
    ] = 0
    alike: Annotated[
        Share, Meta(description="How much of its interests a peer shares with its community.")
    ] = 0.8
    example: ClassVar[str] = "zipf:topics=200,subscriptions=20,exponent=0.5"

    def __post_init__(self) -> None:
        refuse_too_many("zipf", self.subscriptions_, self.topics)

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Each peer draws distinct topics by their weights, one after the other."""
        numbers = np.random.default_rng(random.getrandbits(64))
        return Subscriptions(peers, self.topics, self._pairs(peers, numbers))

    def _pairs(self, peers: int, numbers: np.random.Generator) -> Iterator[tuple[int, int]]:
        log_weights = -self.exponent * np.log(np.arange(1, self.topics + 1))
        noises = [numbers.gumbel(size=self.topics) for _ in range(self.communities)]
        for peer in range(peers):
            # The largest log-weights with Gumbel noise are such draws, all at once. Those of a
            # community share noise, so topics are as popular as without communities.
            noise = numbers.gumbel(size=self.topics)
            if noises:
                is_shared = numbers.random(self.topics) < self.alike
                noise = np.where(is_shared, noises[peer % self.communities], noise)
            keys = log_weights + noise
            largest = np.argpartition(-keys, self.subscriptions_ - 1)[: self.subscriptions_]
            yield from ((peer, topic) for topic in largest.tolist())


@dataclass(frozen=True)
class UniformWorkload:
    """Each peer subscribes to the same number of topics, all equally likely."""

    topics: Topics = 200
    subscriptions_: _PerPeer = 20
    example: ClassVar[str] = "uniform:topics=100,subscriptions=10"

    def __post_init__(self) -> None:
        refuse_too_many("uniform", self.subscriptions_, self.topics)

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Each peer draws distinct topics."""
        topics = range(self.topics)
        pairs = (
            (peer, topic)
            for peer in range(peers)
            for topic in random.sample(topics, self.subscriptions_)
        )
        return Subscriptions(peers, self.topics, pairs)


@dataclass(frozen=True)
class BernoulliWorkload:
    """Each peer subscribes to each topic with the same probability, independently."""

    share: Annotated[Share, Meta(description="The probability.")] = 0.1
    topics: Topics = 1
    example: ClassVar[str] = "bernoulli:0.1,topics=1"

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """A draw for each peer and topic."""
        numbers = np.random.default_rng(random.getrandbits(64))
        drawn = np.argwhere(numbers.random((peers, self.topics)) < self.share)
        return Subscriptions(peers, self.topics, ((peer, topic) for peer, topic in drawn.tolist()))


@dataclass(frozen=True)
class ScribeGroups:
    """Groups of the sizes in Scribe's evaluation: group r = 1, 2, … has N·r^-exponent members."""

    groups: Topics = 1500
    exponent: Annotated[PositiveReal, Meta(description="How fast sizes fall.")] = 1.25
    example: ClassVar[str] = "scribe:groups=1500"

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """floor(N r^-exponent + 0.5) distinct members, drawn at random (Castro et al., JSAC
        20(8), 2002, section V); the smallest groups of few peers have none.
        """
        pairs = (
            (peer, topic)
            for topic, size in enumerate(self.sizes(peers))
            for peer in random.sample(range(peers), size)
        )
        return Subscriptions(peers, self.groups, pairs)

    def sizes(self, peers: int) -> list[int]:
        """Members of each group."""
        return [int(peers * rank**-self.exponent + 0.5) for rank in range(1, self.groups + 1)]


@dataclass(frozen=True)
class SubscriptionFile:
    """Subscriptions from a CSV file with lines peer,topic."""

    file: Annotated[str, Meta(description="Lines peer,topic, plain or gzip: 0,news.")]
    example: ClassVar[str] = "file:subscriptions.csv"

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Peers are numbers from 0; topics are any names, numbered in order of appearance.

        Raises: InputError if the file cannot be read, naming the line.
        """
        index: dict[str, int] = {}
        pairs = [
            (peer, index.setdefault(topic, len(index))) for peer, topic in self._read_rows(peers)
        ]
        return Subscriptions(peers, len(index), pairs, list(index))

    def _read_rows(self, peers: int) -> Iterator[tuple[int, str]]:
        for line, text in lines(self.file):
            try:
                row = [cell.strip() for cell in next(csv.reader([text]))]
            except csv.Error as error:
                raise not_understood(self.file, line, str(error)) from error
            if row == ["peer", "topic"]:
                continue
            if len(row) != 2 or not is_whole_number(row[0]) or not row[1]:
                raise not_understood(
                    self.file, line, f"'{text[:40]}' is not peer,topic such as 0,news"
                )
            if int(row[0]) >= peers:
                raise not_understood(self.file, line, f"there are only the peers 0 to {peers - 1}")
            if wrong := list(Key().problems(row[1], "topic")):
                raise not_understood(self.file, line, wrong[0])
            yield int(row[0]), row[1]


def refuse_too_many(name: str, subscriptions: int, topics: int) -> None:
    """Raise a UseError if a peer of the workload `name` shall have more topics than there are."""
    if subscriptions > topics:
        raise UseError(
            f"workload '{name}': a peer cannot subscribe to {subscriptions} of "
            f"{amount(topics, 'topic')}"
        )


WORKLOADS: Mapping[str, type[Workload]] = {
    "friends": Friends,
    "follows": Follows,
    "zipf": ZipfWorkload,
    "uniform": UniformWorkload,
    "bernoulli": BernoulliWorkload,
    "scribe": ScribeGroups,
    "file": SubscriptionFile,
}
