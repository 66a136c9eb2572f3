"""Stored tables as frames of Spark equal what pyarrow reads of their files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from vizpub.ingest.tasks import frames
from vizpub.runstore.manifest import Part, Since
from vizpub.runstore.store import StoredTable

pytestmark = pytest.mark.spark

ROWS = pa.table({"name": ["a", None, "ü"], "index": pa.array([1, 5, 9], pa.int64())})


def stored(folder: Path, *parts: str) -> StoredTable:
    for part in parts:
        (folder / part).mkdir(parents=True)
        pq.write_table(ROWS, folder / part / "rows.parquet")
    return StoredTable(folder, "table", tuple(Part(part, 3) for part in parts), ROWS.schema)


def test_frame_has_the_rows_of_all_parts(spark: SparkSession, tmp_path: Path) -> None:
    table = stored(tmp_path / "data[1]*{a}", "one", "two ?")
    rows = frames.frame_of_files(spark, table, Since("index", 5)).orderBy("index").collect()
    assert [tuple(row) for row in rows] == [(None, 5), (None, 5), ("ü", 9), ("ü", 9)]
    assert frames.frame_of_files(spark, table).count() == 6


def test_frame_of_no_part_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    frame = frames.frame_of_files(spark, stored(tmp_path))
    assert frame.columns == ["name", "index"]
    assert frame.count() == 0


def test_application_has_our_name(spark: SparkSession) -> None:
    assert spark.sparkContext.appName == "vizpub"
