"""Reads the messages of a topic of Kafka, from all of its partitions.

The log has each message with its offset, in one record. So offsets are stored nowhere else: nothing
is committed at the broker, and after a kill the topic is read from where the log ends. While the
collector accepts nothing, nothing is read.

Partitions are read side by side, as files are (`vizpub.collector.inputs.folder`): one that is too
far ahead waits. But many peers share a partition, and a single wrong clock must not stop it. So it
waits only until the others have been read up to their ends at the time when it stopped. Then the
intake judges its next message.
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

from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.inputs.kafka_message import KafkaMessage, source_of
from vizpub.collector.inputs.kafka_topic import FetchResult, Topic, TopicFailed, TopicReader
from vizpub.collector.inputs.replicated import PostedReports
from vizpub.collector.intake import Intake
from vizpub.collector.log.log import LogFailed
from vizpub.model.wording import amount

MADE_ANEW = "was created again, and is read from its beginning"
OVER = "this collector takes no more reports"

_LOOK_S = 5.0
"""Between two looks at the topic's partitions."""
_RETRY_S = 1.0
"""Between two looks while it cannot be read."""
_WAIT_S = 0.1
_MOST = 1000
"""Messages of a partition to take at once."""
_MOST_WAITING = 4 * 2**20
"""Most waiting bytes of a partition: beyond, it is paused."""
_MOST_LAG = 5_000
"""The most messages that may be ahead of what is posted through the topic."""
_SHOWN = 3
_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass
class Partition:
    """A partition, with the position up to which it is read."""

    number: int
    fetched: int
    """The offset that is read next."""
    end: int
    """The offset behind the last known message."""
    waiting: deque[KafkaMessage] = field(default_factory=deque)
    size: int = 0
    """Bytes that wait."""
    until: dict[int, int] | None = None
    """The ends of all partitions when this one stopped, being ahead; null = it does not wait."""
    lost: int = 0
    """Offsets that were removed before they were read."""

    @property
    def next(self) -> int:
        """The offset that is taken next."""
        return self.waiting[0].offset if self.waiting else self.fetched

    @property
    def interval(self) -> int:
        """The interval of the next message; -1 if none waits."""
        return self.waiting[0].newest if self.waiting else -1

    def add(self, message: KafkaMessage) -> None:
        """Add a message unless it was read before."""
        if message.offset >= self.fetched:
            self.waiting.append(message)
            self.size += message.size
            self.fetched = message.offset + 1

    def up_to(self, interval: int) -> Iterator[KafkaMessage]:
        """Return the waiting messages before the first that is later than an interval."""
        return islice(takewhile(lambda one: one.newest <= interval, self.waiting), _MOST)

    def remove(self, message: KafkaMessage) -> None:
        """Remove the first waiting message: it is in the log."""
        assert self.waiting.popleft() is message
        self.size -= message.size

    @property
    def lag(self) -> int:
        """The number of offsets up to the end that are not taken."""
        return max(self.end - self.next, 0)

    def summary(self) -> dict[str, Any]:
        """Return its state for readers."""
        return {
            "partition": self.number,
            "offset": self.next,
            "lag": self.lag,
            "lost": self.lost,
            "held": self.until is not None,
        }


