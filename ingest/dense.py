"""From the source's own names to dense integers, and back by the tables peers, topics and
publications.

Indices are given in a fixed order, so that the same input always gets the same ones: names
that are numbers by their value, others by their text; messages by when they were published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.sources.base import Observed

PEER_COLUMNS = ("peer", "src", "dst", "publisher", "previous_hop")


@dataclass(frozen=True)
class Indices:
    """Which integer stands for which name. Each has the columns name, index."""

    peers: DataFrame
    topics: DataFrame
    messages: DataFrame | None
    """Null where nothing is known of messages."""


def observed_tables(observed: Observed) -> dict[str, DataFrame]:
    """The tables that are known, by name."""
    tables = {f.name: getattr(observed, f.name) for f in fields(observed)}
    return {name: frame for name, frame in tables.items() if isinstance(frame, DataFrame)}


def peer_index(
    observed: Mapping[str, DataFrame], key_of: Callable[[Column], Column] | None
) -> DataFrame:
    """name, key, index, reports of every peer that anything names; see Observed.peer_key."""
    reporting = observed["peers"].select(F.col("key").alias("name"), "reports")
    named = reporting.select("name").unionAll(_names(observed, PEER_COLUMNS)).distinct()
    key = F.col("name") if key_of is None else key_of(F.col("name"))
    rows = named.join(reporting, "name", "left").fillna(False, ["reports"])
    return _numbered(rows.withColumn("key", key), *_natural("key"))


def topic_index(observed: Mapping[str, DataFrame]) -> DataFrame:
    """name, index of every topic that anything names."""
    return _numbered(_names(observed, ("topic",)), *_natural("name"))


def message_index(observed: Mapping[str, DataFrame]) -> DataFrame:
    """name, index of every message, the earliest first."""
    parts = [
        observed[name].select(F.col("message").alias("name"), "tick")
        for name in ("publications", "receptions", "rejections")
        if name in observed
    ]
    rows = reduce(DataFrame.unionAll, parts).groupBy("name").agg(F.min("tick").alias("tick"))
    return _numbered(rows, F.asc("tick"), F.asc("name")).select("name", "index")


def _names(observed: Mapping[str, DataFrame], columns: Sequence[str]) -> DataFrame:
    nobody = observed["peers"].select(F.col("key").alias("name")).limit(0)
    parts = [
        frame.select(F.col(column).alias("name")).distinct()
        for frame in observed.values()
        for column in columns
        if column in frame.columns
    ]
    return reduce(DataFrame.unionAll, parts, nobody).where("name IS NOT NULL").distinct()


def _natural(column: str) -> tuple[Column, ...]:
    number = F.col(column).try_cast("decimal(38,0)")
    return F.asc_nulls_last(number), F.asc(column)


def _numbered(rows: DataFrame, *order: Column) -> DataFrame:
    # One partition sorts the names; they are few beside what refers to them.
    index = F.row_number().over(Window.orderBy(*order)) - 1
    return rows.withColumn("index", index)


def with_peers(frame: DataFrame, indices: Indices, *columns: str) -> DataFrame:
    """Names of peers in those columns → indices; null stays null."""
    return reduce(lambda f, column: _replace(f, indices.peers, column), columns, frame)


def with_topics(frame: DataFrame, indices: Indices) -> DataFrame:
    """Names in column `topic` → indices; null stays null."""
    return _replace(frame, indices.topics, "topic")


def with_messages(frame: DataFrame, indices: Indices) -> DataFrame:
    """Names in column `message` → indices."""
    assert indices.messages is not None
    return _replace(frame, indices.messages, "message")


def _replace(frame: DataFrame, index: DataFrame, column: str) -> DataFrame:
    named = index.select(F.col("name").alias(column), F.col("index").alias(f"{column}_index"))
    order = [F.col(f"{c}_index").alias(c) if c == column else F.col(c) for c in frame.columns]
    return frame.join(named, column, "left").select(*order)
