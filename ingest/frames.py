"""Tables as frames, and back: tables on disk, and those in memory that the stages of a small run
hand on.

While Spark plans, it evaluates what it can of a frame from memory and drops what is empty. It reads
no file for it, and runs no job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from model.columns import Table
from runstore.intact import files_of
from runstore.manifest import Since
from runstore.store import StoredTable

MOST = 4 * 2**20
"""Bytes of a table in memory up to which it is one: its rows are sent with every task."""

_FRAME = "frame"

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


def is_little(rows: pa.Table) -> bool:
    """Whether a table may be a frame from memory."""
    return int(rows.nbytes) <= MOST


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


def as_one(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames, in order: `frame`, its place, and the columns of each of them."""
    columns = [(place, name) for place, frame in enumerate(frames) for name in frame.columns]
    parts = [
        frame.selectExpr(
            f"{here} AS {_FRAME}",
            *(
                f"`{name}` AS `{place} {name}`" if place == here else f"NULL AS `{place} {name}`"
                for place, name in columns
            ),
        )
        for here, frame in enumerate(frames)
    ]
    return reduce(DataFrame.union, parts)


def apart(rows: pa.Table) -> Iterator[pa.Table]:
    """The tables of frames that are one."""
    columns = [name.split(" ", 1) for name in rows.column_names if name != _FRAME]
    for place, of_frame in groupby(columns, itemgetter(0)):
        names = [name for _, name in of_frame]
        own = rows.filter(pc.field(_FRAME) == int(place))
        yield own.select([f"{place} {name}" for name in names]).rename_columns(names)


def conformed(rows: pa.Table, meant: Table) -> pa.Table:
    """As analytics.frames.conform, and in the order of the key."""
    columns = [
        rows[of.name] if of.name in rows.column_names else pa.nulls(len(rows), of.type)
        for of in meant.arrow
    ]
    whole = pa.table(columns, names=meant.names).cast(meant.arrow)
    keys = [(name, "ascending", "at_start") for name in meant.key]
    return whole.take(pc.sort_indices(whole, keys))


def _uri(path: Path) -> str:
    """A file URI for Spark's readers, with glob characters escaped."""
    # Hadoop's configuration may say that a path without a scheme is elsewhere.
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path.absolute()))
