"""Shared by all sources: the schemas of folded tables, and the rows that folds take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ingest.fold import NAMES
from ingest.packs import PACKS, pack
from ingest.reader import RECORDS, Kind, Read, Split, in_tasks
from ingest.sources.base import Tallies
from model.tables import QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CARRIED = "records"
"""The table of the last state of each peer, for appends: peer, interval, record."""

_PERIOD = [("valid_from", pa.int64()), ("valid_to", pa.int64())]
_AT = [("time_us", pa.int64()), ("interval", pa.int32()), ("tick", pa.int64())]


def _names(*columns: str) -> list[tuple[str, pa.DataType]]:
    return [(column, pa.string()) for column in columns]


OBSERVED: Mapping[str, pa.Schema] = {
    "presence": pa.schema([*_names("peer"), *_PERIOD]),
    "links": pa.schema([*_names("src", "dst", "layer", "topic"), *_PERIOD]),
    "subscriptions": pa.schema([*_names("peer", "topic"), *_PERIOD]),
    "roles": pa.schema([*_names("peer", "role", "topic"), *_PERIOD]),
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
"""Schemas of folded tables (see ingest.sources.base.Observed) and of the quarantine."""


NAMES_OF_REPORTERS = """
    FROM folded.names
    WHERE NOT ("table" = 'links' AND "column" = 'dst')
        OR name IN (SELECT {reporter} FROM whole.peers)
"""
"""The names without those that only occur as `dst` of links."""
NO_REJECTIONS = """
    SELECT
        NULL::VARCHAR AS message, NULL::VARCHAR AS topic, NULL::VARCHAR AS peer,
        NULL::VARCHAR AS previous_hop, NULL::BIGINT AS time_us, NULL::INTEGER AS interval,
        NULL::BIGINT AS tick, NULL::VARCHAR AS reason
    WHERE false
"""
"""An empty observed table, for sources whose format has none."""


def rows_by_peer(
    spark: SparkSession,
    splits: Sequence[Split],
    reader: Callable[[Callable[[Read], Tallies]], Read],
    carried: DataFrame | None,
    small: bool,
) -> DataFrame:
    """All rows of the input and of `carried` (columns as CARRIED), for the fold, as packs: each
    peer in one partition. `reader` gets a function as Source.reader does. Lazy, unless the source
    has to count first.
    """
    from pyspark.sql import functions as F

    def tallies(read: Read) -> Tallies:
        rows = in_tasks(spark, splits, read, small).where(F.col("kind") == int(Kind.TALLY))
        return [json.loads(row.record) for row in rows.select("record").collect()]

    most = max(spark.sparkContext.defaultParallelism, min(len(splits), 1000))
    packing = partial(pack, parts=1 if small else most)
    packs = in_tasks(spark, splits, reader(tallies), small, packing, PACKS)
    if carried is not None:
        constants = {"kind": int(Kind.BEFORE), "rank": 0, "file": 0, "line": 0, "reason": None}
        before = carried.withColumns(
            {"time": F.col("interval"), **{name: F.lit(value) for name, value in constants.items()}}
        )
        types = (column.split() for column in RECORDS.split(", "))
        states = before.select(*(F.col(n).cast(t).alias(n) for n, t in types))
        packs = packs.unionAll(states.mapInArrow(packing, PACKS))
    return packs.coalesce(1) if small else packs.repartitionById(most, F.col("part"))
