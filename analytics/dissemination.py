"""What became of each message: hops, deliveries, duplicates, delays.

Tables are those of model.tables, by dense indices.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.frames import conform, count_if, if_known
from analytics.hops import UNKNOWN, Arrivals, chain_hops, parents_of
from model.compiled import Int64s
from model.metrics import METRICS_MESSAGES


@dataclass(frozen=True)
class Messages:
    """The tables about messages; null where nobody told of any."""

    publications: DataFrame
    receptions: DataFrame | None
    rejections: DataFrame
    subscriptions: DataFrame | None
    untold: DataFrame | None = None
    """Reports that leave receptions open: peer, interval, receptions (true = not told)."""
    duplicates_known: bool = True
    """All arrivals are told, not the first ones alone."""


def with_hops(receptions: DataFrame, buckets: int) -> DataFrame:
    """Fills column `hop` where the source did not tell it, from the chains of first receptions.

    Takes message, peer, previous_hop, publisher, first, hop and any others; the publisher is
    at hop 0, a reception one further than the first reception of its previous hop. A chain
    that breaks off, runs in a circle or leaves 32 bits gives null. One group holds all messages
    of a bucket, so that many small messages cost one call.
    """
    bucket = F.pmod(F.hash("message"), F.lit(buckets))
    grouped = receptions.groupBy(bucket.alias("bucket"))
    return grouped.applyInArrow(fill_hops, receptions.schema)


def fill_hops(rows: pa.Table) -> pa.Table:
    """`with_hops` of one bucket."""
    arrivals = Arrivals(
        rows["first"].to_numpy(),
        *(_ints(rows, name) for name in ("message", "peer", "previous_hop", "publisher", "hop")),
    )
    hops = chain_hops(arrivals, parents_of(arrivals))
    filled = pa.array(hops, pa.int32(), mask=hops == UNKNOWN)
    return rows.set_column(rows.column_names.index("hop"), "hop", filled)


def _ints(rows: pa.Table, name: str) -> Int64s:
    """A column as int64; null becomes -1."""
    filled: Int64s = rows[name].cast(pa.int64()).fill_null(UNKNOWN).to_numpy()
    return filled


def measure_messages(tables: Messages) -> DataFrame:
    """The table metrics/messages (see model.metrics)."""
    parts, zero = [_refusals(tables)], ["rejections"]
    if tables.subscriptions is not None:
        parts.append(_hits(tables, tables.subscriptions))
    if tables.receptions is not None:
        parts += [_arrivals(tables, tables.receptions), _violations(tables, tables.receptions)]
        zero += ["receptions", "first_receptions", "duplicates"]
    rows = tables.publications.select("message", "topic")
    for part in parts:
        rows = rows.join(part, "message", "left")
    rows = conform(rows.fillna(0, zero), METRICS_MESSAGES, "topic")
    if tables.receptions is not None:
        rows = _where_known(rows, _interest_known(tables), ["relay_receptions"])
    ratio = F.col("delivered") / F.nullif(F.col("eligible"), F.lit(0))
    redundancy = F.col("receptions") / F.nullif(F.col("first_receptions"), F.lit(0)) - 1
    rows = rows.withColumns({"hit_ratio": ratio, "redundancy": redundancy})
    if not tables.duplicates_known:
        unknown = F.lit(None)
        rows = rows.withColumns({"duplicates": unknown, "redundancy": unknown})
    return conform(rows, METRICS_MESSAGES)


def _arrivals(tables: Messages, receptions: DataFrame) -> DataFrame:
    published = tables.publications.select("message", F.col("time_us").alias("published_us"))
    rows = receptions.join(published, "message").withColumns(
        {
            "hops": F.when(F.col("first"), F.col("hop")),
            "delay": F.when(F.col("first"), F.col("time_us") - F.col("published_us")),
        }
    )
    shares = F.percentile("delay", F.array(*(F.lit(share) for share in (0.5, 0.95, 0.99))))
    counted = rows.groupBy("message").agg(
        F.count("*").alias("receptions"),
        count_if(F.col("first")).alias("first_receptions"),
        count_if(~F.col("first")).alias("duplicates"),
        count_if(~F.col("interested")).alias("relay_receptions"),
        F.mean("hops").alias("hops_mean"),
        F.max("hops").alias("hops_max"),
        # Spark's own mean adds doubles, which are not exact in whatever order.
        (F.try_sum("delay") / F.count("delay")).alias("delay_us_mean"),
        F.max("delay").alias("delay_us_max"),
        shares.alias("shares"),
    )
    names = ("delay_us_p50", "delay_us_p95", "delay_us_p99")
    return counted.withColumns({name: F.col("shares")[i] for i, name in enumerate(names)})


def _refusals(tables: Messages) -> DataFrame:
    return tables.rejections.groupBy("message").agg(F.count("*").alias("rejections"))


def _hits(tables: Messages, subscriptions: DataFrame) -> DataFrame:
    """message, eligible; where receptions are known delivered, delivered_in_interval and
    late_deliveries, too.
    """
    rows, chosen = _eligible(tables, subscriptions), F.col("eligible")
    counted = {"eligible": chosen}
    if tables.receptions is not None:
        firsts = tables.receptions.where("first").select(
            "message", "peer", F.col("interval").alias("arrived_in"), "interested"
        )
        rows = rows.join(firsts, ["message", "peer"], "full").join(
            tables.publications.select("message", "interval"), "message"
        )
        arrived = F.col("arrived_in").isNotNull()
        counted |= {
            "delivered": chosen & arrived,
            "delivered_in_interval": chosen & (F.col("arrived_in") == F.col("interval")),
            "late_deliveries": arrived & chosen.isNull() & F.col("interested"),
        }
    counts = rows.groupBy("message").agg(*(count_if(c).alias(n) for n, c in counted.items()))
    published = tables.publications.select("message", "topic", "publication_known")
    # When nobody told of the publication, who subscribed at its time is not known.
    told = _interest_known(tables) & F.col("publication_known")
    known = _where_known(published.join(counts, "message", "left"), told, list(counted))
    return known.drop("topic", "publication_known")


def _interest_known(tables: Messages) -> Column:
    """Somebody told of subscriptions and of the message's topic."""
    return F.col("topic").isNotNull() & F.lit(tables.subscriptions is not None)


