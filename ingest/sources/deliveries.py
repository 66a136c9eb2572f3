"""Deliveries of messages as CSV or Parquet: `msg,node,prev_node,t_us`.

Each row is an arrival of message `msg` at peer `node` from `prev_node`, `t_us` microseconds
after the run's epoch; `prev_node` = `node` marks the publisher. Dissemination only: who is
there, who is linked to whom and who subscribes to what is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ingest.sources.base import Description, InputFile, Observed, ParsedSource, SourceOptions
from ingest.sources.delimited import NO_ROWS, key, read_table, recognised, whole
from ingest.sources.text import quarantine
from model.clock import Clock
from model.errors import InputError

_INTERVAL_US = 1_000_000
_MOST_INTERVALS = 10_000_000
_HEADER = ("msg", "node", "prev_node", "t_us")
REPEATED, CONFLICTING = "repeated", "conflicting"
_UNKNOWN = ("presence", "links", "topics", "roles", "traffic", "rejections")


class Deliveries(ParsedSource):
    """The source; see ingest.sources.base.Source for its four steps."""

    name = "deliveries"
    options = frozenset({"interval_us", "max_line"})

    def recognises(self, path: str, head: bytes) -> str | None:
        """'csv(…)' or 'parquet(…)' with the columns."""
        return recognised(path, head, [_HEADER])

    def parse(
        self, spark: SparkSession, files: Sequence[InputFile], options: SourceOptions
    ) -> dict[str, DataFrame]:
        """`deliveries` (message, peer, previous_hop, time_us, arrival, lost) and `quarantine`.

        `lost` says of a row why it does not count, null = it does: REPEATED, an earlier one says
        the same; CONFLICTING, an earlier one says that the message was published otherwise.
        """
        rules = {"msg": key, "node": key, "prev_node": key, "t_us": whole()}
        rows, refused = read_table(spark, files, rules, options.max_line)
        rows = rows.withColumn("time_us", F.col("t_us").cast("bigint"))
        # A number of the line alone would depend on how the files were cut.
        in_time = Window.partitionBy("node").orderBy("time_us", "file", "position")
        deliveries = _judged(
            rows.withColumn("arrival", F.row_number().over(in_time).cast("bigint"))
        ).select(
            F.col("msg").alias("message"),
            F.col("node").alias("peer"),
            F.col("prev_node").alias("previous_hop"),
            "time_us",
            "arrival",
            "lost",
        )
        conflicting = _judged(rows.where(_own())).where(F.col("lost") == CONFLICTING)
        conflicts = conflicting.select(
            "file",
            "position",
            F.concat_ws(",", *_HEADER).alias("text"),
            F.lit("another publication of the message came first").alias("reason"),
        )
        found = refused.unionByName(quarantine(conflicts))
        return {"deliveries": deliveries, "quarantine": found}

    def describe(self, staged: Mapping[str, DataFrame], options: SourceOptions) -> Description:
        """Ticks of a microsecond; intervals of a second if nothing else is asked for.

        Raises: InputError where there is no delivery, or the deliveries lie too far apart.
        """
        interval_us = options.interval_us or _INTERVAL_US
        row = (
            staged["deliveries"]
            .agg(
                F.max(F.when(F.col("lost").isNull(), F.col("time_us"))).alias("latest"),
                F.count_if(F.col("lost") == REPEATED).alias("repeated"),
            )
            .first()
        )
        if row is None or row["latest"] is None:
            raise InputError("no delivery could be read", NO_ROWS)
        last = row["latest"] // interval_us
        if last >= _MOST_INTERVALS:
            raise InputError(
                f"the deliveries reach over {last + 1:,} intervals",
                "a time is surely a mistake; if not, give longer intervals, as --interval 1m",
            )
        notes = {"repeated_records": row["repeated"]} if row["repeated"] else {}
        return Description(Clock(interval_us, 1, 0, last), unknown=_UNKNOWN, notes=notes)

    def observe(
        self, staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
    ) -> Observed:
        """Lazily."""
        del options
        counted = staged["deliveries"].where("lost IS NULL").drop("lost")
        deliveries = counted.withColumns(
            {
                "interval": _interval(description.clock),
                "tick": F.col("time_us"),
                "topic": F.lit(None).cast("string"),
            }
        )
        own = F.col("previous_hop") == F.col("peer")
        receptions = deliveries.where(~own).withColumns(
            {
                "publisher": F.lit(None).cast("string"),
                "first": F.lit(None).cast("boolean"),
                "hop": F.lit(None).cast("int"),
            }
        )
        return Observed(
            peers=deliveries.select(
                F.col("peer").alias("key"), F.lit(True).alias("reports")
            ).distinct(),
            publications=deliveries.where(own)
            .withColumnRenamed("peer", "publisher")
            .drop("previous_hop", "arrival"),
            receptions=receptions,
            rejections=_rejections(deliveries),
        )


def _own() -> Column:
    """The row marks the publisher."""
    return F.col("prev_node") == F.col("node")


def _judged(rows: DataFrame) -> DataFrame:
    """Adds `lost`; see `parse`. What is said of publications needs no other rows than these."""
    place = ("file", "position")
    same = Window.partitionBy("msg", "node", "prev_node", "time_us").orderBy(*place)
    of_message = Window.partitionBy("msg").orderBy(~_own(), *place)
    otherwise = _own() & (F.row_number().over(of_message) > 1)
    repeated = F.row_number().over(same) > 1
    return rows.withColumn(
        "lost", F.when(repeated, F.lit(REPEATED)).when(otherwise, F.lit(CONFLICTING))
    )


def _interval(clock: Clock) -> Column:
    return F.expr(f"CAST(time_us DIV {clock.ticks_per_interval} AS INT)")


def _rejections(deliveries: DataFrame) -> DataFrame:
    """None: the file has no place for them."""
    return deliveries.where(F.lit(False)).withColumn("reason", F.lit(None).cast("string"))
