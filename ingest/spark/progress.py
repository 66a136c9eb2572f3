"""Progress of Spark's work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from threading import Event, Thread
from typing import Any

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql import SparkSession

from vizpub.ingest.spark.session import why_failed
from vizpub.model.progress import Progress

_EVERY = 0.5
"""Seconds between two polls."""
_MOST_TASKS = 1000
"""Most tasks of a stage that are inspected for failures."""


@contextmanager
def watch_progress(spark: SparkSession, step: str, progress: Progress) -> Iterator[None]:
    """Report during the block how many tasks of the Spark stages begun so far are done.

    A task of the structure stage is a block of intervals.
    """
    over = Event()
    tracker = spark.sparkContext.statusTracker()
    watcher = Thread(target=_poll_progress, args=(tracker, step, progress, over), daemon=True)
    progress(step, 0, 0)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    progress(step, 1, 1)


@contextmanager
def report_failed_tasks(spark: SparkSession, report: Callable[[str], None]) -> Iterator[None]:
    """Report after the block which Spark tasks failed in it, and why. If the block succeeded, they
    were restarted.
    """
    context = spark.sparkContext._jsc.sc()
    first = context.dagScheduler().numTotalJobs()
    again = ""
    try:
        yield
        again = " and {} restarted"
    finally:
        with suppress(Py4JError, ConnectionError):  # as in _watch
            for why, count in _count_failures(context.statusStore(), first).items():
                noun, verb = ("Spark task", "was") if count == 1 else ("Spark tasks", "were")
                report(f"{count} {noun} failed{again.format(verb)}: {why}")


def _count_failures(store: Any, first: int) -> Counter[str]:
    """Count the failed tasks of jobs from number `first` on, by reason."""
    failures: Counter[str] = Counter()
    stages = {
        stage
        for job in jobs_since(store, first)
        if job.numFailedTasks()
        for stage in _scala_items(job.stageIds())
    }
    for stage in sorted(stages):
        for task in _scala_items(store.taskList(stage, 0, _MOST_TASKS)):
            if task.status() == "FAILED" and task.errorMessage().isDefined():
                failures[why_failed(task.errorMessage().get())] += 1
    return failures


def jobs_since(store: Any, first: int) -> Iterator[Any]:
    """Yield the jobs in Spark's status store from number `first` on, the newest first.

    The store lists the newest first, and a session that stays has hundreds: no others are read.
    """
    return takewhile(lambda job: job.jobId() >= first, _scala_items(store.jobsList(None)))


def _scala_items(sequence: Any) -> Iterator[Any]:
    """Yield the items of a Scala sequence."""
    return (sequence.apply(place) for place in range(sequence.size()))


def _poll_progress(tracker: StatusTracker, step: str, progress: Progress, over: Event) -> None:
    tasks: dict[int, tuple[int, int]] = {}
    with suppress(Py4JError, ConnectionError):  # the waiting thread reports the end of Java
        while not over.wait(_EVERY):
            jobs = (tracker.getJobInfo(job) for job in tracker.getActiveJobsIds())
            # A stage that never starts has its result already.
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            active = [stage.stageId for stage in stages if stage and stage.numActiveTasks]
            for stage in [*active, *tasks]:
                if info := tracker.getStageInfo(stage):
                    tasks[stage] = (info.numCompletedTasks, info.numTasks)
            if tasks:
                done, total = map(sum, zip(*tasks.values(), strict=True))
                progress(step, done, total)
