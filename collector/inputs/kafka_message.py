"""Messages of a topic of Kafka: lines of the report contract, and their place in the topic."""

from __future__ import annotations

import json
from dataclasses import dataclass

from vizpub.reports.compressed import lines
from vizpub.reports.files import parse

_MOST_LINE = 2**20
"""Bytes of a line."""


@dataclass(frozen=True)
class KafkaMessage:
    """A message of a topic."""

    topic: str
    made: str
    """Kafka's own id of the topic: several may have had this name."""
    partition: int
    offset: int
    lines: tuple[bytes, ...] = ()
    newest: int = -1
    """The greatest interval of its reports; -1 if it has none."""
    size: int = 0
    """The bytes of its content."""
    key: bytes | None = None

    @classmethod
    def of(
        cls,
        topic: tuple[str, str],
        partition: int,
        offset: int,
        content: bytes,
        key: bytes | None = None,
    ) -> KafkaMessage:
        """Make the message with this content, whose last line needs no line break. `topic`: its
        name and Kafka's id of it.
        """
        message_lines = tuple(line for line, _ in lines([content], _MOST_LINE))
        intervals = [at for line in message_lines if (at := interval_of(line)) is not None]
        newest = max(intervals, default=-1)
        return cls(*topic, partition, offset, message_lines, newest, len(content), key)

    @property
    def source(self) -> str:
        """The key in `Intake.positions` of the offset that comes next."""
        return source_of((self.topic, self.made), self.partition)

    def head(self, refused: int) -> bytes:
        """Return the head of its record in the log."""
        place = ("topic", "made", "partition", "offset")
        head_fields = {name: getattr(self, name) for name in place}
        return json.dumps({**head_fields, "refused": refused} if refused else head_fields).encode()


def source_of(topic: tuple[str, str], partition: int) -> str:
    """Return the key of a partition among the sources of a log; others are files and URLs."""
    return f"kafka:{'/'.join(topic)}/{partition}"


def interval_of(line: bytes) -> int | None:
    """Return the interval of a report; null for another line."""
    value, wrong = parse(line.strip())
    return None if wrong or "interval" not in value else int(value["interval"])
