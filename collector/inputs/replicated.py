"""What the collectors of one run share: the header of the run, and what peers post to any of them.

Both go through the first partition of a topic, which has one order for all of them. A request is
answered when the brokers have acknowledged its lines, and this collector has taken them from the
topic: so the answer is that of its intake, and what is acknowledged survives the collector. Peers
send again what may have failed, to any of the collectors; a report that comes twice counts once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from vizpub.collector.acceptance import Acceptance
from vizpub.collector.inputs.kafka_message import KafkaMessage
from vizpub.collector.inputs.kafka_topic import Topic, TopicFailed, TopicReader, TopicWriter
from vizpub.model.errors import ServiceError, UseError
from vizpub.reports.compressed import LongLine
from vizpub.reports.files import parse
from vizpub.reports.records import RunHeader

NOT_BACK = "the topic does not return what is written to it"

_ANSWER_S = 20.0
"""The time in which a message must come back: less than reporters wait."""
_LOOK_S = 0.1
_MOST = 2**19
"""Bytes of a message, if it has several lines."""


@dataclass
class PostedReports:
    """Passes what peers post through the topic. Lives in the collector's event loop."""

    writer: TopicWriter
    _expected: dict[bytes, asyncio.Future[Acceptance]] = field(default_factory=dict)
    """The outcomes of messages that have not come back, by key."""

    async def take(self, lines: Sequence[bytes]) -> Acceptance:
        """Write lines to the topic, and return their outcome once they are taken from it.

        Raises: TopicFailed; then some of them may be taken all the same.
        """
        whole = Acceptance()
        parts = list(_parts(lines, whole))
        outcomes = await self._pass_through([content for _, content in parts])
        for (numbers, _), outcome in zip(parts, outcomes, strict=True):
            whole.add(outcome, numbers)
        return whole

    async def catch_up(self) -> None:
        """Wait until all is taken that the topic has now. Raises: TopicFailed."""
        await self._pass_through([b""])

    async def _pass_through(self, contents: Sequence[bytes]) -> list[Acceptance]:
        loop = asyncio.get_running_loop()
        written = [loop.create_future() for _ in contents]
        taken: dict[bytes, asyncio.Future[Acceptance]] = {
            uuid4().bytes: loop.create_future() for _ in contents
        }
        self._expected |= taken
        try:
            for future, key, content in zip(written, taken, contents, strict=True):
                self.writer.write(key, content, partial(_resolve, future))
            async with asyncio.timeout(_ANSWER_S):
                results = await asyncio.gather(*taken.values(), *written)
            return results[: len(taken)]
        except TimeoutError:
            raise TopicFailed(NOT_BACK) from None
        finally:
            for key in taken:
                self._expected.pop(key, None)

    def note(self, message: KafkaMessage, outcome: Acceptance) -> None:
        """Note that a message of the topic was taken."""
        if message.key and (future := self._expected.get(message.key)) and not future.done():
            future.set_result(outcome)

    def fail_all(self, why: TopicFailed) -> None:
        """Let all that wait fail."""
        for future in self._expected.values():
            _resolve(future, why)


def _resolve(future: asyncio.Future[Any], failure: TopicFailed | None) -> None:
    if future.done():  # nobody waits for it any more
        return
    if failure:
        future.set_exception(failure)
    else:
        future.set_result(None)


def _parts(lines: Sequence[bytes], whole: Acceptance) -> Iterator[tuple[list[int], bytes]]:
    """Yield the contents of messages, each with the numbers of its lines; refuse long lines."""
    numbers, part, size = list[int](), list[bytes](), 0
    for number, line in enumerate(lines, 1):
        if isinstance(line, LongLine):
            whole.refuse(number, line.problem)
            continue
        if part and size + len(line) > _MOST:
            yield numbers, b"\n".join(part)
            numbers, part, size = [], [], 0
        numbers.append(number)
        part.append(line)
        size += len(line) + 1
    if part:
        yield numbers, b"\n".join(part)


def share_header(topic: Topic, own: RunHeader) -> RunHeader:
    """Return the header with which a topic begins, after writing `own` to an empty topic. So all
    collectors of the run count intervals from the same epoch.

    Raises: UseError if the topic begins otherwise; ServiceError if it cannot be read or written.
    """
    reader, writer = TopicReader(topic, own.run or ""), TopicWriter(topic)
    try:
        line = _first_line(reader, writer, json.dumps(own.to_json()).encode())
    except TopicFailed as error:
        raise ServiceError(str(error)) from None
    finally:
        reader.close()
    value, wrong = parse(line)
    if not wrong and value["format"] == RunHeader.format:
        header = RunHeader.from_json(value)
        if header.run == own.run and header.epoch:
            return header
    raise UseError(
        f"topic '{topic.name}' does not begin with the header of run '{own.run}': give each run a "
        "topic of its own, which keeps all messages; if this one has lost some, import the "
        "collection from another collector (vizpub runs export --with-log)"
    )


def _first_line(reader: TopicReader, writer: TopicWriter, own: bytes) -> bytes:
    """Return the first line of a topic, after writing one to an empty topic; an empty line if it
    was removed. Raises: TopicFailed.
    """
    reader.look()
    low, high = reader.span(0)
    if low:
        return b""
    failures: list[TopicFailed | None] = []
    if not high:
        writer.write(b"", own, failures.append)
    reader.begin(0, 0)
    end = time.monotonic() + _ANSWER_S
    while time.monotonic() < end:
        writer.poll()
        for failure in filter(None, failures):
            raise failure
        if messages := reader.next(_LOOK_S).messages:
            return next(iter(messages[0].lines), b"")
    raise TopicFailed(NOT_BACK)
