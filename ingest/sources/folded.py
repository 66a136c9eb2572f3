"""What sources have in common: the tables that their folds make, and the rows that these get."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ingest.files import InputFile
from ingest.fold import NAMES
from ingest.reader import RECORDS, Kind, Read, in_tasks
from ingest.sources.base import Source, SourceOptions, Tallies
from model.tables import QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CARRIED = "records"
"""The table of what a later record of a peer goes on from: peer, interval, record."""

_SPAN = [("valid_from", pa.int64()), ("valid_to", pa.int64())]
_AT = [("time_us", pa.int64()), ("interval", pa.int32()), ("tick", pa.int64())]


def _names(*columns: str) -> list[tuple[str, pa.DataType]]:
    return [(column, pa.string()) for column in columns]


OBSERVED: Mapping[str, pa.Schema] = {
    "presence": pa.schema([*_names("peer"), *_SPAN]),
    "links": pa.schema([*_names("src", "dst", "layer", "topic"), *_SPAN]),
    "subscriptions": pa.schema([*_names("peer", "topic"), *_SPAN]),
    "roles": pa.schema([*_names("peer", "role", "topic"), *_SPAN]),
    "publications": pa.schema(
        [*_names("message", "topic", "publisher"), ("interval", pa.int32()), *_AT[::2]]
    ),
    "receptions": pa.schema(
        [
            *_names("message", "topic", "publisher", "peer", "previous_hop"),
            *_AT,
            *(("arrival", pa.int64()), ("first", pa.bool_()), ("hop", pa.int32())),
            ("subscribed", pa.bool_()),
        ]
    ),
    "rejections": pa.schema(
        [*_names("message", "topic", "peer", "previous_hop"), *_AT, *_names("reason")]
    ),
    "names": NAMES,
    "quarantine": QUARANTINE.arrow,
}
"""Tables as a fold makes them, see ingest.sources.base.Observed; and the quarantine."""


def names_of_reporters(names: DataFrame, peers: DataFrame) -> DataFrame:
    """Without those that only stand at the far end of links; `peers` has the column name."""
    reporters = peers.select("name")
    is_far_end = "table = 'links' AND column = 'dst'"
    ends = names.where(is_far_end).join(reporters, "name", "left_semi").select(*names.columns)
    return names.where(f"NOT ({is_far_end})").unionAll(ends)


def no_rejections(spark: SparkSession) -> DataFrame:
    """The observed table of a source that has no place for them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame([], from_arrow_schema(OBSERVED["rejections"]))


def rows_by_peer(
    spark: SparkSession,
    source: Source,
    files: Sequence[InputFile],
    options: SourceOptions,
    carried: DataFrame | None,
    small: bool,
) -> DataFrame:
    """All rows of the input and what is carried (as CARRIED), for `fold`: each peer's in one
    partition, in order of time. Lazily, unless the source has to count first.
    """
    from pyspark.sql import functions as F

    splits = source.splits(files)

    def tallies(read: Read) -> Tallies:
        rows = in_tasks(spark, splits, read, small).where(F.col("kind") == int(Kind.TALLY))
        return [json.loads(row.record) for row in rows.select("record").collect()]

    rows = in_tasks(spark, splits, source.reader(files, options, tallies), small)
    if carried is not None:
        told = {"kind": int(Kind.BEFORE), "rank": 0, "file": 0, "line": 0, "reason": None}
        before = carried.withColumns(
            {"time": F.col("interval"), **{name: F.lit(value) for name, value in told.items()}}
        )
        types = (column.split() for column in RECORDS.split(", "))
        rows = rows.unionAll(before.select(*(F.col(n).cast(t).alias(n) for n, t in types)))
    if small:
        gathered = rows.coalesce(1)
    else:
        tasks = max(spark.sparkContext.defaultParallelism, min(len(splits), 1000))
        gathered = rows.repartition(tasks, "peer")
    return gathered.sortWithinPartitions("peer", "time", "rank", "file", "line")
