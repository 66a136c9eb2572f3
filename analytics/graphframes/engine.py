"""The engine `graphframes`: the overlays of many intervals as one graph, measured by GraphFrames.

GraphFrames computes degrees, weak and strong components, triangles (and so clustering), PageRank
and, by a motif, the links within each topic, on the whole cluster. It has no betweenness, and
distances only from a few landmarks, so the kernels measure metrics of shortest paths from the
graph's edges, an interval per task. If the largest interval does not fit into a task, these
metrics are null.

Kernels are imported where they are called: they are compiled on import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from vizpub.analytics.graphframes.graphs import (
    STORAGE,
    cached_frames,
    load_graphframes,
    peer_of,
    topic_links,
    undirected_graph,
    union_graph,
)
from vizpub.analytics.options import DAMPING, PLAIN_PLANS, Measures
from vizpub.analytics.structure import (
    STRUCTURE_SCHEMA,
    Versions,
    cache_kernels,
    fits_task,
    largest_interval,
    structure_rows,
)
from vizpub.model.clock import Clock

if TYPE_CHECKING:
    from graphframes import GraphFrame

    from vizpub.analytics.blocks import BlockMetrics, Columns

_ROWS_PER_GRAPH = 2_000_000
"""Vertices and edges of one graph. Algorithms hold about four copies of them in memory, of about
50 bytes a row: a fifth of the driver's default memory. A larger interval is a graph of its own."""

_RANK_TOLERANCE = 1e-9
"""Tolerance of a rank, which is 1 on average; the error is larger by 1 / (1 - damping)."""
_UNBOUNDED = 2**31 - 2
"""Limit of iterations; the algorithms for components end without it."""


