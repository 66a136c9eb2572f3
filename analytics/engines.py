"""The engines that measure an overlay, and the choice between them.

`kernels` is chosen if the run's largest overlay fits into one task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.graphframes.graphs import load_graphframes
from analytics.options import LEAST_SOURCES, LEAST_TARGETS, TARGETS_A_WORD, Measures
from analytics.structure import Versions, by_kernels, fits_task, largest_interval
from model.clock import Clock
from model.errors import ArtifactsMissing, UseError
from model.wording import amount


def _by_graphframes(versions: Versions, clock: Clock, measures: Measures) -> DataFrame:
    from analytics.graphframes.engine import by_graphframes  # imports compiled kernels

    if names := [own.metric.name for own in measures.own if own.metric.level != "message"]:
        raise UseError(
            f"own metrics ({', '.join(names)}) are measured by the engine kernels only: "
            "give --engine kernels, or leave them out"
        )
    return by_graphframes(versions, clock, measures)


Engine = Callable[[Versions, Clock, Measures], DataFrame]
"""Versions, clock, what to measure → rows of `STRUCTURE_SCHEMA` for each interval of the run."""
_ENGINES: Mapping[str, Engine] = {"kernels": by_kernels, "graphframes": _by_graphframes}
_PARTS = ("degrees", "clustering", "components", "pagerank", "topics", "distances", "betweenness")
_PATHS = ("topics", "distances", "betweenness")
"""Parts that the kernels measure for both engines."""


def measure(
    versions: Versions, clock: Clock, measures: Measures | None = None, engine: str = "kernels"
) -> DataFrame:
    """Rows of `STRUCTURE_SCHEMA` from the engine of that name, lazily."""
    return _ENGINES[engine](versions, clock, measures or Measures())


@dataclass(frozen=True)
class Choice:
    """An engine, and its description in the run's metadata."""

    engine: str
    description: str


def engine_for(asked: str, versions: Versions, clock: Clock) -> Choice:
    """The engine of that name. `auto` is kernels if the largest interval fits into a task, or if
    GraphFrames is not available, which the metadata then says; otherwise GraphFrames.
    """
    if asked != "auto":
        return Choice(asked, asked)
    if _all_fit(versions, clock):
        return Choice("kernels", "kernels")
    try:
        load_graphframes(versions.presence.sparkSession)
    except (ArtifactsMissing, UseError):
        return Choice("kernels", "kernels, as GraphFrames is not available")
    return Choice("graphframes", "graphframes")


def _all_fit(versions: Versions, clock: Clock) -> bool:
    """Counts the largest interval only if that many peers could exceed a task."""
    peers = versions.peers
    return (peers > 0 and fits_task(peers, peers**2)) or fits_task(
        *largest_interval(versions, clock)
    )


def measured_by(engine: str, measures: Measures, overlay: DataFrame) -> dict[str, str]:
    """Which engine measured each part, and in how many intervals it was sampled.

    `overlay` is the table metrics/overlay.
    """
    peers = F.col("network_size")
    cost = peers.cast("double") * (peers + F.col("links"))
    most = measures.max_edge_visits
    sampled = overlay.agg(
        F.count_if((cost > most) & (peers > LEAST_SOURCES)).alias("betweenness"),
        F.count_if((cost > TARGETS_A_WORD * most) & (peers > LEAST_TARGETS)).alias("distances"),
        F.expr("any(links > 0 AND diameter IS NULL)").alias("left_out"),
        F.count("*").alias("intervals"),
    ).first()
    assert sampled is not None  # an aggregate has one row
    parts = {part: "kernels" if part in _PATHS else engine for part in _PARTS}
    for part in ("distances", "betweenness"):
        if sampled[part]:
            of_all = amount(sampled["intervals"], "interval")
            parts[part] += f", sampled in {sampled[part]} of {of_all}"
    if sampled["left_out"]:  # too large for kernels
        parts |= {"topics": f"{engine}, links alone", "distances": "none", "betweenness": "none"}
    if not measures.betweenness:
        del parts["betweenness"]
    return parts
