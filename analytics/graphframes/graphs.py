"""The overlays of several intervals as one GraphFrame, their disjoint union.

A peer in an interval is the vertex `interval << 32 | peer`. No link connects two intervals, so one
run of an algorithm measures all intervals. GraphFrames' classes run in Spark's JVM;
`load_graphframes` loads them there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

from py4j.java_gateway import JavaPackage
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from vizpub.analytics.intervals import per_interval
from vizpub.machine.jvm.artifacts import graphframes_jars
from vizpub.machine.modules import needing_extra
from vizpub.model.clock import Clock

if TYPE_CHECKING:
    from graphframes import GraphFrame

    from vizpub.analytics.structure import Versions

STORAGE = StorageLevel.MEMORY_AND_DISK_DESER
"""Storage level of frames that are cached while a graph is measured."""

_PEER_BITS = 32
_PEER_MASK = 2**_PEER_BITS - 1


def load_graphframes(spark: SparkSession) -> None:
    """Load GraphFrames' classes into the session, unless it was started with them.

    Raises: UseError without the extra `graphframes`; ArtifactsMissing, UseError (see
    `vizpub.machine.jvm.artifacts.graphframes_jars`).
    """
    with needing_extra("graphframes", "the engine graphframes"):
        import graphframes  # noqa: F401
    if _is_loaded(spark):
        return
    for jar in graphframes_jars():
        # A running session accepts jars only by this statement: for itself and its executors.
        spark.sql(f"ADD JAR '{jar.as_uri()}'")


def _is_loaded(spark: SparkSession) -> bool:
    jvm = spark._jvm
    # If the JVM has no such class, py4j treats the name as a package.
    return jvm is not None and not isinstance(jvm.org.graphframes.GraphFramePythonAPI, JavaPackage)


def vertex(peer: str) -> Column:
    """The vertex of the peer in that column, in the interval of the column `interval`."""
    return F.shiftleft(F.col("interval").cast("long"), _PEER_BITS).bitwiseOR(F.col(peer))


def peer_of(vertex: str) -> Column:
    """The peer (int32) of the vertex in that column."""
    return F.col(vertex).bitwiseAND(F.lit(_PEER_MASK)).cast("int")


def union_graph(versions: Versions, window: Clock) -> GraphFrame:
    """The overlays of the window's intervals.

    Vertices: id (int64), interval, peer, topics (its subscriptions, ascending, possibly
    none). Edges: src, dst (int64), interval; distinct, of two peers that are both present.

        id           interval  peer  topics        src          dst          interval
        12884901889  3         1     [0, 2]        12884901889  12884901890  3
        12884901890  3         2     []
    """
    from graphframes import GraphFrame

    peers = per_interval(versions.presence, window).select("interval", "peer").distinct()
    topics = (
        per_interval(versions.subscriptions, window)
        .groupBy("interval", "peer")
        .agg(F.array_sort(F.collect_set("topic")).alias("topics"))
    )
    vertices = peers.join(topics, ["interval", "peer"], "left").select(
        vertex("peer").alias("id"),
        "interval",
        "peer",
        F.coalesce("topics", F.array().cast("array<int>")).alias("topics"),
    )
    links = per_interval(versions.links.where("src <> dst"), window)
    for end in ("src", "dst"):
        links = links.join(peers.withColumnRenamed("peer", end), ["interval", end], "left_semi")
    edges = links.select(vertex("src").alias("src"), vertex("dst").alias("dst"), "interval")
    return GraphFrame(vertices, edges.distinct())


def undirected_graph(graph: GraphFrame) -> GraphFrame:
    """The same vertices (id only), and each linked pair once, src < dst."""
    from graphframes import GraphFrame

    pairs = graph.edges.select(F.least("src", "dst").alias("src"), F.greatest("src", "dst"))
    return GraphFrame(graph.vertices.select("id"), pairs.toDF("src", "dst").distinct())


def motifs_by_topic(graph: GraphFrame, motif: str = "(a)-[e]->(b)") -> DataFrame:
    """The places where the motif is found among the subscribers of one topic.

    A row per place and topic: the motif's columns (of a vertex id, interval, peer and topics;
    of an edge src, dst and interval) and `topic`.
    """
    vertex_names = dict.fromkeys(re.findall(r"\((\w+)\)", motif))
    shared = reduce(F.array_intersect, [F.col(f"{name}.topics") for name in vertex_names])
    matches: DataFrame = graph.find(motif)
    return matches.withColumn("topic", F.explode(shared))


def topic_links(graph: GraphFrame) -> DataFrame:
    """Links whose two ends subscribe to the topic: interval, topic, topic_links (int64).

    A topic without such links has no row.
    """
    return (
        motifs_by_topic(graph)
        .groupBy(F.col("e.interval").alias("interval"), "topic")
        .agg(F.count("*").alias("topic_links"))
    )


@contextmanager
def cached_frames(spark: SparkSession) -> Iterator[Callable[[DataFrame], DataFrame]]:
    """Yields a function that registers a cached frame; at the end all of them are released, and
    also the intermediate graphs that GraphFrames' algorithms leave in the cache.
    """
    persisted = spark.sparkContext._jsc.getPersistentRDDs
    cached_earlier, frames = set(persisted()), list[DataFrame]()

    def keep(frame: DataFrame) -> DataFrame:
        frames.append(frame)
        return frame

    try:
        yield keep
    finally:
        for frame in frames:
            frame.unpersist()
        for number, rdd in dict(persisted()).items():
            if number not in cached_earlier and rdd.name() in ("VertexRDD", "EdgeRDD"):
                rdd.unpersist(False)
