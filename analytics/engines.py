"""Which engine suits a run: `kernels` while its largest overlay fits into one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.intervals import sampled
from model.clock import Clock
from model.errors import ArtifactsMissing, UseError

if TYPE_CHECKING:
    from analytics.structure import Versions

TASK_BYTES = 4_000_000_000
"""What a task's Python may take: a quarter of a machine that has 16 GB for four tasks."""

_BYTES_PER_PEER, _BYTES_PER_LINK = 1_500, 150
"""Measured at 20,000 to 1,000,000 peers with 5 to 20 links each: 260 bytes per peer, up to 1,200
more while betweenness is sampled in lanes, and 100 to 120 per link."""


@dataclass(frozen=True)
class Choice:
    """An engine, and what the run's metadata says of it."""

    engine: str
    told: str


def engine_for(asked: str, versions: Versions, clock: Clock) -> Choice:
    """The engine of that name; for `auto` kernels while the largest interval fits into a task.

    Else GraphFrames; where that cannot be had, kernels are tried all the same, and it is told.
    """
    if asked != "auto":
        return Choice(asked, asked)
    if _all_fit(versions, clock):
        return Choice("kernels", "kernels")
    from analytics.graphframes.graphs import load_graphframes

    try:
        load_graphframes(versions.presence.sparkSession)
    except (ArtifactsMissing, UseError):
        return Choice("kernels", "kernels, for want of GraphFrames")
    return Choice("graphframes", "graphframes")


def fits_task(peers: int, links: int) -> bool:
    """Whether the kernels can measure an overlay of that size in one task."""
    return _BYTES_PER_PEER * peers + _BYTES_PER_LINK * links <= TASK_BYTES


def _all_fit(versions: Versions, clock: Clock) -> bool:
    """Asks for the largest interval only if so many peers can be linked so much."""
    peers = versions.peers
    return (peers > 0 and fits_task(peers, peers**2)) or fits_task(
        *largest_interval(versions, clock)
    )


def largest_interval(versions: Versions, clock: Clock) -> tuple[int, int]:
    """The most peers, and the most links, of any interval (links of two layers count twice).

    One Spark job: what begins and ends is counted per interval, and summed over the intervals
    by two tasks.
    """
    spans = sampled(versions.presence, clock).select(F.lit("peers").alias("what"), "start", "stop")
    links = sampled(versions.links, clock).select(F.lit("links"), "start", "stop")
    changes = F.explode(F.map_from_arrays(F.array("start", "stop"), F.array(F.lit(1), F.lit(-1))))
    alive = F.sum("change").over(Window.partitionBy("what").orderBy("interval"))
    most = (
        spans.unionAll(links)
        .select("what", changes.alias("interval", "change"))
        .groupBy("what", "interval")
        .agg(F.sum("change").alias("change"))
        .select("what", alive.alias("alive"))
        .groupBy("what")
        .agg(F.max("alive").alias("most"))
    )
    found = {row["what"]: row["most"] for row in most.collect()}
    return found.get("peers", 0), found.get("links", 0)
