"""How far Spark is, where it is no more."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from pyspark import StatusTracker

from tests.support.faults import java_gone
from vizpub.ingest.spark.progress import watch_progress


def test_watcher_ends_with_java() -> None:
    """And leaves it to others to tell: what a thread raises would fail the test."""
    tracker: Any = StatusTracker(java_gone())
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    before, told = set(threading.enumerate()), list[tuple[str, int, int]]()
    with watch_progress(spark, "step", lambda *seen: told.append(seen)):
        (watcher,) = set(threading.enumerate()) - before
        watcher.join()
    assert told == [("step", 0, 0), ("step", 1, 1)]
