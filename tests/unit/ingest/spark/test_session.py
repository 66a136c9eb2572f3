from __future__ import annotations

import os
from errno import EDQUOT, ENOSPC
from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf
from pyspark.errors import PySparkException

from tests.support.faults import java_gone
from tests.support.words import naming, tells
from vizpub.ingest.spark.session import (
    JAVA_GONE,
    _default_settings,
    _jvm_settings,
    vizpub_errors,
    why_failed,
)
from vizpub.model.errors import DiskFull, SparkFailed, UseError

UNANSWERED = """An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.
: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.
This stopped SparkContext was created at:

java.base/java.lang.Thread.run(Thread.java:840)
"""
OF_JAVA = """An error occurred while calling o42.parquet.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.Some.method(Some.scala:1)
{cause}\t... 24 more
"""


def told(error: Exception) -> str:
    with pytest.raises(SparkFailed) as caught, vizpub_errors(Path("there")):
        raise error
    return caught.value.cause


@pytest.mark.parametrize("memory", ["8", "much", "-1g", "0g", "8g -Dx=1"])
def test_memory_that_is_no_size_is_refused_before_java_starts(
    monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    monkeypatch.setenv("VIZPUB_SPARK_MEMORY", memory)
    with pytest.raises(UseError, match=naming("VIZPUB_SPARK_MEMORY", memory)):
        _jvm_settings(quick=True)


@pytest.mark.parametrize("name", ["plain", "with, comma"])
def test_scratch_of_spark_is_named_without_a_comma(tmp_path: Path, name: str) -> None:
    """Spark takes what a comma parts for several folders, and makes each of them."""
    own = tmp_path / name
    own.mkdir()
    settings = _default_settings(SparkConf(loadDefaults=False).setMaster("local[1]"), own)
    folder = settings["spark.local.dir"]
    assert "," not in folder
    (Path(folder) / "block").touch()
    assert (own / "block").exists()


def test_stopped_spark_context_is_told_as_a_silent_master() -> None:
    assert told(Py4JError(UNANSWERED)).startswith("its master does not answer")


def test_last_java_cause_is_told() -> None:
    cause = "Caused by: java.io.IOException: first\nCaused by: java.io.IOException: second\n"
    assert told(Py4JError(OF_JAVA.format(cause=cause))) == "java.io.IOException: second"


def test_java_failure_without_a_cause_is_told_itself() -> None:
    assert told(Py4JError(OF_JAVA.format(cause=""))).endswith("SparkException: Job aborted.")


def test_python_error_of_a_task_is_the_told_cause() -> None:
    assert told(PySparkException("Traceback …\n  File x\nValueError: no")) == "ValueError: no"


OF_A_TASK = """java.lang.IllegalStateException: no room
\tat org.apache.spark.Some.method(Some.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
OF_PYTHON = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
ValueError: no
more of it

\tat org.apache.spark.api.python.Some.method(Some.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


def test_task_that_failed_in_java_tells_its_message_and_no_line_of_the_stack() -> None:
    assert why_failed(OF_A_TASK) == "java.lang.IllegalStateException: no room"


@pytest.mark.parametrize("text", [OF_PYTHON, OF_JAVA.format(cause=f"Caused by: {OF_PYTHON}")])
def test_task_that_failed_in_python_tells_the_end_of_the_traceback(text: str) -> None:
    assert why_failed(text) == "ValueError: no"


OF_WORKERS = [
    "Python worker exited unexpectedly (crashed)",
    "EOFException occurred while reading the port number from vizpub.ingest.spark.worker_daemon's "
    "stdout and terminated with code: 137.",
]


@pytest.mark.parametrize("text", OF_WORKERS)
def test_worker_that_is_killed_is_told_as_its_end(text: str) -> None:
    told = why_failed(f"org.apache.spark.SparkException: {text}.\n\tat org.apache.spark.Some(Some)")
    tells(told, "Python worker has ended")


def test_call_of_java_that_is_gone_is_told_as_its_end() -> None:
    with (
        pytest.raises(SparkFailed, match=JAVA_GONE),
        vizpub_errors(Path("there")),
    ):
        java_gone().parquet()


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("[Errno 104] Connection reset by peer"),
        BrokenPipeError("[Errno 32] Broken pipe"),
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o42.parquet"),
        Py4JError("java does not exist in the JVM"),
        Py4JError("org.apache does not exist in the JVM"),
    ],
)
def test_answer_that_breaks_off_is_told_as_the_end_of_java(error: Exception) -> None:
    assert told(error).startswith(JAVA_GONE)


def test_interrupt_is_told_even_where_java_fails_behind_it() -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            java_gone().jobsList()

    with pytest.raises(KeyboardInterrupt), vizpub_errors(Path("there")):
        interrupted()


@pytest.mark.parametrize("number", [ENOSPC, EDQUOT])
def test_full_disk_error_is_told_as_disk_full(number: int) -> None:
    with pytest.raises(DiskFull), vizpub_errors(Path("there")):
        raise Py4JError(f"Caused by: java.io.IOException: {os.strerror(number)}")
