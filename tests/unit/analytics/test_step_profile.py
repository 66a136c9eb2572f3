"""What steps of a task use, by a clock that moves only where the test says so."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from vizpub.analytics import step_profile
from vizpub.analytics.step_profile import OTHER, StepUse, StepUses, at_work, follow, profile_task
from vizpub.analytics.steps import Step, TaskContext, compute_tables
from vizpub.model.columns import Table, always

Batches = Iterable[pa.RecordBatch]
NUMBERS = Table("numbers", "number", (always("n", "int64", "itself"),), ("n",))
CONTEXT = TaskContext(0, 0, 1, frozenset(), 0, 0)


@dataclass
class Clock:
    """Wall and processor time, which runs at half the speed."""

    now: float = 0.0

    def pass_time(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(step_profile.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(step_profile.time, "process_time", lambda: clock.now / 2)
    return clock


def rows(number: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(number), pa.int64())})


def uses_of(work: step_profile.TaskWork, batches: Batches = ()) -> StepUses:
    """What the steps of the task used."""
    reported = list[StepUses]()
    for _ in profile_task(batches, work, reported.append):
        pass
    (uses,) = reported
    return uses


def test_time_belongs_to_the_step_that_works_meanwhile(clock: Clock) -> None:
    def read(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            clock.pass_time(10)
            yield batch

    def fold(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            clock.pass_time(3)
            with at_work("text"):
                clock.pass_time(200)
            yield batch

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        read_rows = follow("read", read(batches), taker="fold")
        for batch in follow("fold", fold(read_rows)):
            clock.pass_time(1000)
            yield batch

    def receive() -> Iterator[pa.RecordBatch]:
        for number in (2, 5):
            clock.pass_time(30_000)
            yield rows(number)

    uses = uses_of(task, receive())
    assert {name: use.seconds for name, use in uses.items()} == {
        "read": 20,
        "fold": 6,
        "text": 400,
        OTHER: 62_000,
    }
    assert all(use.processor_seconds == use.seconds / 2 for use in uses.values())
    assert sum(use.seconds for use in uses.values()) == clock.now
    assert [(use.rows_in, use.rows_out) for use in (uses["read"], uses["fold"])] == [(0, 7), (7, 7)]


def test_query_that_is_part_of_another_passes_on_the_rows_of_its_tables() -> None:
    chosen = [
        Step("odd", "SELECT n FROM given WHERE n % 2 = 1", "odd", whole=("given",)),
        Step("both", "FROM odd UNION ALL FROM given", "numbers", whole=("odd", "given", "few")),
    ]
    tables = {"given": [pa.table(rows(10))], "few": [pa.table(rows(3)), pa.table(rows(1))]}

    def task(_: Batches) -> Iterator[pa.RecordBatch]:
        return (batch for _, batch in compute_tables(chosen, tables, [NUMBERS], CONTEXT))

    uses = uses_of(task)
    assert {*uses} == {OTHER, "both"}
    assert (uses["both"].rows_in, uses["both"].rows_out) == (10 + 3 + 1, 5 + 10)


def test_function_takes_what_a_query_makes() -> None:
    def twice(taken: pa.Table, _: TaskContext) -> pa.Table:
        return pa.concat_tables([taken, taken])

    chosen = [
        Step("odd", "SELECT n FROM given WHERE n % 2 = 1", "odd", whole=("given",)),
        Step("twice", "", "two", whole=("odd",), function=twice),
        Step("out", "FROM two", "numbers", whole=("two",)),
    ]

    def task(_: Batches) -> Iterator[pa.RecordBatch]:
        given = {"given": [pa.table(rows(10))]}
        return (batch for _, batch in compute_tables(chosen, given, [NUMBERS], CONTEXT))

    uses = uses_of(task)
    counts = {name: (use.rows_in, use.rows_out) for name, use in uses.items() if name != OTHER}
    assert counts == {"odd": (10, 5), "twice": (5, 10), "out": (10, 10)}


def test_failed_task_reports_nothing_and_leaves_nothing() -> None:
    def fail(_: Batches) -> Iterator[pa.RecordBatch]:
        with at_work("step"):
            raise ValueError("broken")
        yield

    with pytest.raises(ValueError, match="broken"):
        uses_of(fail)
    assert {*uses_of(lambda _: iter(()))} == {OTHER}


def test_rows_of_a_task_without_a_profile_pass_as_they_are() -> None:
    given = [rows(1)]
    assert follow("step", given) is given
    assert [*profile_task(given, iter, None)] == given


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_peak_is_that_of_the_step() -> None:
    size = 200 * 2**20

    def task(_: Batches) -> Iterator[pa.RecordBatch]:
        with at_work("much"):
            bytearray(size)
        with at_work("little"):
            bytearray(1)
        return iter(())

    uses = uses_of(task)
    assert uses["much"].peak
    assert uses["little"].peak
    assert uses["much"].peak - uses["little"].peak > size / 2


def test_uses_of_tasks_add_up() -> None:
    total = StepUse()
    for peak in (None, 7, 5):
        total.add(StepUse(1, 0.5, 0.25, 3, 4, peak))
    assert total == StepUse(3, 1.5, 0.75, 9, 12, 7)
