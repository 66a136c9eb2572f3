"""What an ingest reads: files opened, rows read by Spark, jobs of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from vizpub.runstore import integrity
from vizpub.runstore.store import StoredTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Read:
    """What a call read."""

    files: int
    """Files of runs that were opened, by Spark or by pyarrow."""
    rows: int
    """Rows that Spark's tasks read from files, as Spark counts them, and rows that were scanned
    without Spark."""
    jobs: int
    """Jobs of Spark."""


def counted(spark: SparkSession, call: Callable[[], object]) -> Read:
    """What the call reads."""
    opened = scanned = 0
    check = integrity._check_open  # every file passes it
    scan = StoredTable.scan

    def counting(*of: Any, **how: Any) -> None:
        nonlocal opened
        opened += 1
        check(*of, **how)

    def scanning(*of: Any, **how: Any) -> Iterator[pa.RecordBatch]:
        nonlocal scanned
        for batch in scan(*of, **how):
            scanned += len(batch)
            yield batch

    context = spark.sparkContext._jsc.sc()
    stages, jobs = context.dagScheduler().nextStageId, context.dagScheduler().numTotalJobs
    stage, job = _next(stages), jobs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integrity, "_check_open", counting)
        patch.setattr(StoredTable, "scan", scanning)
        call()
    spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
    rows = sum(_rows(context.statusStore(), number) for number in range(stage, _next(stages)))
    return Read(opened, rows + scanned, jobs() - job)


def _next(numbers: Callable[[], Any]) -> int:
    return int(numbers())


def _rows(store: Any, stage: int) -> int:
    try:
        return int(store.lastStageAttempt(stage).inputRecords())
    except Py4JJavaError:  # a stage that was not needed
        return 0
