"""Epochs: copies that keep queries at one time fast in a long history.

A question that starts at a peer reads all relationships of a type that the peer ever had,
and their number grows with the history. So the intervals of a long run are cut into epochs
of EPOCH_INTERVALS, and beside each link there is a copy for every epoch it is alive in,
of the type LINK_E<epoch>: a question at one time reads those of that time's epoch alone.
Neo4j keeps the relationships of a node apart by their type, so it passes over no others.
Subscriptions likewise (SUBSCRIBES_E<epoch>).

A run of less than two epochs has none, nor has a copy of a run that was made before there
were any; it is asked without. What it costs, and what else was tried: docs/history.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from model.clock import OPEN, Clock

if TYPE_CHECKING:  # a question has but one time, and waits for neither
    import numpy as np
    import pyarrow as pa

Ticks = TypeVar("Ticks", int, "np.ndarray")

EPOCH_INTERVALS = 128
"""Intervals of an epoch."""
MOST_EPOCHS = 512
"""Most epochs of a run; in a longer run they are longer. Neo4j holds 65,535 types."""
MOST_READ = 32
"""A question that looks at more epochs than these reads the whole history: each is one more
type for Neo4j to plan, and what lives through several of them is read as often."""
COPIED = ("LINK", "SUBSCRIBES")
"""The types that have copies."""
COPY_TYPES = tuple(f"{type}_E{epoch}" for type in COPIED for epoch in range(MOST_EPOCHS))
"""The types of copies."""

_PATTERN = re.compile(rf"(?<=:)(?:{'|'.join(COPIED)})\b")
_PREFIX = re.compile(r"type\(r\) STARTS WITH '(\w+)'")
_HINT = re.compile(r"USING INDEX \w+:(\w+)")


@dataclass(frozen=True)
class Epochs:
    """The epochs of a run, numbered from 0."""

    clock: Clock
    intervals: int = 0
    """Intervals of an epoch; 0 = the run has none."""

    @property
    def count(self) -> int:
        """How many epochs there are."""
        return -(-self.clock.intervals // self.intervals) if self.intervals else 0

    def at(self, tick: int) -> int:
        """The epoch of a tick; what lies outside the run counts to the first or the last."""
        return min(max(self._number(tick), 0), self.count - 1)

    def of(self, ticks: np.ndarray) -> np.ndarray:
        """The epochs of ticks (int64)."""
        return self._number(ticks).clip(0, self.count - 1)

    def _number(self, ticks: Ticks) -> Ticks:
        k = self.clock.ticks_per_interval
        return (ticks - self.clock.first * k) // (self.intervals * k)


NONE = Epochs(Clock())
"""Of a run without epochs."""


def epochs_of(clock: Clock, intervals: int = EPOCH_INTERVALS) -> Epochs:
    """The epochs of a run of this clock: none below two of them, and not more than MOST_EPOCHS."""
    if clock.intervals < 2 * intervals:
        return Epochs(clock)
    while clock.intervals > MOST_EPOCHS * intervals:
        intervals *= 2
    return Epochs(clock, intervals)


def copies(rows: pa.RecordBatch, epochs: Epochs) -> pa.RecordBatch:
    """The rows once for each epoch that they are alive in, with it in a column `epoch` (int64).

    `rows` have the columns valid_from and valid_to, in ticks. They keep their order, and those of
    one row come by ascending epoch. None where the run has no epochs.
    """
    import numpy as np
    import pyarrow as pa

    if not epochs.count:
        return rows.slice(0, 0).append_column("epoch", pa.array([], pa.int64()))
    valid_from, valid_to = (rows[name].to_numpy() for name in ("valid_from", "valid_to"))
    first, last = epochs.of(valid_from), epochs.of(np.where(valid_to == OPEN, OPEN, valid_to - 1))
    times = last - first + 1
    of = np.repeat(np.arange(len(times)), times)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
    return rows.take(pa.array(of)).append_column("epoch", pa.array(first[of] + nth))


def copy_types(type: str, epochs: pa.Array) -> pa.Array:
    """The types of copies of these epochs: LINK_E0, …"""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(type, epochs.cast(pa.string()), "_E")


def of_copies(text: str, epochs: Epochs) -> str:
    """A statement that finds all copies of a type by how their types begin, naming them: else
    Neo4j looks at whatever else its nodes have. Nothing changes where the run has no epochs, or
    says that it has more than there can be.
    """
    found = _PREFIX.search(text)
    if not found or not 0 < epochs.count <= MOST_EPOCHS:
        return text
    types = "|".join(f"{found[1]}{number}" for number in range(epochs.count))
    return text.replace("-[r]-", f"-[r:{types}]-")


def narrowed(text: str, epochs: Epochs, stretches: Sequence[tuple[int, int]]) -> str:
    """A query's text, reading copies of the epochs of these times in place of links and so on.

    The times are stretches of ticks, the last one included. A type that the text finds by an
    index stays: the index knows the time by itself. Nothing changes where the run has no
    epochs, or where the times are in more than MOST_READ of them.
    """
    if not epochs.count or not stretches:
        return text
    numbers = sorted({n for t1, t2 in stretches for n in range(epochs.at(t1), epochs.at(t2) + 1)})
    if len(numbers) > MOST_READ:
        return text
    hinted = set(_HINT.findall(text))

    def types(match: re.Match[str]) -> str:
        type = match[0]
        return type if type in hinted else "|".join(f"{type}_E{number}" for number in numbers)

    return _PATTERN.sub(types, text)
