"""Retention: intervals older than those that the user keeps leave a run, with the commit of an
append.

What still holds at the first interval that stays, the horizon, stays too, and begins there: the run
is then as if it had begun at the horizon, and every reader finds what it expects of a run. Metrics
are those that were measured. A message leaves with all its rows if it was published before; the
others are numbered again from 0, as messages are numbered densely. Names of peers and topics stay.

What later appends may change never leaves, nor the interval before it, with which they compare. The
rows that stay are written again, so the horizon moves in steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.ingest.inputs.late import NAMING, first_open_message, least_value
from vizpub.ingest.job import Job, stored_name
from vizpub.ingest.sources.folded import CARRIED
from vizpub.model.arrays import Int64s
from vizpub.model.tables import table
from vizpub.model.wording import amount
from vizpub.runstore.manifest import INPUTS, Manifest, Since, TableEntry
from vizpub.runstore.rewriting import RowChange, change_rows
from vizpub.runstore.store import StoredRun

INTERVALS = "intervals that left the run"
ROWS = "rows that left with them"
BYTES = "bytes that left with them"
LEFT = (INTERVALS, ROWS, BYTES)
"""Notes of a run on what has left it."""
STEPS = 8
"""The horizon moves when the run has this part more intervals than are kept."""


def retain(job: Job, manifest: Manifest) -> Manifest:
    """Return the complete run without the intervals before the horizon, in new files.

    A rebuilt run begins where it began before: the input that is left may reach back farther.
    """
    earlier = job.base or (job.writer.stored if job.request.settles else None)
    left = {name: n for name, n in (earlier.notes if earlier else {}).items() if name in LEFT}
    run = StoredRun(job.writer.directory, replace(manifest, notes={**manifest.notes, **left}))
    horizon = job.clock.first
    if left and job.base is None:
        assert earlier
        assert earlier.clock
        horizon = min(earlier.clock.first, _first_needed(run))
        left[INTERVALS] -= earlier.clock.first - job.clock.first
    elif job.request.keep:
        horizon = _find_horizon(run, job.request.keep)
    if horizon <= job.clock.first:
        return run.manifest
    return _cut(job, run, horizon, left)


def _find_horizon(run: StoredRun, keep: int) -> int:
    """Return the first interval that stays; the run's first if the horizon does not move yet."""
    clock = run.facts.clock
    step = max(1, keep // STEPS)
    if clock.intervals < keep + step:
        return clock.first
    horizon = min(clock.last + 1 - keep, _first_needed(run))
    return horizon if horizon - clock.first >= step else clock.first


def _first_needed(run: StoredRun) -> int:
    """Return the first interval that an append may need; see AppendPlan.find_boundary."""
    manifest, last = run.manifest, run.facts.clock.last
    since = min(manifest.final + 1, last)
    first = first_open_message(run)
    interval = min(since, least_value(run, "interval", Since("message", first), *NAMING))
    recent = least_value(run, "message", Since("interval", interval), *NAMING)
    messages = Since("message", min(first, recent))
    return min(interval - 1, least_value(run, "interval", messages, "publications"))


@dataclass(frozen=True)
class _Horizon:
    """The rows from an interval on."""

    interval: int
    tick: int
    message: int
    """The first message that stays."""
    leaving: tuple[int, ...]
    """The later ones that leave: numbers follow the publications only roughly."""

    def change_for(self, columns: Iterable[str]) -> RowChange | None:
        """Return the change of a table with these columns; null = it stays as it is."""
        names = {*columns}
        if "valid_to" in names:
            return self._clip
        if "message" in names:
            return self._number_again
        return self.drop if "interval" in names else None

    def drop(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of intervals that stay."""
        return rows.filter(pc.greater_equal(rows["interval"], self.interval))

    def _clip(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = rows.filter(pc.greater(rows["valid_to"], self.tick))
        return _with_column(
            rows, "valid_from", np.maximum(rows["valid_from"].to_numpy(), self.tick)
        )

    def _number_again(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        stays = pc.greater_equal(rows["message"], self.message)
        leaving = np.array(self.leaving, np.int64)
        rows = rows.filter(pc.and_not(stays, pc.is_in(rows["message"], pa.array(leaving))))
        numbers = rows["message"].to_numpy()
        fewer = self.message + np.searchsorted(leaving, numbers)
        return _with_column(rows, "message", numbers - fewer)


def _with_column(rows: pa.RecordBatch, name: str, values: Int64s) -> pa.RecordBatch:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), pa.array(values))


def _horizon_at(run: StoredRun, interval: int) -> _Horizon:
    since = Since("interval", interval)
    first = min(least_value(run, "message", since, "publications"), run.rows("publications"))
    before = pc.field("interval") < interval
    batches = run.scan("publications", ["message"], before, Since("message", first))
    leaving = sorted(number for rows in batches for number in rows["message"].to_pylist())
    tick = interval * run.facts.clock.ticks_per_interval
    return _Horizon(interval, tick, first, tuple(leaving))


def _cut(job: Job, run: StoredRun, interval: int, left: Mapping[str, int]) -> Manifest:
    manifest, horizon = run.manifest, _horizon_at(run, interval)

    def cut(name: str, entry: TableEntry, change: RowChange | None) -> TableEntry:
        if change is None:
            return entry
        return change_rows(run.directory, name, entry, change, job.writer.fresh_directory)

    tables = {
        name: cut(name, entry, horizon.change_for(table(name).names))
        for name, entry in manifest.tables.items()
    }
    carry = {
        # Their messages have names, and rows of one that are older than the horizon are not needed.
        name: cut(stored_name(name), entry, horizon.change_for(columns - {"message"}))
        if (columns := _columns_of_carried(job, name))
        else entry
        for name, entry in manifest.carry.items()
    }
    shorter = replace(
        manifest,
        tables=tables,
        carry=carry,
        clock=replace(job.clock, first=interval),
        totals={**manifest.totals, "first": interval},
        # Copies of earlier generations have rows that have left, and are made again.
        boundaries=(),
    )
    intervals = interval - job.clock.first
    notes = {name: left.get(name, 0) for name in LEFT}
    notes[INTERVALS] += intervals
    if job.base or not left:  # else they had left before
        notes[ROWS] += sum(e.rows - tables[n].rows for n, e in manifest.tables.items())
        notes[BYTES] += max(0, _size(manifest) - _size(shorter))
    job.note(f"{amount(intervals, 'interval')} left the run, which begins with {interval} now")
    return replace(shorter, notes={**manifest.notes, **notes})


def _columns_of_carried(job: Job, name: str) -> set[str]:
    """Return the columns of a table for later appends; none of one that stays as it is."""
    return set() if name in (CARRIED, INPUTS) else {*job.source.tables[name].names}


def _size(manifest: Manifest) -> int:
    return sum(file.size for part in manifest.parts for file in part.files or ())
