"""Frames from memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ingest import frames

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("name", pa.string()), ("index", pa.int64())])


def test_rows_after_an_empty_batch_are_kept(spark: SparkSession) -> None:
    schema = SCHEMA
    some = pa.Table.from_pylist([{"name": "a", "index": 1}], schema)
    rows = pa.Table.from_batches([*some.to_batches(), none_of(schema), *some.to_batches()])
    assert len(rows) == 2
    assert frames.from_memory(spark, rows, from_arrow_schema(schema)).count() == 2


def none_of(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)


def test_empty_frame_is_known_to_be_empty_before_a_job(spark: SparkSession) -> None:
    schema = SCHEMA
    empty = frames.from_memory(spark, schema.empty_table(), from_arrow_schema(schema))
    joined = spark.range(10).selectExpr("id AS index").join(empty, "index")
    assert "LocalTableScan <empty>" in plan_of(joined)


def plan_of(frame: DataFrame) -> str:
    plan: str = frame._jdf.queryExecution().executedPlan().toString()
    return plan


def test_rows_are_read_only_up_to_the_limit() -> None:
    schema = SCHEMA
    batch = pa.RecordBatch.from_pylist([{"name": "x" * 1000, "index": 1}] * 1000, schema)
    read = []

    def batches() -> Any:
        for number in range(100):
            read.append(number)
            yield batch

    assert frames.if_little(batches(), schema) is None
    assert batch.nbytes * (len(read) - 1) <= frames.MOST < batch.nbytes * len(read)
    assert frames.if_little([batch], schema) == pa.Table.from_batches([batch])
