"""Time partitions: copies that keep queries at one time fast in a long history.

A query that starts at a peer reads all relationships of a type that the peer ever had, and their
number grows with the history. A partitioned run is cut into partitions of PARTITION_INTERVALS, and
beside each link there is a copy in every partition in which it is valid, of the type
LINK_P<partition>: a query at one time reads those of that time's partition alone. Neo4j keeps the
relationships of a node apart by their type, so it passes over no others. Subscriptions likewise
(SUBSCRIBES_P<partition>).

The copies nearly double the relationships, so only a large run is partitioned, unless its load
says otherwise. What they cost, what they buy, and what else was tried: docs/history.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import UseError
from vizpub.model.wording import amount

if TYPE_CHECKING:  # a query needs neither, and starts sooner without
    import numpy as np
    import pyarrow as pa

    from vizpub.graphstore.load.batches import RunTables

Ticks = TypeVar("Ticks", int, "np.ndarray")

PARTITION_INTERVALS = 128
"""Intervals of a partition."""
MOST_PARTITIONS = 512
"""Most partitions of a run; in a longer run they are longer. Neo4j holds 65,535 types."""
PARTITIONED_ROWS = 1_000_000
"""A run with so many links and subscriptions is partitioned. Without, the slowest shipped queries
take about a second there, and in proportion below."""
MOST_READ = 32
"""A query of more partitions than these reads the whole history: each is one more type for Neo4j
to plan, and what is valid in several of them is read as often."""
COPIED = ("LINK", "SUBSCRIBES")
"""The types that have copies."""
COPY_TYPES = tuple(f"{type}_P{number}" for type in COPIED for number in range(MOST_PARTITIONS))
"""The types of copies."""

_PATTERN = re.compile(rf"(?<=:)(?:{'|'.join(COPIED)})\b")
_PREFIX = re.compile(r"type\(r\) STARTS WITH '(\w+)'")
_HINT = re.compile(r"USING INDEX \w+:(\w+)")


@dataclass(frozen=True)
class Partitions:
    """The partitions of a run, numbered from 0."""

    clock: Clock
    intervals: int = 0
    """Intervals of a partition; 0 = the run has none."""

    @property
    def count(self) -> int:
        """The number of partitions."""
        return -(-self.clock.intervals // self.intervals) if self.intervals else 0

    def at(self, tick: int) -> int:
        """Return the partition of a tick; ticks outside the run belong to the first or last one."""
        return min(max(self._number(tick), 0), self.count - 1)

    def of(self, ticks: np.ndarray) -> np.ndarray:
        """Return the partitions of ticks (int64)."""
        return self._number(ticks).clip(0, self.count - 1)

    def _number(self, ticks: Ticks) -> Ticks:
        k = self.clock.ticks_per_interval
        return (ticks - self.clock.first * k) // (self.intervals * k)


NONE = Partitions(Clock())
"""The partitions of a run that has none."""


def partitions_of(clock: Clock, intervals: int = PARTITION_INTERVALS) -> Partitions:
    """Return the partitions for a clock: none below two, and at most MOST_PARTITIONS."""
    if clock.intervals < 2 * intervals:
        return Partitions(clock)
    while clock.intervals > MOST_PARTITIONS * intervals:
        intervals *= 2
    return Partitions(clock, intervals)


def choose_partitions(clock: Clock, tables: RunTables, intervals: int | None) -> Partitions:
    """Choose the partitions of a run to load.

    `intervals` is their length, 0 = none, None = by the run's size.

    Raises: UseError if the run is too short for the length.
    """
    if intervals is None:
        large = sum(map(tables.rows, ("links", "subscriptions"))) >= PARTITIONED_ROWS
        return partitions_of(clock) if large else Partitions(clock)
    if not intervals:
        return Partitions(clock)
    partitions = partitions_of(clock, intervals)
    if not partitions.count:
        raise UseError(
            f"the run has {amount(clock.intervals, 'interval')}, and time partitions need at least "
            f"{2 * intervals}; load it without --partitioned"
        )
    return partitions


def copies(rows: pa.RecordBatch, partitions: Partitions) -> pa.RecordBatch:
    """Repeat rows for each partition in which they are valid, with a column `partition` (int64).

    `rows` have the columns valid_from and valid_to, in ticks. They keep their order, and the
    copies of a row are ordered by partition. Without partitions there are no copies.
    """
    import numpy as np
    import pyarrow as pa

    if not partitions.count:
        return rows.slice(0, 0).append_column("partition", pa.array([], pa.int64()))
    valid_from, valid_to = (rows[name].to_numpy() for name in ("valid_from", "valid_to"))
    first = partitions.of(valid_from)
    last = partitions.of(np.where(valid_to == OPEN, OPEN, valid_to - 1))
    times = last - first + 1
    of = np.repeat(np.arange(len(times)), times)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
    return rows.take(pa.array(of)).append_column("partition", pa.array(first[of] + nth))


def copy_types(type: str, partitions: pa.Array) -> pa.Array:
    """Return the types of copies in these partitions: LINK_P0, …"""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(type, partitions.cast(pa.string()), "_P")


def name_copy_types(text: str, partitions: Partitions) -> str:
    """Replace a test of how a type begins by the names of all copies' types.

    Nothing changes if the run has no partitions, or records more than there can be.
    """
    # With names, Neo4j does not look at the other relationships of its nodes.
    prefix = _PREFIX.search(text)
    if not prefix or not 0 < partitions.count <= MOST_PARTITIONS:
        return text
    types = "|".join(f"{prefix[1]}{number}" for number in range(partitions.count))
    return text.replace("-[r]-", f"-[r:{types}]-")


def narrow_to_partitions(
    text: str, partitions: Partitions, stretches: Sequence[tuple[int, int]]
) -> str:
    """Make a query read the copies of the partitions of its times instead of links and so on.

    The times are stretches of ticks, both ends inclusive. A type that the text finds by an index
    stays: the index finds the time. Nothing changes if the run has no partitions, or if the
    times are in more than MOST_READ of them.
    """
    if not partitions.count or not stretches:
        return text
    ends = [(partitions.at(first), partitions.at(last)) for first, last in stretches]
    numbers = sorted({n for first, last in ends for n in range(first, last + 1)})
    if len(numbers) > MOST_READ:
        return text
    hinted = set(_HINT.findall(text))

    def types(match: re.Match[str]) -> str:
        type = match[0]
        return type if type in hinted else "|".join(f"{type}_P{number}" for number in numbers)

    return _PATTERN.sub(types, text)
