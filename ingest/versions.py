"""From what was seen to versions: maximal, disjoint spans in which a thing held.

Spans are half-open `[vf, vt)` in ticks (model.clock). All functions are lazy, take and
give DataFrames, and shuffle by the thing's own key, so they scale with the number of
changes and not with the number of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from model.clock import OPEN


def coalesce(spans: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Spans that overlap or touch → maximal disjoint ones. Same columns: keys, vf, vt.

    a  0  3
    a  3  5    →    a  0  5
    a  9  10        a  9  10
    """
    alike = Window.partitionBy(*keys)
    by_start = alike.orderBy("vf", "vt")
    earlier = by_start.rowsBetween(Window.unboundedPreceding, -1)
    starts = (
        spans.withColumns({"reached": F.max("vt").over(earlier), "top": F.max("vt").over(alike)})
        .where("reached IS NULL OR vf > reached")
        # What was reached before the next one starts is the end of this one.
        .withColumn("vt", F.coalesce(F.lead("reached").over(by_start), "top"))
    )
    return starts.select(*keys, "vf", "vt")


def clip(spans: DataFrame, presence: DataFrame, peer: str) -> DataFrame:
    """The parts of the spans in which the peer named by column `peer` is present.

    `presence` holds peer, vf, vt, disjoint per peer. Same columns as `spans`.
    """
    stay = _stays(presence, peer)
    return (
        spans.join(stay, peer)
        .where("vf < to AND from < vt")
        .withColumns({"vf": F.greatest("vf", "from"), "vt": F.least("vt", "to")})
        .select(*spans.columns)
    )


def _stays(presence: DataFrame, peer: str) -> DataFrame:
    return presence.select(
        F.col("peer").alias(peer), F.col("vf").alias("from"), F.col("vt").alias("to")
    )


def without(spans: DataFrame, pieces: DataFrame, keys: Sequence[str]) -> DataFrame:
    """What is left of the spans outside the pieces; both are disjoint per key, and every
    piece lies inside a span. Same columns: keys, vf, vt.
    """
    marked = spans.select(*keys, "vf", "vt", F.lit(True).alias("whole")).unionByName(
        pieces.select(*keys, "vf", "vt", F.lit(False).alias("whole"))
    )
    in_time = Window.partitionBy(*keys).orderBy("vf", F.desc("whole"))
    end = F.last(F.when(F.col("whole"), F.col("vt")), ignorenulls=True).over(in_time)
    next_one = F.coalesce(F.lead("vf").over(in_time), F.lit(OPEN))
    start = F.when(F.col("whole"), F.col("vf")).otherwise(F.col("vt"))
    gaps = marked.select(*keys, start.alias("vf"), F.least(end, next_one).alias("vt"))
    return gaps.where("vf < vt")


def outside(spans: DataFrame, presence: DataFrame, *peers: str) -> DataFrame:
    """The parts of the spans in which one of the peers named by the columns is not present.

    What `without` gives for the spans and what `clip` leaves of them; but only spans that some
    stay does not cover, which are few, are moved. Same columns as `spans`.
    """
    torn, rest = spans.limit(0), spans
    for peer in peers:
        stay = _stays(presence, "there")
        covers = [rest[peer] == stay["there"], stay["from"] <= rest["vf"], rest["vt"] <= stay["to"]]
        torn = torn.unionAll(rest.join(stay, covers, "left_anti"))
        rest = rest.join(stay, covers, "left_semi")
    kept = reduce(lambda pieces, peer: clip(pieces, presence, peer), peers, torn)
    return without(torn, kept, [name for name in spans.columns if name not in ("vf", "vt")])


def close_at(spans: DataFrame, end: int) -> DataFrame:
    """What is open ends at tick `end`: for a source that marks its end."""
    return spans.withColumn("vt", F.least("vt", F.lit(end)))


def open_at(spans: DataFrame, end: int) -> DataFrame:
    """What ends at tick `end` is open: it held in the last interval of the run."""
    return spans.withColumn("vt", F.when(F.col("vt") == end, F.lit(OPEN)).otherwise(F.col("vt")))
