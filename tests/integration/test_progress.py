"""What is told of Spark's tasks that fail."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from vizpub.ingest.spark.progress import report_failed_tasks

pytestmark = pytest.mark.spark


def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise ValueError("no such thing")
    yield from ()


def test_failed_task_is_told_by_its_cause(spark: SparkSession) -> None:
    """Not by a line of Java's stack, which its message ends with."""
    told: list[str] = []
    ids = spark.range(1, numPartitions=1)
    with pytest.raises(PySparkException), report_failed_tasks(spark, told.append):
        ids.mapInArrow(failing, "id long").collect()
    assert told == ["1 Spark task failed: ValueError: no such thing"]
