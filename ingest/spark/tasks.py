"""Run a function in Spark tasks: one task per item."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from vizpub.ingest.spark.progress import watch_progress
from vizpub.ingest.spark.session import spark_session, vizpub_errors
from vizpub.model.errors import VizpubError
from vizpub.model.progress import Progress, silent

_T = TypeVar("_T")
_R = TypeVar("_R")


def run_in_tasks(
    function: Callable[[_T], _R],
    items: Sequence[_T],
    *,
    step: str,
    scratch: Path,
    master: str | None = None,
    progress: Progress = silent,
) -> list[_R]:
    """Return `[function(item) for item in items]`, with each call in a task of its own.

    Arguments and results must be small and picklable; large results go to files. Tasks work in
    the folder of this process, where an executor has it.
    `step` names the work in the progress; `scratch` holds Spark's temporary files.

    Raises: JavaMissing, SparkFailed; the first VizpubError of a call, after all calls.
    """
    with vizpub_errors(scratch), spark_session(scratch, master=master, quick=True) as spark:
        tasks = spark.sparkContext.parallelize(items, len(items))
        with watch_progress(spark, step, progress):
            outcomes = tasks.map(partial(_call_or_error, function, Path.cwd())).collect()
    if errors := [outcome for outcome in outcomes if isinstance(outcome, VizpubError)]:
        raise errors[0]
    return [outcome for outcome in outcomes if not isinstance(outcome, VizpubError)]


def _call_or_error(function: Callable[[_T], _R], folder: Path, item: _T) -> _R | VizpubError:
    """Return the result of a call, or its VizpubError, which Spark must not retry.

    Items may name files by relative paths, and a kept session was started in another folder.
    """
    with suppress(OSError):  # another machine may not have it
        os.chdir(folder)
    try:
        return function(item)
    except VizpubError as error:
        return error
