"""Stored tables as frames, for what Spark itself does with rows: what earlier ingests kept of each
peer goes to the task of the peer, and GraphFrames measures frames.

While Spark plans, it evaluates what it can of a frame from memory and drops what is empty. It reads
no file for it, and runs no job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from runstore.intact import files_of
from runstore.manifest import Since
from runstore.store import StoredTable

MOST = 4 * 2**20
"""Bytes of a table in memory up to which it is one: its rows are sent with every task."""

_READ = {"parquet.page.verify-checksum.enabled": "true"}


def from_files(
    spark: SparkSession, stored: StoredTable, shape: StructType, since: Since | None = None
) -> DataFrame:
    """The rows of the parts, or such rows of them. Opens only files that may have such rows."""
    parts = (part.reaching(since) if since else part for part in stored.parts)
    files = [_uri(path) for part in parts for path in files_of(stored.directory, part, stored.name)]
    whole = (
        spark.read.schema(shape).options(**_READ).parquet(*files)
        if files
        else from_memory(spark, stored.schema.empty_table(), shape)
    )
    return whole.where(F.col(since.column) >= since.least) if since else whole


def if_little(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table | None:
    """The rows; null as soon as they are too many for a frame from memory."""
    taken, size = [], 0
    for batch in batches:
        taken.append(batch)
        size += batch.nbytes
        if size > MOST:
            return None
    return pa.Table.from_batches(taken, schema)


def from_memory(spark: SparkSession, rows: pa.Table, shape: StructType) -> DataFrame:
    """A frame of one partition with the rows of a table."""
    # Spark 4.3 reads batches only up to the first empty one.
    return spark.createDataFrame(rows.combine_chunks(), shape).coalesce(1)


def _uri(path: Path) -> str:
    """A file URI for Spark's readers, with glob characters escaped."""
    # Hadoop's configuration may say that a path without a scheme is elsewhere.
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path.absolute()))
