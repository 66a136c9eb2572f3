"""Time that an ingest spends, from the start of the program to its end.

Wall time is divided into consecutive parts that add up to the total. Spark runs jobs inside a
part; the rest of a part is query planning, Python and commits. What the tasks of the jobs do is
divided by step (vizpub.analytics.step_profile).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import psutil
from py4j.protocol import Py4JError
from pyspark.accumulators import AccumulatorParam

from vizpub.analytics.step_profile import StepUse, StepUses
from vizpub.ingest.spark.progress import jobs_since
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class AccountPart:
    """A consecutive part of an ingest; times are seconds since the program started."""

    name: str
    begin: float
    end: float
    used: ResourceUse | None = None


class ResourceUse(NamedTuple):
    """Processor time and memory of this process, Java and its child processes."""

    seconds: float
    """Processor seconds so far."""
    resident: int
    """Resident bytes now; pages that processes share count once for each."""

    @classmethod
    def measure(cls, java: psutil.Process) -> Self:
        """Measure the current use."""
        seconds, resident = 0.0, 0
        for process in (psutil.Process(), java, *java.children(recursive=True)):
            with suppress(psutil.Error):  # a worker may end meanwhile
                times = process.cpu_times()
                seconds += times.user + times.system + times.children_user + times.children_system
                resident += process.memory_info().rss
        return cls(seconds, resident)


@dataclass(frozen=True)
class SparkJob:
    """A Spark job: its description, when it ran, and how many tasks completed."""

    name: str
    begin: float
    end: float
    tasks: int


class _Sums(AccumulatorParam[StepUses]):
    """Adds up what steps used in tasks."""

    def zero(self, value: StepUses) -> StepUses:
        del value
        return {}

    def addInPlace(self, value1: StepUses, value2: StepUses) -> StepUses:
        for step, use in value2.items():
            value1.setdefault(step, StepUse()).add(use)
        return value1


@dataclass
class Account:
    """Time that an ingest spends, by part and by Spark job; filled while it runs."""

    parts: list[AccountPart] = field(default_factory=list)
    jobs: list[SparkJob] = field(default_factory=list)
    called: float = field(default_factory=lambda: float(psutil.Process().create_time()))
    java: psutil.Process | None = None
    """The JVM; while it is set, parts record their resource use."""
    steps: StepUses = field(default_factory=dict)
    """What steps used in all tasks together; filled at the end."""
    report: Callable[[StepUses], None] | None = None
    """What tasks call with what their steps used; null = they are not profiled."""

    def _now(self) -> float:
        now: float = time.time()
        return now - self.called

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Record the block as a part."""
        begin, use_at_begin = self._now(), self._measure_use()
        if not self.parts:
            self.parts.append(AccountPart("start of Python", 0.0, begin))
        try:
            yield
        finally:
            end, use_at_end = self._now(), self._measure_use()
            used = (
                ResourceUse(use_at_end.seconds - use_at_begin.seconds, use_at_end.resident)
                if use_at_begin and use_at_end
                else None
            )
            self.parts.append(AccountPart(name, begin, end, used))

    def _measure_use(self) -> ResourceUse | None:
        return ResourceUse.measure(self.java) if self.java else None

    @contextmanager
    def watch_jobs(self, spark: SparkSession, *, closely: bool) -> Iterator[None]:
        """Record the Spark jobs of the block; if `closely`, also the resource use of its parts and
        steps.
        """
        context = spark.sparkContext._jsc.sc()
        if closely and spark._jvm:
            self.java = psutil.Process(spark._jvm.java.lang.ProcessHandle.current().pid())
            sums = spark.sparkContext.accumulator(self.steps, _Sums())
            self.report = sums.add
        first = context.dagScheduler().numTotalJobs()
        try:
            yield
        finally:
            self.java = self.report = None
            # A signal may have stopped Spark: report what ended the block, not this.
            with suppress(Py4JError, ConnectionError):
                if store := context.statusStore():  # null where Spark has ended
                    self.jobs += map(self._spark_job, jobs_since(store, first))

    def _spark_job(self, job: Any) -> SparkJob:
        def seconds(moment: Any) -> float:
            # A job that was stopped has no end.
            return moment.get().getTime() / 1000 - self.called if moment.isDefined() else 0.0

        description = job.description()
        name = description.get() if description.isDefined() else job.name()
        begin, end = seconds(job.submissionTime()), seconds(job.completionTime())
        return SparkJob(name, begin, end, job.numCompletedTasks())

    @property
    def seconds(self) -> float:
        """Seconds from the start of the program to the end of the last part."""
        return max((part.end for part in self.parts), default=0.0)

    def seconds_in_jobs(self, begin: float = 0.0, end: float = float("inf")) -> float:
        """Seconds between `begin` and `end` in which at least one job ran."""
        total, reached = 0.0, begin
        for job in sorted(self.jobs, key=lambda job: job.begin):
            total += max(0.0, min(job.end, end) - max(job.begin, reached))
            reached = max(reached, job.end)
        return total

    def longest_jobs(self, count: int) -> list[SparkJob]:
        """The `count` longest jobs, the longest first."""
        return sorted(self.jobs, key=lambda job: job.begin - job.end)[:count]

    def summary_line(self) -> str:
        """Return the account in one line: `21.3 s: start of Python 1.2, …, 9 jobs of Spark 9.8,
        …`.
        """
        ours = [part for part in self.parts if part.name not in _AROUND]
        jobs = self.seconds_in_jobs()
        seconds_of = {
            part.name: part.end - part.begin for part in self.parts if part.name in _AROUND
        }
        seconds_of[f"{amount(len(self.jobs), 'job')} of Spark"] = jobs
        seconds_of["plans, Python, commits"] = sum(part.end - part.begin for part in ours) - jobs
        words = ", ".join(f"{name} {seconds:.1f}" for name, seconds in seconds_of.items())
        return f"{self.seconds:.1f} s: {words}"

    def part_lines(self) -> Iterator[tuple[AccountPart, float, int]]:
        """Yield each part, the seconds in which Spark ran a job in it, and the tasks that ended in
        it.
        """
        for part in self.parts:
            tasks = sum(job.tasks for job in self.jobs if part.begin < job.end <= part.end)
            yield part, self.seconds_in_jobs(part.begin, part.end), tasks


START, END = "start of Spark", "end of Spark"
_AROUND = ("start of Python", "look at the input", START, END)
