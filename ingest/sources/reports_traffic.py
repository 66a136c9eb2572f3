"""What reports count, by peer and interval."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from model.columns import TRAFFIC_COLUMNS

_COUNTERS = (*TRAFFIC_COLUMNS, "duplicates")
_WAYS = ("sent", "received")


def traffic_known() -> dict[str, Column]:
    """What a report may tell of its traffic, each with a column that is null where it does not."""
    value = {**{name: F.col(name) for name in _COUNTERS}, **_told()}
    pairs = {
        f"{kind}.{what}": F.coalesce(*(value[f"{kind}_{what}_{way}"] for way in _WAYS))
        for kind in ("control", "publication")
        for what in ("messages", "bytes")
    }
    return {**pairs, "duplicates": F.col("duplicates")}


def traffic(staged: Mapping[str, DataFrame], only: str | None = None) -> DataFrame:
    """peer, interval, TRAFFIC_COLUMNS, duplicates: one row a report.

    Counters that run from the source's start are turned into what each interval added.
    Publication traffic that is not counted is taken from the events.
    """
    counted = _per_interval(staged, only)
    columns = {**{name: F.col(name) for name in _COUNTERS}, **_told()}
    return counted.select("peer", "interval", *(c.alias(name) for name, c in columns.items()))


def count_differing(staged: Mapping[str, DataFrame], only: str | None = None) -> int:
    """How many reports count other publication traffic than their events tell. One job."""
    differs = F.lit(False)
    for name, from_events in _from_events().items():
        differs |= F.coalesce(F.col(name) != from_events, F.lit(False))
    return _per_interval(staged, only).where(differs).count()


def _per_interval(staged: Mapping[str, DataFrame], only: str | None) -> DataFrame:
    """peer, interval, counters of the interval alone, sent, received."""
    headers = staged["headers"]
    mine = (
        headers if only is None else headers.where(F.col("run").isNull() | (F.col("run") == only))
    )
    total = mine.agg(
        F.coalesce(F.bool_or(F.col("counters") == "total"), F.lit(False)).alias("total")
    )
    return (
        staged["reports"]
        .crossJoin(F.broadcast(total))
        .select(
            "peer",
            "interval",
            *(F.when(F.col("total"), _added(n)).otherwise(F.col(n)).alias(n) for n in _COUNTERS),
            "sent",
            "received",
        )
    )


def _added(counter: str) -> Column:
    """What the interval added to a counter; one that dropped was restarted from 0."""
    by_time = Window.partitionBy("peer").orderBy("interval")
    earlier = by_time.rowsBetween(Window.unboundedPreceding, -1)
    before = F.last(counter, ignorenulls=True).over(earlier)
    value = F.col(counter)
    return F.when(before.isNull() | (value < before), value).otherwise(value - before)


def _told() -> dict[str, Column]:
    """Publication traffic as counted, else by the events."""
    return {name: F.coalesce(name, events) for name, events in _from_events().items()}


def _from_events() -> dict[str, Column]:
    """Publication traffic by the events of a report; null where one of them does not say."""
    copies = "CAST(array_size(copy.to) AS BIGINT)"
    return {
        "publication_messages_sent": _sum("sent", copies),
        "publication_bytes_sent": _sum("sent", f"try_multiply(copy.bytes, {copies})"),
        "publication_messages_received": _sum("received", "1L"),
        "publication_bytes_received": _sum("received", "copy.bytes"),
    }


def _sum(events: str, value: str) -> Column:
    # Sums beyond 64 bits are unknown, not an error that ends the ingest.
    return F.expr(f"aggregate({events}, 0L, (sum, copy) -> try_add(sum, {value}))")
