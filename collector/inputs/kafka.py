"""Messages of a topic of Kafka, from all of its partitions.

The log has each message with its offset, in one record. So offsets are nowhere else: nothing is
committed at the broker, and after a kill the topic is read where the log ends. While the collector
takes nothing, nothing is read.

Partitions go side by side, as files do (`vizpub.collector.inputs.folder`): one that is too far
ahead waits. But many peers share a partition, and a single wrong clock must not stop it. So it
waits only until the others are read as far as they were when it stopped. Then the intake judges
what is next in it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any, ParamSpec, TypeVar

from vizpub.collector.acceptance import Taken
from vizpub.collector.http.interface import Web
from vizpub.collector.inputs.kafka_message import Message, source_of
from vizpub.collector.inputs.kafka_topic import Arrived, Topic, TopicFailed, TopicReader
from vizpub.collector.intake import Intake
from vizpub.collector.log.log import LogFailed

MADE_ANEW = "was created again, and is read from its beginning"

_LOOK_S = 5.0
"""Between two looks at the topic's partitions."""
_RETRY_S = 1.0
"""The same while it cannot be read."""
_WAIT_S = 0.1
_MOST = 1000
"""Messages of a partition that are taken at once."""
_HELD = 4 * 2**20
"""Bytes of a partition that wait to be taken, at most: then it is not read on."""
_SHOWN = 3
_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass
class Partition:
    """A partition, and how far it is read."""

    number: int
    fetched: int
    """The offset that is read next."""
    end: int
    """The offset behind the last message, as far as known."""
    waiting: deque[Message] = field(default_factory=deque)
    size: int = 0
    """Bytes that wait."""
    until: dict[int, int] | None = None
    """What the other partitions had when this one stopped because it was ahead."""
    lost: int = 0
    """Offsets that were removed before they were read."""

    @property
    def next(self) -> int:
        """The offset that is taken next."""
        return self.waiting[0].offset if self.waiting else self.fetched

    @property
    def interval(self) -> int:
        """Of what is taken next; -1 where nothing waits."""
        return self.waiting[0].newest if self.waiting else -1

    def add(self, message: Message) -> None:
        """A message that was read; one that was read before is left out."""
        if message.offset >= self.fetched:
            self.waiting.append(message)
            self.size += message.size
            self.fetched = message.offset + 1

    def up_to(self, interval: int) -> Iterator[Message]:
        """What comes before a message that is later than this."""
        return islice(takewhile(lambda one: one.newest <= interval, self.waiting), _MOST)

    def taken(self, message: Message) -> None:
        """The message is in the log."""
        assert self.waiting.popleft() is message
        self.size -= message.size

    @property
    def lag(self) -> int:
        """Offsets that are not taken, up to the end."""
        return max(self.end - self.next, 0)

    def told(self) -> dict[str, Any]:
        """For readers."""
        return {
            "partition": self.number,
            "offset": self.next,
            "lag": self.lag,
            "lost": self.lost,
            "held": self.until is not None,
        }


