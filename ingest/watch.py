"""How far Spark is with what it was told to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql import SparkSession

from model.progress import Progress

_EVERY = 0.5
"""Seconds between two looks."""


@contextmanager
def watching(spark: SparkSession, step: str, progress: Progress) -> Iterator[None]:
    """For the length of the block, tell how many Spark tasks are done of those begun so far.

    A task of the structure stage is a block of intervals.
    """
    over = Event()
    tracker = spark.sparkContext.statusTracker()
    watcher = Thread(target=_watch, args=(tracker, step, progress, over), daemon=True)
    progress(step, 0, 0)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    progress(step, 1, 1)


def _watch(tracker: StatusTracker, step: str, progress: Progress, over: Event) -> None:
    tasks: dict[int, tuple[int, int]] = {}
    with suppress(Py4JError, ConnectionError):  # where Java ends, whoever waits for it tells so
        while not over.wait(_EVERY):
            for stage in [*_active_stages(tracker), *tasks]:
                if info := tracker.getStageInfo(stage):
                    tasks[stage] = (info.numCompletedTasks, info.numTasks)
            if tasks:
                done, total = map(sum, zip(*tasks.values(), strict=True))
                progress(step, done, total)


def _active_stages(tracker: StatusTracker) -> list[int]:
    jobs = (tracker.getJobInfo(job) for job in tracker.getActiveJobsIds())
    # A stage that never begins is one whose result is there already.
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return [stage.stageId for stage in stages if stage and stage.numActiveTasks]
