"""The overlay's structure in every interval, from versions, by an engine.

An engine is a function from the versions of a run to a row per peer and interval and a row
per topic and interval. `kernels` cuts the run into blocks of intervals; one Spark task
rebuilds the overlay of every interval of a block and measures it with compiled kernels, so
the number of Spark jobs does not depend on the number of intervals, and a version is read
once per block that it touches, not once per interval.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.intervals import sampled
from model.clock import Clock

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ROWS_PER_BLOCK = 1_000_000
"""Rows of peers that one task holds at once."""

_PRESENCE, _LINK, _SUBSCRIPTION = 0, 1, 2

_STRUCTURE = {
    "interval": pa.int32(),
    "peer": pa.int32(),
    "in_degree": pa.int32(),
    "out_degree": pa.int32(),
    "degree": pa.int32(),
    "clustering": pa.float64(),
    "betweenness": pa.float64(),
    "betweenness_error": pa.float64(),
    "distance_sum": pa.int64(),
    "reach": pa.int32(),
    "eccentricity": pa.int32(),
    "component": pa.int32(),
    "strong_component": pa.int32(),
    "subscriptions": pa.int32(),
    "topic": pa.int32(),
    "subscribers": pa.int32(),
    "topic_links": pa.int32(),
    "components": pa.int32(),
    "topic_diameter": pa.int32(),
    "pairs": pa.int64(),
}
STRUCTURE_SCHEMA = pa.schema(list(_STRUCTURE.items()))
"""A row is of a peer (topic null) or of a topic (peer null). A peer's `distance_sum` is over
the `reach` peers it reaches; a topic's over the `pairs` of subscribers that are connected.
`eccentricity` and `topic_diameter` are null where nothing is reached."""


@dataclass(frozen=True)
class Versions:
    """What an engine reads: spans in ticks, by dense indices. Columns as in model.tables."""

    presence: DataFrame
    links: DataFrame
    subscriptions: DataFrame
    peers: int = 0
    """How many peers there are: bounds what a task gives back at once."""


Engine = Callable[[Versions, Clock], DataFrame]
"""Versions and clock → rows of `STRUCTURE_SCHEMA` for each interval of the run."""


def measure(versions: Versions, clock: Clock, engine: str = "kernels") -> DataFrame:
    """Rows of `STRUCTURE_SCHEMA` from the engine of that name."""
    return ENGINES[engine](versions, clock)


def chosen_layers(links: DataFrame, layers: tuple[str, ...] | None) -> DataFrame:
    """The links of those layers; all where none is chosen."""
    return links if layers is None else links.where(F.col("layer").isin(*layers))


def by_kernels(versions: Versions, clock: Clock) -> DataFrame:
    """The engine `kernels`; see the module."""
    spark = versions.presence.sparkSession
    tasks = max(int(spark.conf.get("spark.sql.shuffle.partitions") or 1), 1)
    size = max(1, -(-clock.intervals // (2 * tasks)))
    if versions.peers:
        size = max(1, min(size, _ROWS_PER_BLOCK // versions.peers))
    blocks = -(-clock.intervals // size)
    rows = _cut_into_blocks(_together(versions, clock), clock, size)
    # An explicit number of partitions: left to itself, Spark folds small groups into one task.
    spread = rows.repartition(min(blocks, 4 * tasks), "block")
    return spread.groupBy("block").applyInArrow(
        _block_measurer(clock, size), from_arrow_schema(STRUCTURE_SCHEMA)
    )


ENGINES: Mapping[str, Engine] = {"kernels": by_kernels}


def _together(versions: Versions, clock: Clock) -> DataFrame:
    """All versions as rows (kind, a, b, start, stop) of one table, to be grouped at once."""
    kinds = (
        (_PRESENCE, versions.presence, "peer", "peer"),
        (_LINK, versions.links, "src", "dst"),
        (_SUBSCRIPTION, versions.subscriptions, "peer", "topic"),
    )
    parts = [
        sampled(spans, clock).select(
            F.lit(kind).cast("byte").alias("kind"),
            F.col(a).alias("a"),
            F.col(b).alias("b"),
            "start",
            "stop",
        )
        for kind, spans, a, b in kinds
    ]
    return reduce(DataFrame.unionAll, parts)


def _cut_into_blocks(rows: DataFrame, clock: Clock, size: int) -> DataFrame:
    first, last = (F.expr(f"({edge} - {clock.first}) div {size}") for edge in ("start", "stop - 1"))
    return rows.withColumn("block", F.explode(F.sequence(first, last)))


def _block_measurer(clock: Clock, size: int) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    first, last = clock.first, clock.last

    def measure_one(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        _cache_kernels()
        begin = first + key[0].as_py() * size
        return _measured(rows, begin, min(begin + size - 1, last))

    return measure_one


def _cache_kernels() -> None:
    # Compiled once per machine, not once per worker process; beside the code may be read-only.
    from platformdirs import user_cache_path

    cache = os.environ.get("VIZPUB_CACHE") or str(user_cache_path("vizpub"))
    os.environ.setdefault("NUMBA_CACHE_DIR", os.path.join(cache, "numba"))


def _measured(rows: pa.Table, first: int, last: int) -> pa.Table:
    from analytics.blocks import Links, Presence, Subscriptions, measure_block

    measured = measure_block(
        Links(*_spans(rows, _LINK)),
        Presence(*_spans(rows, _PRESENCE)[:1], *_spans(rows, _PRESENCE)[2:]),
        Subscriptions(*_spans(rows, _SUBSCRIPTION)),
        first,
        last,
    )
    parts = [_arrow_rows(measured.peers), _arrow_rows(measured.topics)]
    return pa.concat_tables([part.select(parts[0].column_names) for part in parts])


def _spans(rows: pa.Table, kind: int) -> list[npt.NDArray[np.int32]]:
    """The columns a, b, start, stop of the rows of one kind."""
    chosen = rows.filter(pc.equal(rows["kind"], kind))
    return [chosen[name].to_numpy() for name in ("a", "b", "start", "stop")]


def _arrow_rows(columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Kernel columns as rows of `STRUCTURE_SCHEMA`; its -1 and NaN become null."""
    length = len(columns["interval"])
    arrays = []
    for field in STRUCTURE_SCHEMA:
        if field.name not in columns:
            arrays.append(pa.nulls(length, field.type))
            continue
        values = pa.array(columns[field.name], from_pandas=True).cast(field.type)
        if field.name in ("eccentricity", "topic_diameter"):
            values = pc.replace_with_mask(values, pc.equal(values, -1), pa.scalar(None, field.type))
        arrays.append(values)
    return pa.Table.from_arrays(arrays, schema=STRUCTURE_SCHEMA)
