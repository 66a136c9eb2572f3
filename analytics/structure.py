"""The overlay's structure in every interval, from versions, by an engine.

An engine makes of the versions of a run a row per peer and interval. The row of an interval's first
peer also holds the rows of its topics and of the interval as a whole. `kernels` is a step of
vizpub.analytics.steps: one task rebuilds the overlay of every interval of a block, and measures it
with compiled kernels. So the number of Spark jobs does not depend on the number of intervals, and a
version is read once per block, not once per interval.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from vizpub.analytics.intervals import sampled
from vizpub.analytics.options import Measures
from vizpub.machine.jvm.artifacts import cache_path
from vizpub.model.clock import Clock
from vizpub.model.columns import Table
from vizpub.model.metrics import METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from vizpub.model.own import OwnMetric, with_own

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from vizpub.analytics.blocks import BlockMetrics
    from vizpub.analytics.own import Columns, OverlayPeriods

_PRESENCE, _LINK, _SUBSCRIPTION = 0, 1, 2
NESTED = ("topics", "overlay")
"""Columns of the structure that hold rows of other metrics tables."""

TASK_BYTES = 4_000_000_000
"""Memory of a task's Python: a quarter of a machine that has 16 GB for four tasks."""

_BYTES_PER_PEER, _BYTES_PER_LINK = 1_500, 150
"""Measured at 20,000 to 1,000,000 peers with 5 to 20 links each: 260 bytes per peer, up to 1,200
more while betweenness is sampled in lanes, and 100 to 120 per link."""


def _graph_schema(table: Table, *more: str) -> pa.Schema:
    """The key of a metrics table, its columns about the graph, and `more` of its columns."""
    names = {*table.key, *more, *(column.name for column in table if column.graph)}
    return pa.schema([field.with_nullable(True) for field in table.arrow if field.name in names])


def structure_schema(own_metrics: Iterable[OwnMetric] = ()) -> pa.Schema:
    """A row per present peer: the graph's columns of metrics/peers, and subscriptions. The first
    row of each interval also has the graph's columns of metrics/topics (for topics with
    subscribers) and of metrics/overlay; the other rows have null there. Own metrics of peers,
    topics and intervals are among these columns.
    """
    own_metrics = tuple(own_metrics)
    names = [metric.name for metric in own_metrics]
    peers, topics, overlay = (
        _graph_schema(with_own(table, own_metrics), *more, *names)
        for table, more in (
            (METRICS_PEERS, ["subscriptions"]),
            (METRICS_TOPICS, ["subscribers"]),
            (METRICS_OVERLAY, []),
        )
    )
    nested = zip(NESTED, (topics, overlay), strict=True)
    return pa.schema([*peers, *((name, pa.list_(pa.struct(list(of)))) for name, of in nested)])


STRUCTURE_SCHEMA = structure_schema()


def settled_schemas(own_metrics: Iterable[OwnMetric] = ()) -> dict[str, pa.Schema]:
    """Schemas of the structure's columns in metrics tables, by the steps' names of them."""
    schema = structure_schema(own_metrics)
    peers = [field for field in schema if field.name not in NESTED]
    nested = {name: pa.schema(schema.field(name).type.value_type) for name in NESTED}
    schemas = {"peers": pa.schema([*peers, pa.field("present", pa.bool_())]), **nested}
    return {f"settled_{name}": schema for name, schema in schemas.items()}


@dataclass(frozen=True)
class Versions:
    """Input of an engine: validity periods in ticks. Columns as in vizpub.model.tables."""

    presence: DataFrame
    links: DataFrame
    subscriptions: DataFrame


def select_layers(links: DataFrame, layers: tuple[str, ...] | None) -> DataFrame:
    """The links of those layers; all links if layers is null."""
    return links if layers is None else links.where(F.col("layer").isin(*layers))


def fits_task(peers: int, links: int) -> bool:
    """Return True if the kernels can measure an overlay of that size in one task."""
    return _BYTES_PER_PEER * peers + _BYTES_PER_LINK * links <= TASK_BYTES


