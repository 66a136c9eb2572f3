"""Dense integers for the names of peers, topics and messages.

The order is fixed, so the same input always gives the same indices, and later input only adds new
ones: names by the interval that first has them, then numbers by value and other names by text;
messages by time of publication.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce

from pyspark.sql import Column, DataFrame, GroupedData, Window
from pyspark.sql import functions as F

from ingest.fold import NAME_COLUMNS
from ingest.sources.base import Observed
from model.clock import Clock


@dataclass(frozen=True)
class Indices:
    """The index of each name. All frames have the columns name, index."""

    peers: DataFrame
    topics: DataFrame
    messages: DataFrame | None
    """Null where messages are not reported."""


@dataclass(frozen=True)
class Known:
    """Existing indices: a frame name, index, and the number of indices in use."""

    names: DataFrame
    taken: int


def observed_tables(observed: Observed) -> dict[str, DataFrame]:
    """The observed tables that are known, by name."""
    tables = {f.name: getattr(observed, f.name) for f in fields(observed)}
    return {name: frame for name, frame in tables.items() if isinstance(frame, DataFrame)}


def peer_index(observed: Observed, clock: Clock, known: Known | None = None) -> DataFrame:
    """name, index, is_reporter of every named peer."""
    index = _numbered(_since(observed, "peer", clock), _natural(), known)
    reporting = observed.peers.select("name", "is_reporter")
    return index.join(reporting, "name", "left").fillna(False, ["is_reporter"])


def topic_index(observed: Observed, clock: Clock, known: Known | None = None) -> DataFrame:
    """name, index of every named topic."""
    return _numbered(_since(observed, "topic", clock), _natural(), known)


def message_index(observed: Observed, known: Known | None = None) -> DataFrame:
    """name, index of every message, the earliest first."""
    rows = _named(observed, "message").agg(F.min("tick").alias("tick"))
    return _numbered(rows, (F.asc("tick"), F.asc("name")), known)


def _named(observed: Observed, kind: str) -> GroupedData:
    """The rows of each name of the kind."""
    known = F.col("table").isin(*observed_tables(observed))
    return observed.names.where((F.col("kind") == kind) & known).groupBy("name")


def _since(observed: Observed, kind: str, clock: Clock) -> DataFrame:
    """name, since: the first interval in which the name occurs."""
    begins = F.expr(f"CAST(COALESCE(interval, valid_from DIV {clock.ticks_per_interval}) AS INT)")
    return _named(observed, kind).agg(F.min(begins).alias("since"))


def _natural() -> tuple[Column, ...]:
    number = F.col("name").try_cast("decimal(38,0)")
    return F.asc_nulls_last("since"), F.asc_nulls_last(number), F.asc("name")


def _numbered(rows: DataFrame, order: Sequence[Column], known: Known | None) -> DataFrame:
    """name, index: one row per name; known names keep their indices."""
    fresh = rows if known is None else rows.join(known.names, "name", "left_anti")
    # One partition sorts all names; there are far fewer names than rows that refer to them.
    index = F.row_number().over(Window.orderBy(*order)) - 1 + (known.taken if known else 0)
    numbered = fresh.withColumn("index", index).select("name", "index")
    return numbered if known is None else known.names.select("name", "index").unionAll(numbered)


def with_indices(frame: DataFrame, indices: Indices) -> DataFrame:
    """Names of peers and topics, in whatever columns, → indices; null stays null."""
    peers = [name for name in frame.columns if name in NAME_COLUMNS["peer"] and name != "name"]
    named = with_peers(frame, indices, *peers)
    return with_topics(named, indices) if "topic" in frame.columns else named


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
