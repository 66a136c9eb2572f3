"""Frames from memory, and frames that are computed as one, against what each of them has."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.frames import conform
from ingest import frames
from model.tables import table

pytestmark = pytest.mark.spark

LAYERS = ["B", "a", "é", ""]
SCHEMAS = [
    pa.schema([("name", pa.string()), ("index", pa.int64())]),
    pa.schema([("name", pa.string()), ("frame", pa.int32()), ("0 name", pa.float64())]),
    pa.schema([("peer", pa.int32()), ("topics", pa.list_(pa.struct([("links", pa.int64())])))]),
]


def drawn(rng: random.Random, kind: pa.DataType) -> Any:
    """A value of the type, or null."""
    if rng.random() < 0.2:
        return None
    if pa.types.is_list(kind):
        return [{"links": drawn(rng, pa.int64())} for _ in range(rng.randrange(3))]
    if pa.types.is_string(kind):
        return rng.choice(["", "a", "é\u0000", "0 name"])
    return float(rng.random()) if pa.types.is_floating(kind) else rng.randrange(-(2**31), 2**31)


@pytest.mark.parametrize("seed", range(4))
def test_frames_made_as_one_have_their_own_rows_and_order(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    tables = []
    for schema in rng.choices(SCHEMAS, k=rng.randrange(1, 5)):
        rows = [{f.name: drawn(rng, f.type) for f in schema} for _ in range(rng.choice([0, 1, 9]))]
        tables.append(pa.Table.from_pylist(rows, schema))
    made = [frames.from_memory(spark, of, from_arrow_schema(of.schema)) for of in tables]
    found = list(frames.apart(frames.as_one(made).toArrow()))
    assert [of.to_pylist() for of in found] == [of.to_pylist() for of in tables], f"seed {seed}"
    assert [of.column_names for of in found] == [of.column_names for of in tables], f"seed {seed}"


def test_rows_after_an_empty_batch_are_kept(spark: SparkSession) -> None:
    schema = SCHEMAS[0]
    some = pa.Table.from_pylist([{"name": "a", "index": 1}], schema)
    rows = pa.Table.from_batches([*some.to_batches(), none_of(schema), *some.to_batches()])
    assert len(rows) == 2
    assert frames.from_memory(spark, rows, from_arrow_schema(schema)).count() == 2


def none_of(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)


def test_empty_frame_is_known_to_be_empty_before_a_job(spark: SparkSession) -> None:
    schema = SCHEMAS[0]
    empty = frames.from_memory(spark, schema.empty_table(), from_arrow_schema(schema))
    joined = spark.range(10).selectExpr("id AS index").join(empty, "index")
    assert "LocalTableScan <empty>" in plan_of(joined)


def plan_of(frame: DataFrame) -> str:
    plan: str = frame._jdf.queryExecution().executedPlan().toString()
    return plan


def test_rows_are_read_only_up_to_the_limit() -> None:
    schema = SCHEMAS[0]
    batch = pa.RecordBatch.from_pylist([{"name": "x" * 1000, "index": 1}] * 1000, schema)
    read = []

    def batches() -> Any:
        for number in range(100):
            read.append(number)
            yield batch

    assert frames.if_little(batches(), schema) is None
    assert batch.nbytes * (len(read) - 1) <= frames.MOST < batch.nbytes * len(read)
    assert frames.if_little([batch], schema) == pa.Table.from_batches([batch])


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_memory_are_conformed_and_ordered_as_by_spark(
    spark: SparkSession, seed: int
) -> None:
    rng = random.Random(seed)
    number = pa.int64()
    shape = [("src", number), ("dst", pa.int32()), ("layer", pa.string())]
    shape += [("valid_from", number), ("valid_to", number)]
    if seed:  # else no row has a topic
        shape.append(("topic", number))
    values = [
        (a, b, layer, n, n + 1, rng.choice([None, 0, 1]))
        for n, (a, b, layer) in enumerate(rng.choices([*product(range(3), range(3), LAYERS)], k=40))
    ]
    names = [name for name, _ in shape]
    listed = [dict(zip(names, of, strict=False)) for of in values]
    rows = pa.Table.from_pylist(listed, pa.schema(shape))
    rows = rows.take(rng.sample(range(40), 40))
    meant = table("links")
    frame = frames.from_memory(spark, rows, from_arrow_schema(rows.schema))
    expected = conform(frame, meant).sortWithinPartitions(*meant.key).toArrow()
    found = frames.conformed(rows, meant)
    assert found.schema == meant.arrow
    assert found.to_pylist() == expected.to_pylist(), f"seed {seed}"


def test_null_where_a_value_must_be_known_is_an_error() -> None:
    meant = table("links")
    rows = pa.Table.from_pylist(
        [dict.fromkeys(meant.names)], pa.schema([(f.name, f.type) for f in meant.arrow])
    )
    with pytest.raises(ValueError, match="null"):
        frames.conformed(rows, meant)