def largest_interval(versions: Versions, clock: Clock) -> tuple[int, int]:
    """The largest number of peers and of links of an interval (links of two layers count twice).

    One Spark job: counts begins and ends per interval, and sums them over the intervals in two
    tasks.
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
    largest = {row["what"]: row["most"] for row in most.collect()}
    return largest.get("peers", 0), largest.get("links", 0)


def cache_kernels() -> None:
    """Compile kernels once per machine, not once per worker process."""
    # The folder of the code may be read-only.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_path() / "numba"))


def measure_versions(rows: pa.Table, window: range, measures: Measures, begins: int) -> pa.Table:
    """Rows of `structure_schema` of the intervals of the window, by the kernels.

    `rows` is what the step `versions` makes. `begins` is the first interval of the run.
    """
    if not len(rows) or not window:
        return structure_schema(own_columns.metric for own_columns in measures.own).empty_table()
    cache_kernels()
    from vizpub.analytics.blocks import (
        LinkPeriods,
        PresencePeriods,
        SubscriptionPeriods,
        measure_block,
    )

    peer, _, start, stop = _spans(rows, _PRESENCE)
    measured = measure_block(
        LinkPeriods(*_spans(rows, _LINK)),
        PresencePeriods(peer, start, stop),
        SubscriptionPeriods(*_spans(rows, _SUBSCRIPTION)),
        window.start,
        window.stop - 1,
        measures,
    )
    if not measures.own:
        return structure_rows(measured)
    from vizpub.analytics.own import measure_own

    own_columns = measure_own(measures.own, _overlay_periods(rows), window, begins)
    return structure_rows(
        measured, structure_schema(function.metric for function in measures.own), own_columns
    )


def _overlay_periods(rows: pa.Table) -> OverlayPeriods:
    """The rows as own metrics see them."""
    from vizpub.analytics.own import OverlayPeriods, Spans

    def of(kind: int, **names: str) -> Spans:
        chosen = rows.filter(pc.equal(rows["kind"], kind))
        columns = chosen.select(list(names.values())).rename_columns(list(names))
        return Spans(columns, chosen["start"].to_numpy(), chosen["stop"].to_numpy())

    return OverlayPeriods(
        of(_PRESENCE, peer="a"),
        of(_LINK, src="a", dst="b", layer="layer", topic="topic"),
        of(_SUBSCRIPTION, topic="b", peer="a"),
    )


def _spans(rows: pa.Table, kind: int) -> list[npt.NDArray[np.int32]]:
    """The columns a, b, start, stop of the rows of one kind."""
    chosen = rows.filter(pc.equal(rows["kind"], kind))
    return [chosen[name].to_numpy() for name in ("a", "b", "start", "stop")]


def structure_rows(
    measured: BlockMetrics,
    schema: pa.Schema = STRUCTURE_SCHEMA,
    own_columns: Mapping[str, Columns] | None = None,
) -> pa.Table:
    """Rows of `structure_schema` from the metrics of a block, and the own ones by level."""
    from vizpub.analytics.snapshots import (
        interval_columns,
        peer_columns,
        topic_columns,
        topic_diameter_mean,
    )

    peers, topics = peer_columns(measured.peers), topic_columns(measured.topics)
    if not peers["interval"].size:
        return schema.empty_table()
    overlay = interval_columns(measured.peers, peers, measured.intervals)
    overlay["topic_diameter_mean"] = topic_diameter_mean(topics, overlay["interval"])
    for level, measured_columns in (("peer", peers), ("topic", topics), ("overlay", overlay)):
        measured_columns.update((own_columns or {}).get(level, {}))
    arrays = _arrow_columns(peers, [f for f in schema if f.name not in NESTED])
    for name, columns in zip(NESTED, (topics, overlay), strict=True):
        fields = list(schema.field(name).type.value_type)
        rows = pa.StructArray.from_arrays(_arrow_columns(columns, fields), fields=fields)
        arrays.append(_beside_first_peers(rows, columns["interval"], peers["interval"]))
    return pa.Table.from_arrays(arrays, schema=schema)


def _arrow_columns(
    columns: Mapping[str, npt.NDArray[Any]], fields: Iterable[pa.Field]
) -> list[pa.Array]:
    """Convert columns; NaN, and -1 of integers, become null."""
    arrays = []
    for field in fields:
        array = pa.array(columns[field.name], from_pandas=True).cast(field.type)
        if columns[field.name].dtype.kind == "i":
            array = pc.if_else(pc.equal(array, -1), pa.scalar(None, field.type), array)
        arrays.append(array)
    return arrays


def _beside_first_peers(
    rows: pa.StructArray, intervals: npt.NDArray[Any], peers: npt.NDArray[Any]
) -> pa.ListArray:
    """The rows of each of the `intervals` as a list in the row of its first peer. `peers` has the
    interval of each peer's row. Both ascend; every interval with rows has peers.
    """
    import numpy as np

    numbers, firsts = np.unique(peers, return_index=True)
    is_first = np.zeros(peers.size, np.bool_)
    is_first[firsts] = True
    ends = np.zeros(peers.size, np.int32)
    ends[firsts] = np.diff(np.searchsorted(intervals, [*numbers, numbers[-1] + 1]))
    offsets = np.concatenate([[0], np.cumsum(ends)]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), rows, mask=pa.array(~is_first), type=pa.list_(rows.type)
    )
