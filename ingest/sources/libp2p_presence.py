"""When a peer of a libp2p trace was there.

A peer that dies says nothing more: its file just ends, and only the others' closing of
their streams to it shows when. A peer that has no file is there while others that are
there hold a stream to it.
"""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.sources.libp2p_events import Type
from ingest.versions import clip
from model.clock import OPEN


def reporting(events: DataFrame, streams: DataFrame) -> DataFrame:
    """The stay of each peer that reports: peer, vf, vt; one row each.

    From its first own event to the first closing of a stream to it by another peer at or
    after its last own event, provided no stream to it stays open from a peer that is
    itself still present; else it stays open.

    Takes the events with their tick, and the streams (src, dst, vf, vt).
    """
    own = events.groupBy("peer").agg(F.min("tick").alias("vf"), F.max("ts_ns").alias("last"))
    silent = _silent(events, own)
    gone = silent.join(_held(streams, silent), "peer", "left_anti")
    end = F.coalesce(F.greatest("end", F.col("vf") + 1), F.lit(OPEN))
    return own.join(gone, "peer", "left").select(
        "peer", "vf", F.when(F.col("end").isNull(), F.lit(OPEN)).otherwise(end).alias("vt")
    )


def named(streams: DataFrame, present: DataFrame) -> DataFrame:
    """The stays of peers that only others name: peer, vf, vt; these may overlap.

    `present` holds the stays of those that report.
    """
    held = clip(streams.select("src", "dst", "vf", "vt"), present, "src")
    stays = held.select(F.col("dst").alias("peer"), "vf", "vt")
    return stays.join(present, "peer", "left_anti")


def _silent(events: DataFrame, own: DataFrame) -> DataFrame:
    """Peers on which a stream was closed after the last they said: peer, end."""
    closings = events.where(
        (F.col("type") == Type.STREAM_CLOSED) & (F.col("peer") != F.col("other"))
    )
    on = closings.select(F.col("other").alias("peer"), F.col("ts_ns").alias("at"), "tick")
    after = on.join(own, "peer").where("at >= last")
    return after.groupBy("peer").agg(F.min("tick").alias("end"))


def _held(streams: DataFrame, silent: DataFrame) -> DataFrame:
    """The silent peers to which a present peer holds a stream that is never closed: peer.

    The greatest fixed point: all silent peers count as gone, those come back that a
    present peer holds a stream to, and these hold others. Only the open streams to
    silent peers matter, so one task walks them all.
    """
    targets = silent.select(F.col("peer").alias("dst"))
    holders = silent.select(F.col("peer").alias("src"), F.lit(True).alias("silent"))
    open_streams = streams.where((F.col("vt") == OPEN) & (F.col("src") != F.col("dst")))
    into = open_streams.select("src", "dst").join(targets, "dst").join(holders, "src", "left")
    return into.groupBy().applyInArrow(_reached, "peer string")


def _reached(streams: pa.Table) -> pa.Table:
    onward: defaultdict[str, list[str]] = defaultdict(list)
    reached: list[str] = []
    for stream in streams.to_pylist():
        start = onward[stream["src"]] if stream["silent"] else reached
        start.append(stream["dst"])
    found = set(reached)
    while reached:
        new = set(onward[reached.pop()]) - found
        found |= new
        reached.extend(new)
    return pa.table({"peer": pa.array(sorted(found), pa.string())})