def measure_with_graphframes(versions: Versions, clock: Clock, measures: Measures) -> DataFrame:
    """The engine `graphframes`; see the module. Unlike `kernels` it runs at once.

    One graph for as many intervals as memory allows, so the number of Spark jobs grows with
    the size of all intervals together, not with their number. The executors keep the
    result (in the session's checkpoint directory, if it has one) until it is written.

    Raises: ArtifactsMissing, UseError if GraphFrames is not available.
    """
    spark = versions.presence.sparkSession
    load_graphframes(spark)
    peers, links = largest_interval(versions, clock)
    size = max(1, _ROWS_PER_GRAPH // max(1, peers + links))
    firsts = range(clock.first, clock.last + 1, size)
    windows = [replace(clock, first=i, last=min(i + size - 1, clock.last)) for i in firsts]
    paths = fits_task(peers, links)
    with _compiled_plans(spark):
        parts = [_measure_window(versions, window, measures, paths=paths) for window in windows]
    return reduce(DataFrame.unionAll, parts)


@contextmanager
def _compiled_plans(spark: SparkSession) -> Iterator[None]:
    """Let Spark compile and adapt plans in the block, as it does by default."""
    settings = {key: spark.conf.get(key, None) for key in PLAIN_PLANS}
    for key in PLAIN_PLANS:
        spark.conf.unset(key)
    try:
        yield
    finally:
        for key, value in settings.items():
            if value is not None:
                spark.conf.set(key, value)


def _measure_window(
    versions: Versions, window: Clock, measures: Measures, *, paths: bool
) -> DataFrame:
    spark = versions.presence.sparkSession
    with cached_frames(spark) as keep:
        graph = union_graph(versions, window).persist(STORAGE)
        keep(graph.vertices)
        keep(graph.edges)
        peers = _measure_peers(graph, keep).groupBy("interval")
        links_and_topics = _links_and_topics(graph, paths=paths).groupBy("interval")
        rows = peers.cogroup(links_and_topics).applyInArrow(
            _assembler(measures, paths=paths), from_arrow_schema(STRUCTURE_SCHEMA)
        )
        return rows.localCheckpoint() if _is_local(spark) else rows.checkpoint()


def _is_local(spark: SparkSession) -> bool:
    """Return True if results stay with the executors, as no checkpoint directory is set."""
    return spark.sparkContext.getCheckpointDir() is None


def _measure_peers(graph: GraphFrame, keep: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Columns interval, peer, topics and `GRAPHFRAMES_COLUMNS`; pagerank is not normalised."""
    from graphframes import GraphFrame

    directed = GraphFrame(graph.vertices.select("id"), graph.edges.select("src", "dst"))
    pairs = undirected_graph(graph)
    keep(pairs.edges.persist(STORAGE))
    triangles: DataFrame = pairs.triangleCount(
        storage_level=STORAGE, algorithm="exact", lg_nom_entries=12
    )
    # Components have the name of their smallest vertex.
    components: DataFrame = directed.stronglyConnectedComponents(maxIter=_UNBOUNDED)
    # These solve r = (1 - d) + d · (incoming rank), separately for each interval. The rank of a
    # peer without outgoing links is not passed on. Passing it on to all peers alike, as usual,
    # would add the same amount to every peer: divided by their sum, the ranks are the usual ones.
    ranks: DataFrame = directed.pageRank(
        resetProbability=1 - DAMPING, sourceId=None, maxIter=None, tol=_RANK_TOLERANCE
    ).vertices
    measured: DataFrame = reduce(
        lambda first, second: first.join(second, "id", "left"),
        [
            graph.vertices,
            _counts(directed.inDegrees, "in_degree"),
            _counts(directed.outDegrees, "out_degree"),
            _counts(pairs.degrees, "degree"),
            keep(triangles).select("id", F.col("count").alias("triangles")),
            keep(_weak_components(pairs)).select("id", peer_of("component").alias("component")),
            keep(components).select("id", peer_of("component").alias("strong_component")),
            ranks.select("id", "pagerank"),
        ],
    ).fillna(0, ["in_degree", "out_degree", "degree"])
    clustering = F.expr("IF(degree < 2, 0.0D, 2.0D * triangles / degree / (degree - 1))")
    return measured.withColumn("clustering", clustering).select(
        "interval", "peer", "topics", *GRAPHFRAMES_COLUMNS
    )


def _counts(degrees: DataFrame, name: str) -> DataFrame:
    """GraphFrames' degrees (id, and a count) under our name."""
    return degrees.toDF("id", name).withColumn(name, F.col(name).cast("int"))


def _weak_components(pairs: GraphFrame) -> DataFrame:
    """Weak components, named by their smallest vertex."""
    components: DataFrame = pairs.connectedComponents(
        algorithm="graphx",
        checkpointInterval=2,
        broadcastThreshold=-1,
        useLabelsAsComponents=True,
        use_local_checkpoints=_is_local(pairs.vertices.sparkSession),
        max_iter=_UNBOUNDED,
        storage_level=STORAGE,
    )
    return components


def _links_and_topics(graph: GraphFrame, *, paths: bool) -> DataFrame:
    """Rows (interval, kind, a, b) as `assemble_metrics` takes them."""

    def rows(frame: DataFrame, kind: int) -> DataFrame:
        return frame.toDF("interval", "a", "b").withColumn("kind", F.lit(kind))

    topics = rows(topic_links(graph), TOPIC)
    links = rows(graph.edges.select("interval", peer_of("src"), peer_of("dst")), LINK)
    return links.unionAll(topics) if paths else topics


def _assembler(
    measures: Measures, *, paths: bool
) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    def assemble(_: tuple[Any, ...], peers: pa.Table, links_and_topics: pa.Table) -> pa.Table:
        cache_kernels()
        return structure_rows(
            assemble_metrics(peers.sort_by("peer"), links_and_topics, measures, paths=paths)
        )

    return assemble


LINK, TOPIC = 0, 1
GRAPHFRAMES_COLUMNS = (
    "in_degree", "out_degree", "degree", "clustering", "component", "strong_component", "pagerank",
)  # fmt: skip
"""Columns of metrics/peers that GraphFrames finds; pagerank is not normalised yet."""

_OF_PATHS = (
    "distance_sum", "reachable_peers", "eccentricity", "mean_distance_error",
    "betweenness", "betweenness_error",
)  # fmt: skip
_OF_TOPIC_PATHS = (
    "components", "topic_diameter", "distance_sum", "pairs", "topic_average_path_length_error",
)  # fmt: skip


def assemble_metrics(
    peers: pa.Table, links_and_topics: pa.Table, measures: Measures, *, paths: bool
) -> BlockMetrics:
    """The metrics of one interval, in the form of `vizpub.analytics.blocks.measure_block`.

    `peers`: interval, peer, topics (a list) and `GRAPHFRAMES_COLUMNS`, ascending by peer, at
    least one row.
    `others`: rows (kind, a, b), of kind `LINK` a link's peers, of kind `TOPIC` a topic and the
    number of links within it. Without `paths` the links are not read, and metrics of
    shortest paths are NaN.
    """
    metrics = (
        _measure_with_kernels(peers, links_and_topics, measures) if paths else _without_paths(peers)
    )
    ranks = peers["pagerank"].to_numpy()
    metrics.peers.update({name: peers[name].to_numpy() for name in GRAPHFRAMES_COLUMNS})
    metrics.peers["pagerank"] = ranks / ranks.sum()
    if not measures.topics:
        return metrics._replace(topics={name: x[:0] for name, x in metrics.topics.items()})
    topics = metrics.topics["topic"]
    rows = links_and_topics.filter(pc.equal(links_and_topics["kind"], TOPIC))
    links = np.zeros(len(topics), np.int64)
    links[np.searchsorted(topics, rows["a"].to_numpy())] = rows["b"].to_numpy()
    metrics.topics["topic_links"] = links
    return metrics


def _measure_with_kernels(
    peers: pa.Table, links_and_topics: pa.Table, measures: Measures
) -> BlockMetrics:
    from vizpub.analytics.blocks import (
        LinkPeriods,
        PresencePeriods,
        SubscriptionPeriods,
        measure_block,
    )

    interval = peers["interval"][0].as_py()
    links = links_and_topics.filter(pc.equal(links_and_topics["kind"], LINK))

    def within_interval(*columns: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        start = np.full(len(columns[0]), interval)
        return (*columns, start, start + 1)

    return measure_block(
        LinkPeriods(*within_interval(links["a"].to_numpy(), links["b"].to_numpy())),
        PresencePeriods(*within_interval(peers["peer"].to_numpy())),
        SubscriptionPeriods(*within_interval(*_subscriptions(peers))),
        interval,
        interval,
        measures,
    )


def _without_paths(peers: pa.Table) -> BlockMetrics:
    from vizpub.analytics.blocks import BlockMetrics

    interval = peers["interval"].to_numpy()
    topics, subscribers = np.unique(_subscriptions(peers)[1], return_counts=True)
    peer_columns: Columns = {
        "interval": interval,
        "peer": peers["peer"].to_numpy(),
        **{name: np.full(len(interval), np.nan) for name in _OF_PATHS},
        "subscriptions": pc.list_value_length(peers["topics"]).to_numpy(),
    }
    topic_columns: Columns = {
        "interval": np.full(len(topics), interval[0]),
        "topic": topics,
        "subscribers": subscribers,
        **{name: np.full(len(topics), np.nan) for name in _OF_TOPIC_PATHS},
    }
    interval_columns = {"interval": interval[:1], "average_path_length_error": np.array([np.nan])}
    return BlockMetrics(peer_columns, topic_columns, interval_columns)


def _subscriptions(peers: pa.Table) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Peer and topic of each subscription."""
    topics = peers["topics"].combine_chunks()
    subscriber = pc.list_parent_indices(topics).to_numpy()
    return peers["peer"].to_numpy()[subscriber], topics.flatten().to_numpy()
