"""What steps use inside tasks: time, processor time, rows and memory.

`profile_task` profiles a task. Steps take rows from each other batch by batch, so those at work are
a stack, and what the process of the task uses meanwhile belongs to the step on top. Processor time
is that of all its threads: DuckDB works in the thread of the task (vizpub.analytics.steps), but
Arrow reads files in others, maybe ahead of the step that takes the rows.

Nothing is done for single rows, and nothing at all in a task that is not profiled.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

OTHER = "(other)"
"""Work of no step: waiting for Spark, opening files, and counting for the profile."""

_T = TypeVar("_T")
_FORGET_PEAK = b"5"


@dataclass
class StepUse:
    """What a step used, in one task or in several together."""

    tasks: int = 0
    seconds: float = 0.0
    """Wall time, without that of steps from which it took rows meanwhile."""
    processor_seconds: float = 0.0
    rows_in: int = 0
    """Rows of the tables that it takes, each table once in a task."""
    rows_out: int = 0
    """Rows of the tables that it makes."""
    peak: int | None = None
    """The most resident bytes of a task's process; null where the system does not say."""

    def add(self, other: StepUse) -> None:
        """Add what the step used in other tasks."""
        self.tasks += other.tasks
        self.seconds += other.seconds
        self.processor_seconds += other.processor_seconds
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.peak = max(filter(None, (self.peak, other.peak)), default=None)


StepUses = dict[str, StepUse]
"""By the name of the step."""
TaskWork = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task makes of batches from Spark."""


class _TaskProfile:
    """The profile of the task that this process does."""

    def __init__(self) -> None:
        self.uses: StepUses = {}
        self.table_rows: dict[str, Mapping[str, int]] = {}
        """For each table of the task, the rows of the tables that it is read from: of itself, or
        of those that a query takes which is only a part of the next one."""
        self._stack = [OTHER]
        _take_peak()
        self._moment = time.perf_counter(), time.process_time()

    def use_of(self, step: str) -> StepUse:
        return self.uses.setdefault(step, StepUse(tasks=1))

    def rows_of(self, tables: Iterable[str]) -> dict[str, int]:
        return dict(chain.from_iterable(self.table_rows.get(t, {}).items() for t in tables))

    def push(self, step: str) -> None:
        self.book()
        self._stack.append(step)

    def pop(self) -> None:
        self.book()
        self._stack.pop()

    def book(self) -> None:
        """Book what the process used since the last call on the step on top."""
        (seconds, processor), use = self._moment, self.use_of(self._stack[-1])
        now = self._moment = time.perf_counter(), time.process_time()
        use.add(StepUse(0, now[0] - seconds, now[1] - processor, peak=_take_peak()))


_PROFILES: list[_TaskProfile] = []
"""That of the task that this process does, if it is profiled."""


def profile_task(
    batches: Iterable[pa.RecordBatch],
    work: TaskWork,
    report: Callable[[StepUses], None] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield what the work of a task makes of batches from Spark, then `report` what its steps used;
    null = without a profile.
    """
    if report is None:
        yield from work(batches)
        return
    profile = _TaskProfile()
    _PROFILES.append(profile)
    try:
        yield from work(follow(OTHER, batches, makes=False))
        profile.book()
        report(profile.uses)
    finally:
        _PROFILES.remove(profile)


@contextmanager
def at_work(step: str) -> Iterator[None]:
    """Book the block on a step."""
    for profile in _PROFILES:
        profile.push(step)
    try:
        yield
    finally:
        for profile in _PROFILES:
            profile.pop()


def follow(
    step: str, batches: Iterable[_T], *, makes: bool = True, taker: str | None = None
) -> Iterable[_T]:
    """Book the making of batches, or of pairs of a table and its batch, on a step. Their rows are
    those that it makes, unless not `makes`, and those that the `taker` takes.
    """
    return _follow(step, iter(batches), makes, taker) if _PROFILES else batches


def _follow(step: str, batches: Iterator[_T], makes: bool, taker: str | None) -> Iterator[_T]:
    while True:
        with at_work(step):
            batch = next(batches, None)
        if batch is None:
            return
        rows = len(batch[-1] if isinstance(batch, tuple) else batch)  # type: ignore[arg-type]
        count_rows(step, 0, rows if makes else 0)
        count_rows(taker or step, rows if taker else 0, 0)
        yield batch


def give_table(name: str, parts: Sequence[Any]) -> None:
    """Note the rows of a table: those of Arrow tables and datasets."""
    for profile in _PROFILES:
        with at_work(OTHER):
            rows = sum(len(p) if isinstance(p, pa.Table) else p.count_rows() for p in parts)
        profile.table_rows[name] = {name: rows}


def give_query(name: str, takes: Iterable[str]) -> None:
    """Note a query that is only done as a part of the next one."""
    for profile in _PROFILES:
        profile.table_rows[name] = profile.rows_of(takes)


def count_table(step: str, takes: Iterable[str], makes: str, rows: int) -> None:
    """Count the rows that a step takes from tables of the task, and those of the table it makes."""
    for profile in _PROFILES:
        count_rows(step, sum(profile.rows_of(takes).values()), rows)
        profile.table_rows[makes] = {makes: rows}


def count_rows(step: str, rows_in: int, rows_out: int) -> None:
    """Count rows that a step takes and makes."""
    for profile in _PROFILES:
        use = profile.use_of(step)
        use.rows_in += rows_in
        use.rows_out += rows_out


def _take_peak() -> int | None:
    """Return the most resident bytes since the last call; null where the system does not say."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with open("/proc/self/clear_refs", "wb", buffering=0) as file:
            file.write(_FORGET_PEAK)
    except OSError:
        return None
    return peak * 1024
