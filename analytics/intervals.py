"""Validity periods in ticks and reporting intervals, as Spark expressions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vizpub.model.clock import OPEN, Clock


def sampled(spans: DataFrame, clock: Clock) -> DataFrame:
    """Adds start, stop (int32): the intervals `[start, stop)` of the run whose sampling tick is in
    `[valid_from, valid_to)`. Periods without a sampling tick are left out.

        valid_from   valid_to    start  stop                (1,000 ticks per interval)
        0    2500  0      2
        300  900   –      –      left out
    """
    k = clock.ticks_per_interval
    start = F.greatest(_quotient("valid_from", k), F.lit(clock.first))
    stop = F.when(F.col("valid_to") == OPEN, clock.last + 1).otherwise(
        F.least(_quotient("valid_to", k), F.lit(clock.last + 1))
    )
    return spans.withColumns({"start": start.cast("int"), "stop": stop.cast("int")}).where(
        "start < stop"
    )


def per_interval(spans: DataFrame, clock: Clock) -> DataFrame:
    """A row per interval in which each period is sampled; adds `interval` (int32).

    Use it for few rows: the result has a row for each row and interval.
    """
    rows = sampled(spans, clock)
    return rows.withColumn("interval", F.explode(F.sequence("start", F.col("stop") - 1))).drop(
        "start", "stop"
    )


def _quotient(column: str, divisor: int) -> Column:
    return F.expr(f"{column} div {divisor}")
