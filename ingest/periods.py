"""Validity periods: made maximal and disjoint, and clipped to presence.

Periods are half-open `[valid_from, valid_to)` in ticks (model.clock). All functions are lazy, take
and return DataFrames, and shuffle by the key of the period, so the cost grows with the number of
changes, not of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from analytics.frames import gathered
from model.clock import OPEN


def coalesce(periods: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Periods that overlap or touch → maximal, disjoint ones. Same columns: keys, valid_from,
    valid_to.

    a  0  3
    a  3  5    →    a  0  5
    a  9  10        a  9  10
    """
    alike = Window.partitionBy(*keys)
    by_start = alike.orderBy("valid_from", "valid_to")
    earlier = by_start.rowsBetween(Window.unboundedPreceding, -1)
    starts = (
        periods.withColumns(
            {"reached": F.max("valid_to").over(earlier), "top": F.max("valid_to").over(alike)}
        )
        .where("reached IS NULL OR valid_from > reached")
        # The greatest end before the next start is the end of this period.
        .withColumn("valid_to", F.coalesce(F.lead("reached").over(by_start), "top"))
    )
    return starts.select(*keys, "valid_from", "valid_to")


def clip(periods: DataFrame, presence: DataFrame, peer: str) -> DataFrame:
    """The parts of the periods in which the peer named by column `peer` is present.

    `presence` holds peer, valid_from, valid_to, disjoint per peer. Same columns as `periods`.
    """
    stay = _stays(presence, peer)
    return (
        gathered(periods.join(stay, peer))
        .where("valid_from < to AND from < valid_to")
        .withColumns(
            {"valid_from": F.greatest("valid_from", "from"), "valid_to": F.least("valid_to", "to")}
        )
        .select(*periods.columns)
    )


def _stays(presence: DataFrame, peer: str) -> DataFrame:
    return presence.select(
        F.col("peer").alias(peer), F.col("valid_from").alias("from"), F.col("valid_to").alias("to")
    )


def without(periods: DataFrame, pieces: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The parts of the periods outside the pieces; both are disjoint per key, and every
    piece lies inside a period. Same columns: keys, valid_from, valid_to.
    """
    columns = (*keys, "valid_from", "valid_to")
    marked = periods.select(*columns, F.lit(True).alias("whole")).unionByName(
        pieces.select(*columns, F.lit(False).alias("whole"))
    )
    in_time = Window.partitionBy(*keys).orderBy("valid_from", F.desc("whole"))
    end = F.last(F.when(F.col("whole"), F.col("valid_to")), ignorenulls=True).over(in_time)
    next_one = F.coalesce(F.lead("valid_from").over(in_time), F.lit(OPEN))
    start = F.when(F.col("whole"), F.col("valid_from")).otherwise(F.col("valid_to"))
    gaps = gathered(marked).select(
        *keys, start.alias("valid_from"), F.least(end, next_one).alias("valid_to")
    )
    return gaps.where("valid_from < valid_to")


def outside(periods: DataFrame, presence: DataFrame, *peers: str) -> DataFrame:
    """The parts of the periods in which one of the peers named by the columns is not present.

    Equal to `without(periods, clip(periods))`, but only the few periods that no stay covers are
    shuffled. Same columns as `periods`.
    """
    torn, rest = periods.limit(0), periods
    for peer in peers:
        stay = _stays(presence, "there")
        covers = [
            rest[peer] == stay["there"],
            stay["from"] <= rest["valid_from"],
            rest["valid_to"] <= stay["to"],
        ]
        torn = torn.unionAll(rest.join(stay, covers, "left_anti"))
        rest = rest.join(stay, covers, "left_semi")
    torn = gathered(torn)
    kept = reduce(lambda pieces, peer: clip(pieces, presence, peer), peers, torn)
    return without(
        torn, kept, [name for name in periods.columns if name not in ("valid_from", "valid_to")]
    )


def close_at(periods: DataFrame, end: int) -> DataFrame:
    """Open periods end at tick `end`: for a source that marks its end."""
    return periods.withColumn("valid_to", F.least("valid_to", F.lit(end)))


def open_at(periods: DataFrame, end: int) -> DataFrame:
    """Periods that end at tick `end`, the end of the last interval, become open."""
    return periods.withColumn(
        "valid_to", F.when(F.col("valid_to") == end, F.lit(OPEN)).otherwise(F.col("valid_to"))
    )