@dataclass
class KafkaInput:
    """Reads a topic until the run has ended."""

    topic: Topic
    intake: Intake
    say: Callable[[str], None]
    web: HttpInterface
    """Decides if reports are accepted now, and shows the topic."""
    partitions: dict[int, Partition] = field(default_factory=dict)
    up: bool | None = None
    """True if the topic could be read at the last look; null before the first one."""
    error: str | None = None
    posted: PostedReports | None = None
    """Passes through the topic what peers post; null = it goes into the log directly."""

    def __post_init__(self) -> None:
        """Begin. Raises: UseError for a wrong property."""
        self._reader = TopicReader(self.topic, self.intake.place.run)
        self._thread = ThreadPoolExecutor(1, "kafka")
        self._look_at = 0.0
        self._took = False
        self._topic_id = ""
        self._gone: set[int] = set()
        """Partitions that do not have the next offset any more."""
        self._is_first = not self._has_read()
        """True if no collector of this log has read the topic before."""
        self.web.progress.topic = self.summary
        if self.posted:
            self.web.post, self.web.obstacle = self.posted.take, self.obstacle
            self.intake.catch_up = self._catch_up

    @property
    def lag(self) -> int | None:
        """The known messages of the topic that are not taken; null before it was read."""
        return sum(one.lag for one in self.partitions.values()) if self.partitions else None

    def summary(self) -> dict[str, Any]:
        """Return the topic and its partitions for readers."""
        return {
            "topic": self.topic.name,
            "up": self.up,
            "error": self.error,
            "lag": self.lag,
            "partitions": [one.summary() for one in self.partitions.values()],
        }

    async def follow(self) -> None:
        """Read until the run has ended."""
        try:
            while not self.intake.ended:
                is_reading = await self._turn()
                if self.posted:
                    self.posted.writer.poll()
                    if self.web.progress.draining:  # nothing is read any more
                        self.posted.fail_all(TopicFailed(OVER))
                if not is_reading:
                    await asyncio.sleep(_WAIT_S)
        finally:
            await self._call(self._reader.close)
            if self.posted:
                self.posted.fail_all(TopicFailed(OVER))
            self._thread.shutdown(wait=False)
        if lag := self.lag:
            self.say(f"the run has ended: {lag:,} messages of '{self.topic.name}' are not in it")
        await asyncio.Event().wait()

    def obstacle(self) -> str | None:
        """The reason why what is posted now would not come back soon; null = there is none."""
        if self.intake.ended:
            return OVER
        if self.up and (self.lag or 0) <= _MOST_LAG:
            return None
        return self.error or "the collector is reading what the topic has"

    async def _catch_up(self) -> bool:
        """Take all that the topic has. Returns False if that is not possible now."""
        assert self.posted
        try:
            if self.up:
                await self.posted.catch_up()
            return bool(self.up)
        except TopicFailed:
            return False

    async def _call(self, do: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a method of the reader, which may block, in the one thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: do(*args, **kwargs))

    async def _turn(self) -> bool:
        """Read and take messages. Returns False if that is not possible now."""
        try:
            if time.monotonic() >= self._look_at:
                await self._look()
            if not self.partitions or not self.web.has_room():
                return False
            wait_s = 0.0 if self._took else _WAIT_S
            self._add(await self._call(self._reader.next, wait_s))
            await self._take(list(self._takeable()))
        except LogFailed:  # the collector reports it
            return False
        ahead = {n for n, one in self.partitions.items() if one.until or one.size > _MOST_WAITING}
        await self._call(self._reader.pause, ahead)
        return True

    async def _look(self) -> None:
        """Begin with new partitions, and with all after an outage."""
        trouble = None
        try:
            topic_id, numbers = await self._call(self._reader.look)
            if topic_id != self._topic_id:  # the first look, or the topic was created again
                await self._take([one for part in self.partitions.values() for one in part.waiting])
                self._topic_id, self.partitions = topic_id, {}
                if self._has_read() and not self._has_read(topic_id):
                    self.say(f"topic '{self.topic.name}' {MADE_ANEW}")
            for number in numbers:
                if number not in self.partitions or number in self._gone or not self.up:
                    await self._begin(number)
                elif not self.web.has_room():  # without fetches nothing else updates the lag
                    self.partitions[number].end = (await self._call(self._reader.span, number))[1]
        except TopicFailed as error:
            trouble = str(error)
        if trouble and trouble != self.error:
            self.say(f"{trouble}; it will be read when that changes")
        elif trouble is None and not self.up:
            partitions = amount(len(self.partitions), "partition")
            self.say(f"topic '{self.topic.name}' is read, {partitions}")
        if trouble is None:
            self._is_first, self._gone = False, set()
        self.up, self.error = trouble is None, trouble
        self._look_at = time.monotonic() + (_RETRY_S if trouble else _LOOK_S)

    def _has_read(self, *topic_id: str) -> bool:
        """Return True if the log has a topic of this name (and this id, if one is given)."""
        begins = f"kafka:{'/'.join((self.topic.name, *topic_id))}/"
        return any(source.startswith(begins) for source in self.intake.positions)

    async def _begin(self, number: int) -> None:
        """Read a partition from where the log, or an earlier fetch, ends. Raises: TopicFailed."""
        low, high = await self._call(self._reader.span, number)
        source = source_of((self.topic.name, self._topic_id), number)
        partition = self.partitions.get(number)
        at = partition.fetched if partition else self.intake.positions.get(source)
        if at is None:
            # A partition that is added later has no messages from before the collection.
            at = high if self.topic.from_end and self._is_first else low
            await self.intake.take([], {source: at})
        name = f"partition {number} of topic '{self.topic.name}'"
        lost = max(low - at, 0)
        if lost:
            self.say(f"{name} lacks {lost:,} messages from offset {at:,} on: they were removed")
        if at > high:
            self.say(f"{name} ends before offset {at:,}: it was cut, and is read again")
        begin = at if low <= at <= high else low
        part = self.partitions.setdefault(number, Partition(number, begin, high))
        part.fetched, part.end, part.lost = begin, high, part.lost + lost
        await self._call(self._reader.begin, number, begin)

    def _add(self, arrived: FetchResult) -> None:
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

    def _takeable(self) -> Iterator[KafkaMessage]:
        """Yield the messages that can be taken now."""
        horizon = self.intake.horizon
        parts = list(self.partitions.values())
        ahead = [one for one in parts if one.interval > horizon]
        for one in parts:
            if one not in ahead:
                one.until = None
                yield from one.up_to(horizon)
            elif one.until is None:
                one.until = {part.number: part.end for part in parts}
            elif all(  # it has waited for all that could catch up
                part.interval >= one.interval
                if part in ahead
                else part.next >= one.until.get(part.number, 0)
                for part in parts
            ):
                one.until = None
                yield from one.up_to(one.interval)

    async def _take(self, ready: list[KafkaMessage]) -> None:
        """Take messages into the log. Raises: LogFailed."""
        # What the log writes as a whole must not be interrupted.
        acceptances = await asyncio.shield(self.intake.take_messages(ready))
        for message, acceptance in zip(ready, acceptances, strict=True):
            self.partitions[message.partition].remove(message)
            if self.posted:
                self.posted.note(message, acceptance)
        self._took = bool(ready)
        refused = (
            f"topic '{message.topic}', partition {message.partition}, offset {message.offset}, "
            f"line {why['line']} is refused: {why['reason']}"
            for message, one in zip(ready, acceptances, strict=True)
            for why in one.refusals
        )
        for text in islice(refused, _SHOWN):
            self.say(text)
