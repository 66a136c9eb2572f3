"""The engines that measure an overlay, and the choice between them.

`kernels` is chosen if the run's largest overlay fits into one task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from vizpub.analytics.graphframes.graphs import load_graphframes
from vizpub.analytics.options import LEAST_SOURCES, LEAST_TARGETS, TARGETS_A_WORD, Measures
from vizpub.analytics.structure import Versions, fits_task, largest_interval
from vizpub.model.clock import Clock
from vizpub.model.errors import ArtifactsMissing, UseError
from vizpub.model.wording import amount


def measure_with_graphframes(versions: Versions, clock: Clock, measures: Measures) -> DataFrame:
    """Rows of `STRUCTURE_SCHEMA` for each interval, lazily. Raises: UseError for own metrics."""
    from vizpub.analytics.graphframes import engine  # imports compiled kernels

    if names := [own.metric.name for own in measures.own if own.metric.level != "message"]:
        raise UseError(
            f"own metrics ({', '.join(names)}) are measured by the engine kernels only: "
            "give --engine kernels, or leave them out"
        )
    return engine.measure_with_graphframes(versions, clock, measures)


_PARTS = ("degrees", "clustering", "components", "pagerank", "topics", "distances", "betweenness")
_PATHS = ("topics", "distances", "betweenness")
"""Parts that the kernels measure for both engines."""


@dataclass(frozen=True)
class Choice:
    """An engine, and its description in the run's metadata."""

    engine: str
    description: str


def choose_engine(
    requested: str, peers: int, versions: Callable[[], Versions], clock: Clock
) -> Choice:
    """The engine of that name. `auto` is kernels if the largest interval fits into a task, or if
    GraphFrames is not available, which the metadata then says; otherwise GraphFrames.
    """
    if requested != "auto":
        return Choice(requested, requested)
    # Counts the largest interval only if that many peers could exceed a task.
    if fits_task(peers, peers**2) or fits_task(*largest_interval(versions(), clock)):
        return Choice("kernels", "kernels")
    try:
        load_graphframes(versions().presence.sparkSession)
    except (ArtifactsMissing, UseError):
        return Choice("kernels", "kernels, as GraphFrames is not available")
    return Choice("graphframes", "graphframes")


def engine_by_part(
    engine: str,
    measures: Measures,
    overlay: Iterable[pa.RecordBatch],
    sampled_topics: Iterable[pa.RecordBatch] = (),
) -> dict[str, str]:
    """Name the engine that measured each part, and count the intervals in which it was sampled.

    `overlay` has rows of metrics/overlay, `sampled_topics` those of metrics/topics that were
    sampled.
    """
    counts: Counter[str] = Counter()
    for rows in overlay:
        counts["intervals"] += len(rows)
        peers, links = (pc.cast(rows[name], "double") for name in ("network_size", "links"))
        cost = pc.multiply(peers, pc.add(peers, links))
        is_costly = (
            pc.greater(cost, measures.max_edge_visits),
            pc.greater(cost, TARGETS_A_WORD * measures.max_edge_visits),
        )
        # Intervals that were too large to measure exactly, or at all.
        flags_by_name = {
            "betweenness": pc.and_(is_costly[0], pc.greater(peers, LEAST_SOURCES)),
            "distances": pc.and_(is_costly[1], pc.greater(peers, LEAST_TARGETS)),
            "left_out": pc.and_(pc.greater(links, 0), pc.is_null(rows["diameter"])),
        }
        for name, flags in flags_by_name.items():
            counts[name] += pc.sum(flags).as_py() or 0
    counts["topics"] = len({i for rows in sampled_topics for i in rows["interval"].to_pylist()})
    parts = {part: "kernels" if part in _PATHS else engine for part in _PARTS}
    for part in ("topics", "distances", "betweenness"):
        if counts[part]:
            total = amount(counts["intervals"], "interval")
            parts[part] += f", sampled in {counts[part]} of {total}"
    if counts["left_out"]:  # too large for kernels
        parts |= {"topics": f"{engine}, links alone", "distances": "none", "betweenness": "none"}
    if not measures.betweenness:
        del parts["betweenness"]
    return parts
