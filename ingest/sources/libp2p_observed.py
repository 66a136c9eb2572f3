"""The observed tables of a libp2p trace (ingest.sources.base.Observed), one function each.

All take the events with the clock's columns: tick, interval, and order, which sorts the
events of one peer in one tick.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ingest.sources.libp2p_events import CONTROL, Type
from ingest.versions import lives
from model.clock import Clock
from model.columns import TRAFFIC_COLUMNS

_ARRIVAL = ("message", "topic", "peer", "other AS previous_hop", "time_us", "interval")


def on_clock(events: DataFrame, epoch_us: int, clock: Clock) -> DataFrame:
    """The events with tick = time_us (µs since the epoch), interval and order."""
    tick = F.expr(f"ts_ns div 1000 - {epoch_us}")
    return events.withColumns({"tick": tick, "order": F.struct("file", "position")}).withColumns(
        {"time_us": F.col("tick"), "interval": _interval("tick", clock)}
    )


def reporters(events: DataFrame) -> DataFrame:
    """The peers that wrote events: key, reports."""
    return events.select(F.col("peer").alias("key"), F.lit(True).alias("reports")).distinct()


def streams(events: DataFrame) -> DataFrame:
    """Lives of the streams that peers opened to others: src, dst, vf, vt."""
    changes = _changes(events, Type.STREAM_OPENED, Type.STREAM_CLOSED)
    return lives(changes, ["peer", "other"]).select(*_ends(), "vf", "vt")


def mesh(events: DataFrame) -> DataFrame:
    """Lives of mesh links: src, dst, topic, vf, vt.

    Besides a PRUNE, a link ends when the stream to the neighbour is closed or the topic is
    left; neither writes a PRUNE for it (seen in real traces, and in gossipsub.go).
    """
    thing = ["peer", "topic", "other"]
    changes = _changes(events, Type.GRAFT, Type.PRUNE).select(*thing, "tick", "order", "opens")
    links = changes.where("opens").select(*thing).distinct()
    closed = events.where(F.col("type") == Type.STREAM_CLOSED).drop("topic")
    left = events.where(F.col("type") == Type.LEAVE).drop("other")
    for closer, key in ((closed, ["peer", "other"]), (left, ["peer", "topic"])):
        closing = closer.join(links, key).withColumn("opens", F.lit(False))
        changes = changes.unionByName(closing.select(*changes.columns))
    return lives(changes, thing).select(*_ends(), "topic", "vf", "vt")


def links(overlay: DataFrame, meshes: DataFrame) -> DataFrame:
    """Streams as layer `overlay` and mesh links as layer `mesh`: src, dst, layer, topic, vf, vt."""
    columns = ["src", "dst", "layer", "topic", "vf", "vt"]
    no_topic = F.lit(None).cast("string")
    return (
        overlay.withColumns({"layer": F.lit("overlay"), "topic": no_topic})
        .select(columns)
        .union(meshes.withColumn("layer", F.lit("mesh")).select(columns))
    )


def subscriptions(events: DataFrame) -> DataFrame:
    """Lives of subscriptions: peer, topic, vf, vt."""
    return lives(_changes(events, Type.JOIN, Type.LEAVE), ["peer", "topic"])


def publications(events: DataFrame) -> DataFrame:
    """One row per PUBLISH: message, topic, publisher, interval, time_us, tick."""
    published = events.where(F.col("type") == Type.PUBLISH)
    return published.select(
        "message", "topic", F.col("peer").alias("publisher"), "interval", "time_us", "tick"
    )


def receptions(events: DataFrame) -> DataFrame:
    """DELIVER and DUPLICATE but for publishers' own deliveries, which are no arrivals.

    The own delivery came from the peer itself; where an old trace does not say from where,
    it is the one at the peer that published. Where a message is delivered again, long
    after, when the peer forgot it, only the first delivery is `first`.
    """
    arrived = events.where(F.col("type").isin(Type.DELIVER, Type.DUPLICATE))
    published = publications(events).select(
        "message", F.col("publisher").alias("peer"), F.lit(True).alias("own")
    )
    others = (
        arrived.join(published.distinct(), ["message", "peer"], "left")
        .where(F.coalesce(F.col("other") != F.col("peer"), F.col("own").isNull()))
        .withColumn("arrival", F.row_number().over(_in_time("peer")).cast("bigint"))
    )
    nth = F.row_number().over(_in_time("peer", "message", "type"))
    first = (F.col("type") == Type.DELIVER) & (nth == 1)
    return others.withColumn("first", first).selectExpr(
        *_ARRIVAL,
        *("tick", "arrival", "first"),
        *("CAST(NULL AS STRING) AS publisher", "CAST(NULL AS INT) AS hop"),
    )


def rejections(events: DataFrame) -> DataFrame:
    """REJECT of what came from others; of its own message it is no arrival."""
    refused = events.where((F.col("type") == Type.REJECT) & (F.col("peer") != F.col("other")))
    return refused.selectExpr(*_ARRIVAL, "tick", "reason")


def traffic(events: DataFrame, present: DataFrame, clock: Clock) -> DataFrame:
    """Peer and interval: control entries and messages of sent and received RPCs.

    A trace is complete, so a peer that was present (`present`: peer, vf, vt) and said
    nothing sent nothing: 0. `dropped` counts DROP_RPC events, which are not sent. Bytes
    are in no trace: null.
    """
    counted = events.groupBy("peer", "interval").agg(
        *(total.alias(name) for name, total in _totals().items())
    )
    quiet = _intervals(present, clock).select(
        "peer", "interval", *(F.lit(0).cast("bigint").alias(name) for name in _totals())
    )
    summed = (
        counted.unionByName(quiet)
        .groupBy("peer", "interval")
        .agg(*(F.sum(name).alias(name) for name in _totals()))
    )
    names = [*TRAFFIC_COLUMNS, "dropped", "duplicates"]
    unknown = {name: F.lit(None).cast("bigint") for name in names if name not in _totals()}
    return summed.withColumns(unknown).select("peer", "interval", *names)


def _totals() -> dict[str, Column]:
    control = sum((F.col(name) for name in CONTROL[1:]), F.col(CONTROL[0]))
    ways = {"sent": Type.SEND_RPC, "received": Type.RECV_RPC}
    counts = {"control_messages": control, "publication_messages": F.col("messages")}
    totals = {
        f"{name}_{way}": F.sum(F.when(F.col("type") == rpc, count).otherwise(0)).cast("bigint")
        for name, count in counts.items()
        for way, rpc in ways.items()
    }
    return totals | {"dropped": F.count_if(F.col("type") == Type.DROP_RPC)}


def _intervals(present: DataFrame, clock: Clock) -> DataFrame:
    """Every interval in some tick of which the peer was present: peer, interval."""
    end = F.least(F.col("vt") - 1, F.lit(clock.sampling_tick(clock.last)))
    first, last = _interval("vf", clock), _interval("end", clock)
    return present.withColumn("end", end).select(
        "peer", F.explode(F.sequence(first, last)).alias("interval")
    )


def _interval(tick: str, clock: Clock) -> Column:
    return F.expr(f"CAST({tick} div {clock.ticks_per_interval} AS INT)")


def _changes(events: DataFrame, opening: Type, closing: Type) -> DataFrame:
    changes = events.where(F.col("type").isin(opening, closing))
    return changes.withColumn("opens", F.col("type") == opening)


def _ends() -> list[Column]:
    return [F.col("peer").alias("src"), F.col("other").alias("dst")]


def _in_time(*keys: str) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy("tick", "order")
