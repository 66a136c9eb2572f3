"""The tables publications, receptions and rejections, from what was observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from analytics import message_fold
from analytics.frames import gathered
from ingest.indexing import Indices, with_messages, with_peers, with_topics

_CLAIMS = ("topic", "publisher", "interval", "tick")
"""Columns that both a publication and its arrivals report."""


def publications(observed: Mapping[str, DataFrame], indices: Indices) -> DataFrame:
    """The table publications: a row per message that was published, received or refused.

    A message that its publisher did not report takes its values from its arrivals.
    """
    reported = observed["publications"].groupBy("message").agg(_earliest_claim())
    reported = reported.select("message", "claim.*", F.lit(True).alias("publication_known"))
    rows = gathered(reported.join(_heard_of(observed), "message", "full")).withColumns(
        {name: F.coalesce(name, f"heard_{name}") for name in _CLAIMS}
    )
    named = with_topics(with_peers(rows, indices, "publisher"), indices)
    return with_messages(named.withColumn("name", F.col("message")), indices).fillna(
        False, ["publication_known"]
    )


def _earliest_claim() -> Column:
    """The first of several publications of a message; deterministic."""
    order = F.struct("tick", F.col("time_us").isNull(), "time_us", "publisher", "topic")
    claim = F.struct("topic", "publisher", "interval", "tick", "time_us")
    return F.min_by(claim, order).alias("claim")


def _heard_of(observed: Mapping[str, DataFrame]) -> DataFrame:
    """message, heard_topic, heard_publisher, heard_interval, heard_tick, of arrived messages."""
    nobody = F.lit(None).cast("string").alias("publisher")
    claims = observed["rejections"].select("message", "topic", nobody, "interval", "tick")
    if "receptions" in observed:
        claims = claims.unionAll(observed["receptions"].select("message", *_CLAIMS))
    return (
        gathered(claims)
        .groupBy("message")
        .agg(
            F.max("topic").alias("heard_topic"),
            F.max("publisher").alias("heard_publisher"),
            F.min("interval").alias("heard_interval"),
            F.min("tick").alias("heard_tick"),
        )
    )


def rejections(observed: Mapping[str, DataFrame], indices: Indices) -> DataFrame:
    """The table rejections."""
    rows = with_peers(observed["rejections"], indices, "peer", "previous_hop")
    return with_messages(rows, indices)


@dataclass(frozen=True)
class MessageTables:
    """What is known about messages, by dense index; null = not reported."""

    publications: DataFrame
    rejections: DataFrame | None
    """As the tables of these names."""
    receptions: DataFrame | None
    """As in Observed, with indices instead of names."""
    subscriptions: DataFrame | None
    """As the table."""
    unreported: DataFrame | None
    """Reports that leave receptions open: peer, interval, receptions (true = not reported)."""


def arrivals(observed: DataFrame, indices: Indices) -> DataFrame:
    """Observed receptions, with indices for names."""
    rows = observed.drop("topic", "publisher")
    return with_messages(with_peers(rows, indices, "peer", "previous_hop"), indices)


def rows_by_message(tables: MessageTables, parts: int) -> DataFrame:
    """Rows of analytics.message_fold.ROWS, in `parts` partitions, for its fold.

    All rows of a message are in one partition. Subscriptions are in every partition: their number
    is multiplied by `parts`, not by the number of messages.
    """
    of_messages = [
        _rows(
            tables.publications,
            message_fold.PUBLICATION,
            peer="publisher",
            other="topic",
            time="time_us",
            told="publication_known",
        ),
    ]
    if tables.rejections is not None:
        of_messages.append(_rows(tables.rejections.select("message"), message_fold.REJECTION))
    if tables.receptions is not None:
        kind = message_fold.ARRIVAL
        of_messages.append(
            _rows(tables.receptions, kind, other="previous_hop", time="time_us", told="first")
        )
    common = []
    if tables.subscriptions is not None:
        kind = message_fold.SUBSCRIPTION
        common.append(
            _rows(tables.subscriptions, kind, other="topic", tick="valid_from", time="valid_to")
        )
    if tables.unreported is not None:
        silent = tables.unreported.where("receptions").select("peer", "interval")
        common.append(_rows(silent, message_fold.SILENCE))
    if parts == 1:
        rows = reduce(DataFrame.unionAll, [*common, *of_messages]).coalesce(1)
    else:
        part = {"part": F.pmod("message", F.lit(parts)).cast("int")}
        everywhere = {"part": F.explode(F.sequence(F.lit(0), F.lit(parts - 1)))}
        placed = [rows.withColumns(part) for rows in of_messages]
        placed += [rows.withColumns(everywhere) for rows in common]
        rows = reduce(DataFrame.unionAll, placed).repartitionById(parts, "part").drop("part")
    return rows.sortWithinPartitions("message")  # null first


def _rows(frame: DataFrame, kind: int, **named: str) -> DataFrame:
    """Rows of one kind; `named` maps columns of ROWS to columns of the frame."""
    columns = {"kind": F.lit(kind)}
    columns |= {name: F.col(name) for name in message_fold.ROWS.names if name in frame.columns}
    columns |= {name: F.col(column) for name, column in named.items()}
    return frame.select(
        *(
            columns.get(field.name, F.lit(None)).cast(from_arrow_type(field.type)).alias(field.name)
            for field in message_fold.ROWS
        )
    )
