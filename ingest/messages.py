"""The tables publications, receptions and rejections, from what was observed."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analytics.dissemination import with_hops
from ingest.dense import Indices, with_messages, with_peers, with_topics

_CLAIMS = ("topic", "publisher", "interval", "tick")
"""What both a publication and its arrivals tell."""


def publications(observed: Mapping[str, DataFrame], indices: Indices) -> DataFrame:
    """The table publications: a row per message that anybody published, received or refused.

    One whose publisher did not report it takes what its arrivals say.
    """
    reported = observed["publications"].groupBy("message").agg(_earliest_claim())
    reported = reported.select("message", "claim.*", F.lit(True).alias("publication_known"))
    rows = reported.join(_heard_of(observed), "message", "full").withColumns(
        {name: F.coalesce(name, f"heard_{name}") for name in _CLAIMS}
    )
    named = with_topics(with_peers(rows, indices, "publisher"), indices)
    return with_messages(named.withColumn("key", F.col("message")), indices).fillna(
        False, ["publication_known"]
    )


def _earliest_claim() -> Column:
    """Of several publications of one message the first; the same one at every reading."""
    order = F.struct("tick", F.col("time_us").isNull(), "time_us", "publisher", "topic")
    claim = F.struct("topic", "publisher", "interval", "tick", "time_us")
    return F.min_by(claim, order).alias("claim")


def _heard_of(observed: Mapping[str, DataFrame]) -> DataFrame:
    """message and heard_… of every message that arrived somewhere."""
    nobody = F.lit(None).cast("string").alias("publisher")
    claims = observed["rejections"].select("message", "topic", nobody, "interval", "tick")
    if "receptions" in observed:
        claims = claims.unionAll(observed["receptions"].select("message", *_CLAIMS))
    return claims.groupBy("message").agg(
        F.max("topic").alias("heard_topic"),
        F.max("publisher").alias("heard_publisher"),
        F.min("interval").alias("heard_interval"),
        F.min("tick").alias("heard_tick"),
    )


def receptions(
    observed: Mapping[str, DataFrame],
    indices: Indices,
    published: DataFrame,
    subscriptions: DataFrame | None,
    buckets: int = 1,
) -> DataFrame:
    """The table receptions. `published` is the table publications, `subscriptions` the table
    or null where unknown; the messages are walked in so many `buckets`.
    """
    rows = observed["receptions"].drop("topic", "publisher")
    rows = with_messages(with_peers(rows, indices, "peer", "previous_hop"), indices)
    rows = rows.join(published.select("message", "topic", "publisher"), "message")
    # What comes back to its publisher is a copy of what it had.
    elsewhere = ~F.col("peer").eqNullSafe(F.col("publisher"))
    rows = rows.withColumn("first", F.coalesce("first", F.lit(True)) & _is_earliest() & elsewhere)
    return with_hops(_with_interest(rows, subscriptions), buckets)


def _is_earliest() -> Column:
    """Of those that their peer says came first, if it says that of any: it may say so once more,
    when it forgot that it had the message.
    """
    told_first = F.coalesce("first", F.lit(False)).desc()
    arrivals = Window.partitionBy("message", "peer").orderBy(told_first, "tick", "arrival")
    return F.row_number().over(arrivals) == 1


def _with_interest(rows: DataFrame, subscriptions: DataFrame | None) -> DataFrame:
    """Adds `interested`: the peer subscribed to the message's topic when it arrived; null where
    the topic is not known.
    """
    if subscriptions is None:
        return rows.withColumn("interested", F.lit(None).cast("boolean"))
    taken = subscriptions.select("peer", "topic", "vf", "vt", F.lit(True).alias("interested"))
    here = [
        rows["peer"] == taken["peer"],
        rows["topic"] == taken["topic"],
        rows["tick"] >= taken["vf"],
        rows["tick"] < taken["vt"],
    ]
    joined = rows.join(taken, here, "left").select(rows["*"], taken["interested"])
    told = F.coalesce("interested", F.lit(False))
    return joined.withColumn("interested", F.when(F.col("topic").isNotNull(), told))


def rejections(observed: Mapping[str, DataFrame], indices: Indices) -> DataFrame:
    """The table rejections."""
    rows = with_peers(observed["rejections"], indices, "peer", "previous_hop")
    return with_messages(rows, indices)
