"""Changes of interest: who subscribes and unsubscribes during a run.

A change is planned when the one before it has been made, and the plan is told whether it was: only
peers that are up change their subscriptions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from random import Random
from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Meta

from vizpub.model.errors import UnknownName
from vizpub.simulators.engine.files import is_whole_number, lines, not_understood
from vizpub.simulators.engine.parameters import Duration, us
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.publications import check_peer, moment, topic_names
from vizpub.simulators.world.subscriptions import Subscriptions

T = TypeVar("T")


class InterestChange(NamedTuple):
    """A peer subscribes to a topic, or ends that subscription; in a hierarchy, a choice."""

    time_us: int
    peer: int
    topic: int
    subscribes: bool


Changes = Generator[InterestChange, bool | None, None]
"""Takes, after each change, whether it was made: not if the peer is down, or already as told."""


class InterestModel(Protocol):
    """A model of changing interest."""

    def changes(self, subscriptions: Subscriptions, setting: Setting, random: Random) -> Changes:
        """The changes of one run in order of time, all before its end. `subscriptions` are those
        of the moment; before its first change, a model may change those of the start.
        """


@dataclass(frozen=True)
class NoInterest:
    """Subscriptions stay as they are."""

    example: ClassVar[str] = "none"

    def changes(self, subscriptions: Subscriptions, setting: Setting, random: Random) -> Changes:
        """Nothing."""
        yield from ()


@dataclass(frozen=True)
class ExponentialInterest:
    """Subscriptions and pauses last for exponential times; then the peer takes another topic."""

    lasts: Annotated[Duration, Meta(description="Mean length of a subscription.")]
    pause: Annotated[
        Duration | None,
        Meta(description="Mean time until another one replaces it; none: at once."),
    ] = None
    topics: Annotated[
        Literal["popular", "any"],
        Meta(description="New topics: by their subscribers at the start, or all equally likely."),
    ] = "popular"
    example: ClassVar[str] = "exponential:5m,pause=1m"

    def changes(self, subscriptions: Subscriptions, setting: Setting, random: Random) -> Changes:
        """Stationary from time 0: each subscription of the workload is there at the start with the
        probability lasts / (lasts + pause). While a peer is down, its times stand still.
        """
        lasts, pause = us(self.lasts), us(self.pause) if self.pause else 0
        topics = _Topics(subscriptions, random, popular=self.topics == "popular")
        held, paused = _begin_share(subscriptions, lasts / (lasts + pause), random)
        time = 0.0
        while held or paused:
            ending = len(held) / lasts
            rate = ending + (len(paused) / pause if pause else 0)
            if (time := time + random.expovariate(rate)) >= setting.duration_us:
                return
            if random.random() * rate >= ending:
                yield from _resume(held, paused, int(time), topics)
            elif pause:
                yield from _pause(held, paused, int(time), random)
            else:
                yield from _swap(held, int(time), topics)


_Pairs = list[tuple[int, int]]
"""Subscriptions as (peer, topic)."""


def _begin_share(
    subscriptions: Subscriptions, share: float, random: Random
) -> tuple[_Pairs, list[int]]:
    """A random share of the subscriptions, and the peers of the others, which end here."""
    held: _Pairs = []
    paused: list[int] = []
    for peer in range(subscriptions.peers):
        for topic in subscriptions.choices.of(peer):
            if random.random() < share:
                held.append((peer, topic))
            else:
                paused.append(peer)
                subscriptions.remove(peer, topic)
    return held, paused


def _pause(held: _Pairs, paused: list[int], time_us: int, random: Random) -> Changes:
    place = random.randrange(len(held))
    if (yield InterestChange(time_us, *held[place], False)):
        paused.append(_take_item(held, place)[0])


def _resume(held: _Pairs, paused: list[int], time_us: int, topics: _Topics) -> Changes:
    place = topics.random.randrange(len(paused))
    topic = topics.new(paused[place])
    if topic is not None and (yield InterestChange(time_us, paused[place], topic, True)):
        held.append((_take_item(paused, place), topic))


def _swap(held: _Pairs, time_us: int, topics: _Topics) -> Changes:
    """Nothing if the peer has all topics."""
    place = topics.random.randrange(len(held))
    peer, topic = held[place]
    new_topic = topics.new(peer)
    if new_topic is not None and (yield InterestChange(time_us, peer, topic, False)):
        yield InterestChange(time_us, peer, new_topic, True)
        held[place] = peer, new_topic


def _take_item(items: list[T], place: int) -> T:
    """Take an item out of a list whose order does not matter."""
    items[place], items[-1] = items[-1], items[place]
    return items.pop()


_TRIES = 50


class _Topics:
    """Draws topics for peers."""

    def __init__(self, subscriptions: Subscriptions, random: Random, *, popular: bool) -> None:
        """`popular`: as likely as they have subscribers now."""
        self.random, self._choices = random, subscriptions.choices
        sizes = [len(self._choices.subscribers(t)) for t in range(subscriptions.topics)]
        self._weights = list(accumulate(sizes if popular else [1] * len(sizes)))

    def new(self, peer: int) -> int | None:
        """A topic that the peer does not subscribe to; null if it has all of them."""
        topics, weights = range(len(self._weights)), self._weights
        held = self._choices.of(peer)
        for _ in range(_TRIES):
            (topic,) = self.random.choices(topics, cum_weights=weights)
            if topic not in held:
                return topic
        remaining = [
            t for t in topics if t not in held and weights[t] > (weights[t - 1] if t else 0)
        ]
        return self.random.choice(remaining) if remaining else None


@dataclass(frozen=True)
class ScriptedInterest:
    """Scripted changes from a file."""

    file: Annotated[str, Meta(description="Lines at,peer,subscribe|unsubscribe,topic.")]
    example: ClassVar[str] = "script:interest.csv"

    def changes(self, subscriptions: Subscriptions, setting: Setting, random: Random) -> Changes:
        """The lines in order of time.

        Raises: InputError if the file cannot be read; UseError for an unknown peer, or a time
        after the run; UnknownName for an unknown topic.
        """
        # A list takes no answers, so this cannot be `yield from`.
        for change in sorted(self._lines(subscriptions, setting), key=itemgetter(0)):  # noqa: UP028
            yield change

    def _lines(self, subscriptions: Subscriptions, setting: Setting) -> Iterator[InterestChange]:
        names = {name: topic for topic, name in enumerate(topic_names(subscriptions))}
        for line, text in lines(self.file):
            cells = [cell.strip() for cell in text.split(",")]
            if len(cells) != 4 or not is_whole_number(cells[1]) or cells[2] not in _WORDS:
                raise not_understood(
                    self.file,
                    line,
                    f"'{text[:40]}' is not at,peer,action,topic such as 50,7,subscribe,news",
                )
            at, peer, word, topic = cells
            if topic not in names:
                raise UnknownName("topic", topic, list(names))
            one = check_peer(int(peer), setting, "interest")
            time_us = moment(at, setting, "interest")
            yield InterestChange(time_us, one, names[topic], word == _WORDS[0])


_WORDS = ("subscribe", "unsubscribe")

INTERESTS: Mapping[str, type[InterestModel]] = {
    "none": NoInterest,
    "exponential": ExponentialInterest,
    "script": ScriptedInterest,
}
