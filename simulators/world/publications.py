"""Models of publications: who publishes what and when.

Plans are lazy: a publication is drawn after the previous one has been taken. It depends on the
subscriptions at that time; topics without subscribers are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from random import Random
from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Meta

from vizpub.model.errors import UnknownName, UseError
from vizpub.simulators.engine.files import is_whole_number, lines, not_understood
from vizpub.simulators.engine.parameters import MOST_OF_PEER, Count, Positive, PositiveReal, us
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.subscriptions import Subscriptions

NO_SUBSCRIBER = "no peer subscribes to a topic"
FILE_OR_TIME = "needs either a file or at=INTERVAL"

P = TypeVar("P", int, int | None)

_Size = Annotated[Positive, Meta(description="Bytes of a publication's content.")]
_First = Annotated[Count, Meta(description="The first interval to publish in.")]
_Last = Annotated[
    Count | None, Meta(description="The last interval to publish in; none: the run's last.")
]
From = Literal["subscriber", "anyone"]
_From = Annotated[
    From, Meta(description="Who publishes: a subscriber of the topic, or anyone that is up.")
]


class PlannedPublication(NamedTuple):
    """A planned publication."""

    time_us: int
    topic: int | None
    """None: any topic that its publisher may publish on."""
    publisher: int | None
    """None: any peer that may publish on its topic."""
    size: int
    from_: From = "subscriber"
    """Who may publish on a topic, where the publisher or the topic is open."""
    also: tuple[int, ...] = ()
    """More topics: the same publisher publishes a message on each."""


class PublicationModel(Protocol):
    """A model of publications."""

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """The publications of one run in order of time, all before its end."""


@dataclass(frozen=True)
class NoPublications:
    """No publications."""

    example: ClassVar[str] = "none"

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """Nothing."""
        return iter(())


@dataclass(frozen=True)
class PoissonPublications:
    """Publish on every topic at random times, at the same average rate."""

    rate: Annotated[PositiveReal, Meta(description="Publications per topic and interval.")] = 0.1
    size: _Size = 512
    first: _First = 0
    last: _Last = None
    from_: _From = "subscriber"
    example: ClassVar[str] = "poisson:0.1,first=20"

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """One Poisson process for all topics, each publication on a random one: the same as one
        for each topic, without those of topics that nobody subscribes to.
        """
        rate = self.rate * subscriptions.topics / setting.interval_us
        span = publishing_span(self.first, self.last, setting)
        for time_us in arrivals(rate, span, random) if rate else ():
            topic = random.randrange(subscriptions.topics)
            if subscriptions.subscribers(topic):
                yield PlannedPublication(time_us, topic, None, self.size, self.from_)


@dataclass(frozen=True)
class PeriodicPublications:
    """Publish once per topic in every N intervals, on each topic at its own time."""

    intervals: Annotated[
        Positive, Meta(description="Intervals between two publications on a topic.")
    ] = 1
    size: _Size = 512
    first: _First = 0
    last: _Last = None
    from_: _From = "subscriber"
    example: ClassVar[str] = "every:10,first=20"

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """Rounds over all topics, always in the same order and at the same offsets."""
        period = self.intervals * setting.interval_us
        start, end = publishing_span(self.first, self.last, setting)
        offsets = sorted((random.randrange(period), topic) for topic in range(subscriptions.topics))
        for round_start in range(start, end, period):
            for offset, topic in offsets:
                if round_start + offset < end and subscriptions.subscribers(topic):
                    yield PlannedPublication(
                        round_start + offset, topic, None, self.size, self.from_
                    )


@dataclass(frozen=True)
class PublicationsPerPeer:
    """Let every peer publish the same number, at random times and on random topics."""

    count: Annotated[int, Meta(ge=1, le=MOST_OF_PEER, description="Publications of each peer.")] = 1
    size: _Size = 512
    first: _First = 0
    last: _Last = None
    from_: Annotated[
        From, Meta(description="Topics: those of the peer at that time, or of anyone.")
    ] = "subscriber"
    example: ClassVar[str] = "each:20,first=20"

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """Independent uniform times; those of a peer that is down then are not published."""
        start, end = publishing_span(self.first, self.last, setting)
        peers = (peer for peer in range(subscriptions.peers) for _ in range(self.count))
        for time_us, peer in sorted((random.randrange(start, end), peer) for peer in peers):
            yield PlannedPublication(time_us, None, peer, self.size, self.from_)


@dataclass(frozen=True)
class ZipfPublications:
    """Publish at random times, more often on popular topics: the r-th with weight r^-exponent."""

    rate: Annotated[PositiveReal, Meta(description="Publications per interval, in total.")] = 1.0
    exponent: Annotated[PositiveReal, Meta(description="How uneven popularity is.")] = 1.0
    size: _Size = 512
    first: _First = 0
    last: _Last = None
    from_: _From = "subscriber"
    example: ClassVar[str] = "zipf:2,exponent=0.8,first=20"

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """One Poisson process; the r-th topic is the one with the r-th most subscribers at the
        start of the run (at equal numbers, the one of lower index).
        """
        ranked = [topic for topic in _by_size(subscriptions) if subscriptions.subscribers(topic)]
        weights = list(accumulate(rank**-self.exponent for rank in range(1, len(ranked) + 1)))
        span = publishing_span(self.first, self.last, setting)
        for time_us in arrivals(self.rate / setting.interval_us, span, random) if ranked else ():
            (topic,) = random.choices(ranked, cum_weights=weights)
            if subscriptions.subscribers(topic):
                yield PlannedPublication(time_us, topic, None, self.size, self.from_)


@dataclass(frozen=True)
class ScriptedPublications:
    """Scripted publications, given here or in a file."""

    file: Annotated[
        str | None, Meta(description="Lines at,topic[,publisher]: 50,largest or 1.5s,7,3.")
    ] = None
    at: Annotated[
        str | None, Meta(description="Interval at whose start to publish, or a time such as 1.5s.")
    ] = None
    topic: Annotated[
        str, Meta(description="Its name or index, largest, smallest or random; or several: 3+7.")
    ] = "largest"
    publisher: Annotated[Count | None, Meta(description="A peer; none: see from.")] = None
    count: Annotated[Positive, Meta(description="Number of publications, one per interval.")] = 1
    size: _Size = 512
    from_: _From = "subscriber"
    example: ClassVar[str] = "script:at=50,topic=largest,count=10"

    def __post_init__(self) -> None:
        if (self.file is None) == (self.at is None):
            raise UseError(f"publications 'script' {FILE_OR_TIME}")

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """The lines in order of time; the largest topic is chosen at that time.

        Raises: InputError if the file cannot be read; UseError for an unknown topic or peer, or a
        time after the run.
        """
        topics = {name: topic for topic, name in enumerate(topic_names(subscriptions))}
        names = dict.fromkeys((*_CHOICES, *topics))
        lines = sorted(self._lines(setting), key=itemgetter(0))
        # A name may contain a plus.
        entries = [
            (time_us, [text] if text in names else text.split("+"), peer)
            for time_us, text, peer in lines
        ]
        if unknown := {topic for _, texts, _ in entries for topic in texts}.difference(names):
            raise UnknownName("topic", min(unknown), [*names])
        for time_us, texts, publisher in entries:
            chosen = dict.fromkeys(_chosen(text, topics, subscriptions, random) for text in texts)
            first, *others = [topic for topic in chosen if subscriptions.subscribers(topic)] or [-1]
            if first >= 0:
                also = tuple(others)
                yield PlannedPublication(time_us, first, publisher, self.size, self.from_, also)

    def _lines(self, setting: Setting) -> Iterator[tuple[int, str, int | None]]:
        if self.file is not None:
            for line, text in lines(self.file):
                at, topic, publisher = _cells(self.file, line, text)
                yield moment(at, setting, _WHAT), topic, check_peer(publisher, setting, _WHAT)
        else:
            first = moment(self.at or "", setting, _WHAT)
            for number in range(self.count):
                time_us = _within(first + number * setting.interval_us, setting, _WHAT)
                yield time_us, self.topic, check_peer(self.publisher, setting, _WHAT)


def _cells(name: str, line: int, text: str) -> tuple[str, str, int | None]:
    at, topic, publisher, *more = [*(cell.strip() for cell in text.split(",")), "", ""]
    if not at or not topic or any(more) or (publisher and not is_whole_number(publisher)):
        raise not_understood(
            name, line, f"'{text[:40]}' is not at,topic,publisher such as 50,largest,7"
        )
    return at, topic, int(publisher) if publisher else None


def moment(at: str, setting: Setting, event: str) -> int:
    """µs of an interval's start, or of a duration since the start of the run. Errors name the
    `event` at that time.

    Raises: UseError if it is after the run.
    """
    return _within(int(at) * setting.interval_us if is_whole_number(at) else us(at), setting, event)


def _within(time_us: int, setting: Setting, event: str) -> int:
    if time_us >= setting.duration_us:
        raise UseError(
            f"{event} at interval {time_us // setting.interval_us}: "
            f"the run has only {setting.intervals}"
        )
    return time_us


def check_peer(peer: P, setting: Setting, event: str) -> P:
    """The peer, which may be null. Raises: UseError if the run has no such peer."""
    if peer is not None and peer >= setting.peers:
        raise UseError(f"{event}: no peer {peer}; there are 0 to {setting.peers - 1}")
    return peer


_WHAT = "publications"


def _chosen(
    topic: str, topics: Mapping[str, int], subscriptions: Subscriptions, random: Random
) -> int:
    """The named topic, or one by its size among those with subscribers."""
    if topic in topics:
        return topics[topic]
    sizes = [topic for topic in _by_size(subscriptions) if subscriptions.subscribers(topic)]
    if not sizes:
        raise UseError(f"publications: {NO_SUBSCRIBER}")
    if topic == "random":
        return random.choice(sizes)
    return sizes[0 if topic == "largest" else -1]


_CHOICES = ("largest", "smallest", "random")


def topic_names(subscriptions: Subscriptions) -> Sequence[str]:
    """The names of all topics, in the order of their indexes."""
    return subscriptions.names or [str(index) for index in range(subscriptions.topics)]


def _by_size(subscriptions: Subscriptions) -> list[int]:
    """Topics in descending order of subscribers, then by index."""
    return sorted(range(subscriptions.topics), key=lambda t: -len(subscriptions.subscribers(t)))


def publishing_span(first: int, last: int | None, setting: Setting) -> tuple[int, int]:
    """[start, end) in µs of the intervals first … last within the run.

    Raises: UseError if the run ends before the first, or the last is before it.
    """
    if last is not None and last < first:
        raise UseError(f"publications: last={last} is before first={first}")
    _within(first * setting.interval_us, setting, _WHAT)
    end = setting.duration_us if last is None else (last + 1) * setting.interval_us
    return first * setting.interval_us, min(end, setting.duration_us)


def arrivals(rate: float, span: tuple[int, int], random: Random) -> Iterator[int]:
    """Times of a Poisson process of `rate` events per µs in [start, end)."""
    time, end = float(span[0]), span[1]
    while (time := time + random.expovariate(rate)) < end:
        yield int(time)


PUBLICATIONS: Mapping[str, type[PublicationModel]] = {
    "none": NoPublications,
    "poisson": PoissonPublications,
    "every": PeriodicPublications,
    "each": PublicationsPerPeer,
    "zipf": ZipfPublications,
    "script": ScriptedPublications,
}