@dataclass
class Kafka:
    """Reads a topic until the run has ended."""

    topic: Topic
    intake: Intake
    say: Callable[[str], None]
    web: Web
    """Says whether reports are taken now, and tells of the topic."""
    partitions: dict[int, Partition] = field(default_factory=dict)
    up: bool | None = None
    """Whether the topic could be read at the last look; null before the first one."""
    error: str | None = None

    def __post_init__(self) -> None:
        """Raises: UseError."""
        self._reader = TopicReader(self.topic, self.intake.place.run)
        self._thread = ThreadPoolExecutor(1, "kafka")
        self._look_at = 0.0
        self._took = False
        self._made = ""
        self._gone: set[int] = set()
        """Partitions that have not the offset which came next."""
        self._is_first = not self._known()
        """No collector of this log has read the topic before."""
        self.web.progress.topic = self.told

    @property
    def lag(self) -> int | None:
        """Messages of the topic that are not taken, as far as known; null before it was read."""
        return sum(one.lag for one in self.partitions.values()) if self.partitions else None

    def told(self) -> dict[str, Any]:
        """The topic, and how far each partition is read."""
        return {
            "topic": self.topic.name,
            "up": self.up,
            "error": self.error,
            "lag": self.lag,
            "partitions": [one.told() for one in self.partitions.values()],
        }

    async def follow(self) -> None:
        """Take what comes."""
        try:
            while not self.intake.ended:
                if not await self._turn():
                    await asyncio.sleep(_WAIT_S)
        finally:
            await self._call(self._reader.close)
            self._thread.shutdown(wait=False)
        if left := self.lag:
            self.say(f"the run has ended: {left:,} messages of '{self.topic.name}' are not in it")
        await asyncio.Event().wait()

    async def _call(self, do: Callable[_P, _R], *args: _P.args, **named: _P.kwargs) -> _R:
        """What may block, one at a time."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: do(*args, **named))

    async def _turn(self) -> bool:
        """Read and take. Returns whether that was possible."""
        try:
            if time.monotonic() >= self._look_at:
                await self._look()
            if not self.partitions or not self.web.has_room():
                return False
            wait_s = 0.0 if self._took else _WAIT_S
            self._add(await self._call(self._reader.next, wait_s))
            await self._take(list(self._ready()))
        except LogFailed:  # the collector says so
            return False
        ahead = {n for n, one in self.partitions.items() if one.until or one.size > _HELD}
        await self._call(self._reader.pause, ahead)
        return True

    async def _look(self) -> None:
        """Begin with partitions that are new, and with all after a break."""
        trouble = None
        try:
            made, numbers = await self._call(self._reader.look)
            if made != self._made:
                await self._anew(made)
            for number in numbers:
                if number not in self.partitions or number in self._gone or not self.up:
                    await self._begin(number)
                elif not self.web.has_room():  # nothing else tells how far it is behind
                    self.partitions[number].end = (await self._call(self._reader.span, number))[1]
        except TopicFailed as error:
            trouble = str(error)
        if trouble and trouble != self.error:
            self.say(f"{trouble}; it is read as soon as that changes")
        elif trouble is None and not self.up:
            count, name = len(self.partitions), self.topic.name
            self.say(f"topic '{name}' is read, {count} partition{'s' if count > 1 else ''}")
        if trouble is None:
            self._is_first, self._gone = False, set()
        self.up, self.error = trouble is None, trouble
        self._look_at = time.monotonic() + (_RETRY_S if trouble else _LOOK_S)

    def _known(self, *made: str) -> bool:
        """Whether the log has a topic of this name, or the one that was made with this id."""
        begins = f"kafka:{'/'.join((self.topic.name, *made))}/"
        return any(source.startswith(begins) for source in self.intake.read)

    async def _anew(self, made: str) -> None:
        """It is another topic. What was read of the one before is taken. Raises: LogFailed."""
        await self._take([one for part in self.partitions.values() for one in part.waiting])
        self._made, self.partitions = made, {}
        if self._known() and not self._known(made):
            self.say(f"topic '{self.topic.name}' {MADE_ANEW}")

    async def _begin(self, number: int) -> None:
        """Read a partition from where the log ends, or what was read. Raises: TopicFailed."""
        low, high = await self._call(self._reader.span, number)
        source = source_of((self.topic.name, self._made), number)
        known = self.partitions.get(number)
        at = known.fetched if known else self.intake.read.get(source)
        if at is None:
            # A partition that comes later has nothing from before the collection.
            at = high if self.topic.from_end and self._is_first else low
            await self.intake.take([], {source: at})
        named = f"partition {number} of topic '{self.topic.name}'"
        lost = max(low - at, 0)
        if lost:
            self.say(f"{named} lacks {lost:,} messages from offset {at:,} on: they were removed")
        if at > high:
            self.say(f"{named} ends before offset {at:,}: it was cut, and is read again")
        begin = at if low <= at <= high else low
        part = self.partitions.setdefault(number, Partition(number, begin, high))
        part.fetched, part.end, part.lost = begin, high, part.lost + lost
        await self._call(self._reader.begin, number, begin)

    def _add(self, arrived: Arrived) -> None:
        parts = self.partitions
        for message in arrived.messages:
            parts[message.partition].add(message)
        for number, offset in arrived.at_end.items():
            parts[number].fetched = max(parts[number].fetched, offset)
        for number, end in arrived.ends.items():
            parts[number].end = max(parts[number].end, end)
        if arrived.gone:  # removed by retention, or with the topic
            self._gone |= arrived.gone
            self._look_at = 0.0

    def _ready(self) -> Iterator[Message]:
        """What can be taken now."""
        horizon = self.intake.horizon
        parts = list(self.partitions.values())
        ahead = [one for one in parts if one.interval > horizon]
        for one in parts:
            if one not in ahead:
                one.until = None
                yield from one.up_to(horizon)
            elif one.until is None:
                one.until = {other.number: other.end for other in parts}
            elif self._goes(one, ahead):
                one.until = None
                yield from one.up_to(one.interval)

    def _goes(self, part: Partition, ahead: list[Partition]) -> bool:
        """Whether a partition that is ahead has waited for all that could catch up."""
        assert part.until is not None
        return all(
            other.interval >= part.interval
            if other in ahead
            else other.next >= part.until.get(other.number, 0)
            for other in self.partitions.values()
        )

    async def _take(self, ready: list[Message]) -> None:
        """Raises: LogFailed."""
        # The log is written as a whole, so it must not be left in the middle.
        done = await asyncio.shield(self.intake.take_messages(ready))
        for message in ready:
            self.partitions[message.partition].taken(message)
        self._took = bool(ready)
        self._say_refused(ready, done)

    def _say_refused(self, messages: list[Message], done: list[Taken]) -> None:
        refused = (
            f"topic '{message.topic}', partition {message.partition}, offset {message.offset}, "
            f"line {why['line']} is refused: {why['reason']}"
            for message, one in zip(messages, done, strict=True)
            for why in one.why
        )
        for text in islice(refused, _SHOWN):
            self.say(text)
