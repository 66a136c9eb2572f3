"""How large the largest overlay of a run is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from analytics.intervals import sampled
from model.clock import Clock

if TYPE_CHECKING:
    from analytics.structure import Versions


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
