"""Epochs: what keeps questions at one time fast in a long history.

A question that starts at a peer reads all relationships of a type that the peer ever had,
and their number grows with the history. So the intervals of a long run are cut into epochs
of EPOCH_INTERVALS, and beside each link there is a copy for every epoch it is alive in,
of the type LINK_E<epoch>: a question at one time reads those of that time's epoch alone.
Neo4j keeps the relationships of a node apart by their type, so it passes over no others.
Subscriptions likewise (SUBSCRIBES_E<epoch>).

A run of less than two epochs has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from model.clock import OPEN, Clock

EPOCH_INTERVALS = 128
"""Intervals of an epoch."""
COPIED = ("LINK", "SUBSCRIBES")
"""The types that have copies."""


@dataclass(frozen=True)
class Epochs:
    """The epochs of a run, numbered from 0."""

    first_tick: int
    """The first tick of the run."""
    ticks: int
    """Ticks of an epoch."""
    count: int
    """How many there are; 0 in a run that is too short for them."""

    def at(self, tick: int) -> int:
        """The epoch of a tick; what lies outside the run counts to the first or the last."""
        return min(max(0, (tick - self.first_tick) // self.ticks), self.count - 1)

    def type(self, name: str, epoch: int) -> str:
        """The type of the copies of an epoch."""
        return f"{name}_E{epoch:d}"


def epochs_of(clock: Clock, intervals: int = EPOCH_INTERVALS) -> Epochs:
    """The epochs of a run of this clock; none below two of them."""
    count = -(-clock.intervals // intervals) if clock.intervals >= 2 * intervals else 0
    k = clock.ticks_per_interval
    return Epochs(clock.first * k, intervals * k, count)


def copies(rows: pa.RecordBatch, epochs: Epochs) -> pa.RecordBatch:
    """The rows once for each epoch that they are alive in, with it in a column `epoch` (int32).

    `rows` have the columns vf and vt, in ticks. They keep their order, and those of one row
    come by ascending epoch. None where the run has no epochs.
    """
    if not epochs.count:
        return rows.slice(0, 0).append_column("epoch", pa.array([], pa.int32()))
    vf, vt = (rows[name].to_numpy() for name in ("vf", "vt"))
    first, last = _epoch(vf, epochs), _epoch(np.where(vt == OPEN, OPEN, vt - 1), epochs)
    times = last - first + 1
    of = np.repeat(np.arange(len(times)), times)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
    epoch = (first[of] + nth).astype(np.int32)
    return rows.take(pa.array(of)).append_column("epoch", pa.array(epoch))


def _epoch(ticks: np.ndarray, epochs: Epochs) -> np.ndarray:
    epoch: np.ndarray = (ticks - epochs.first_tick) // epochs.ticks
    return epoch.clip(0, epochs.count - 1)
