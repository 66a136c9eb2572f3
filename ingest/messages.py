"""The tables publications, receptions and rejections, from what was observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from analytics import message_fold
from ingest.indexing import Indices, with_messages, with_peers, with_topics

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
    return with_messages(named.withColumn("name", F.col("message")), indices).fillna(
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


def rejections(observed: Mapping[str, DataFrame], indices: Indices) -> DataFrame:
    """The table rejections."""
    rows = with_peers(observed["rejections"], indices, "peer", "previous_hop")
    return with_messages(rows, indices)


@dataclass(frozen=True)
class Told:
    """What is known of messages, by dense indices; null where nobody told of any."""

    publications: DataFrame
    rejections: DataFrame
    """As the tables of these names."""
    receptions: DataFrame | None
    """As Observed has them, with indices for names."""
    subscriptions: DataFrame | None
    """As the table."""
    untold: DataFrame | None
    """Reports that leave receptions open: peer, interval, receptions (true = not told)."""


def arrivals(observed: DataFrame, indices: Indices) -> DataFrame:
    """Observed receptions, with indices for names."""
    rows = observed.drop("topic", "publisher")
    return with_messages(with_peers(rows, indices, "peer", "previous_hop"), indices)


def rows_by_message(told: Told, parts: int) -> DataFrame:
    """Rows of analytics.message_fold.ROWS in so many partitions, as its fold takes them.

    A message is in one partition. Subscriptions are in all of them: as many rows as there are of
    them times `parts`, not times messages.
    """
    of_messages = [
        _rows(
            told.publications,
            message_fold.PUBLICATION,
            peer="publisher",
            other="topic",
            time="time_us",
            told="publication_known",
        ),
        _rows(told.rejections.select("message"), message_fold.REJECTION),
    ]
    if told.receptions is not None:
        kind = message_fold.ARRIVAL
        of_messages.append(
            _rows(told.receptions, kind, other="previous_hop", time="time_us", told="first")
        )
    common = []
    if told.subscriptions is not None:
        kind = message_fold.SUBSCRIPTION
        common.append(
            _rows(told.subscriptions, kind, other="topic", tick="valid_from", time="valid_to")
        )
    if told.untold is not None:
        silent = told.untold.where("receptions").select("peer", "interval")
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
    """Rows of one kind; `named` says which column of the frame is which."""
    columns = {"kind": F.lit(kind)}
    columns |= {name: F.col(name) for name in message_fold.ROWS.names if name in frame.columns}
    columns |= {name: F.col(column) for name, column in named.items()}
    return frame.select(
        *(
            columns.get(field.name, F.lit(None)).cast(from_arrow_type(field.type)).alias(field.name)
            for field in message_fold.ROWS
        )
    )
