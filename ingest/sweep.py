"""Spread a function over Spark's tasks: one task for each thing it is to be done for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ingest.session import failures_told, spark_session
from ingest.watch import watching
from model.progress import Progress, silent

T = TypeVar("T")
R = TypeVar("R")


def spread(
    function: Callable[[T], R],
    given: Sequence[T],
    *,
    step: str,
    scratch: Path,
    master: str | None = None,
    progress: Progress = silent,
) -> list[R]:
    """`[function(item) for item in given]`, each call in a task of its own.

    What the function takes and gives must survive pickling and be small; what is large it
    writes to files. `step` names the work in the progress; `scratch` holds Spark's temporary
    files. Raises: JavaMissing, SparkFailed.
    """
    with failures_told(scratch), spark_session(scratch, master=master, quick=True) as spark:
        tasks = spark.sparkContext.parallelize(given, len(given))
        with watching(spark, step, progress):
            return tasks.map(function).collect()
