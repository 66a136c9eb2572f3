"""From what was seen to versions: maximal, disjoint spans in which a thing held.

Spans are half-open `[valid_from, valid_to)` in ticks (model.clock). All functions are lazy, take
and give DataFrames, and shuffle by the thing's own key, so they scale with the number of changes
and not with the number of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from model.clock import OPEN


def coalesce(spans: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Spans that overlap or touch → maximal disjoint ones. Same columns: keys, valid_from,
    valid_to.

    a  0  3
    a  3  5    →    a  0  5
    a  9  10        a  9  10
    """
    alike = Window.partitionBy(*keys)
    by_start = alike.orderBy("valid_from", "valid_to")
    earlier = by_start.rowsBetween(Window.unboundedPreceding, -1)
    starts = (
        spans.withColumns(
            {"reached": F.max("valid_to").over(earlier), "top": F.max("valid_to").over(alike)}
        )
        .where("reached IS NULL OR valid_from > reached")
        # What was reached before the next one starts is the end of this one.
        .withColumn("valid_to", F.coalesce(F.lead("reached").over(by_start), "top"))
    )
    return starts.select(*keys, "valid_from", "valid_to")


def clip(spans: DataFrame, presence: DataFrame, peer: str) -> DataFrame:
    """The parts of the spans in which the peer named by column `peer` is present.

    `presence` holds peer, valid_from, valid_to, disjoint per peer. Same columns as `spans`.
    """
    stay = _stays(presence, peer)
    return (
        spans.join(stay, peer)
        .where("valid_from < to AND from < valid_to")
        .withColumns(
            {"valid_from": F.greatest("valid_from", "from"), "valid_to": F.least("valid_to", "to")}
        )
        .select(*spans.columns)
    )


def _stays(presence: DataFrame, peer: str) -> DataFrame:
    return presence.select(
        F.col("peer").alias(peer), F.col("valid_from").alias("from"), F.col("valid_to").alias("to")
    )


def without(spans: DataFrame, pieces: DataFrame, keys: Sequence[str]) -> DataFrame:
    """What is left of the spans outside the pieces; both are disjoint per key, and every
    piece lies inside a span. Same columns: keys, valid_from, valid_to.
    """
    marked = spans.select(*keys, "valid_from", "valid_to", F.lit(True).alias("whole")).unionByName(
        pieces.select(*keys, "valid_from", "valid_to", F.lit(False).alias("whole"))
    )
    in_time = Window.partitionBy(*keys).orderBy("valid_from", F.desc("whole"))
    end = F.last(F.when(F.col("whole"), F.col("valid_to")), ignorenulls=True).over(in_time)
    next_one = F.coalesce(F.lead("valid_from").over(in_time), F.lit(OPEN))
    start = F.when(F.col("whole"), F.col("valid_from")).otherwise(F.col("valid_to"))
    gaps = marked.select(*keys, start.alias("valid_from"), F.least(end, next_one).alias("valid_to"))
    return gaps.where("valid_from < valid_to")


def outside(spans: DataFrame, presence: DataFrame, *peers: str) -> DataFrame:
    """The parts of the spans in which one of the peers named by the columns is not present.

    What `without` gives for the spans and what `clip` leaves of them; but only spans that some
    stay does not cover, which are few, are moved. Same columns as `spans`.
    """
    torn, rest = spans.limit(0), spans
    for peer in peers:
        stay = _stays(presence, "there")
        covers = [
            rest[peer] == stay["there"],
            stay["from"] <= rest["valid_from"],
            rest["valid_to"] <= stay["to"],
        ]
        torn = torn.unionAll(rest.join(stay, covers, "left_anti"))
        rest = rest.join(stay, covers, "left_semi")
    kept = reduce(lambda pieces, peer: clip(pieces, presence, peer), peers, torn)
    return without(
        torn, kept, [name for name in spans.columns if name not in ("valid_from", "valid_to")]
    )


def close_at(spans: DataFrame, end: int) -> DataFrame:
    """What is open ends at tick `end`: for a source that marks its end."""
    return spans.withColumn("valid_to", F.least("valid_to", F.lit(end)))


def open_at(spans: DataFrame, end: int) -> DataFrame:
    """What ends at tick `end` is open: it held in the last interval of the run."""
    return spans.withColumn(
        "valid_to", F.when(F.col("valid_to") == end, F.lit(OPEN)).otherwise(F.col("valid_to"))
    )