def _where_known(rows: DataFrame, told: Column, counts: list[str]) -> DataFrame:
    """A count that is missing is 0, or unknown where nobody told of what it counts."""
    return rows.withColumns({c: F.when(told, F.coalesce(c, F.lit(0))) for c in counts})


def _eligible(tables: Messages, subscriptions: DataFrame) -> DataFrame:
    """message, peer, eligible (true): subscribed (and so present) at the publication's tick, but
    the publisher and whoever left open what it received then.
    """
    taken = subscriptions.join(tables.publications, "topic").where("vf <= tick AND tick < vt")
    others = taken.where(~F.col("peer").eqNullSafe(F.col("publisher")))
    if tables.untold is not None:
        silent = tables.untold.where("receptions").select("peer", "interval")
        others = others.join(silent, ["peer", "interval"], "left_anti")
    return others.select("message", "peer", F.lit(True).alias("eligible"))


def _violations(tables: Messages, receptions: DataFrame) -> DataFrame:
    """message, causality_violations: null where no times are known."""
    firsts = receptions.where("first").select(
        "message", F.col("peer").alias("previous_hop"), F.col("time_us").alias("previous_us")
    )
    published = tables.publications.select("message", F.col("time_us").alias("published_us"))
    rows = receptions.join(firsts, ["message", "previous_hop"], "left").join(published, "message")
    before = (F.col("time_us") < F.col("published_us")) | (F.col("time_us") < F.col("previous_us"))
    return rows.groupBy("message").agg(
        if_known("time_us", count_if(before)).alias("causality_violations")
    )
