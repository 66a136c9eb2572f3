"""Options of what an ingest measures, as run.json keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Self

from vizpub.analytics.options import ALWAYS_EXACT, ENGINES, Measures
from vizpub.analytics.own import OwnFunction
from vizpub.model.errors import UnknownName, UseError

NO_FRAMES = (
    "GraphFrames on a cluster read the run's files in Spark itself, which cannot read them in a "
    "store: use the kernels (--engine kernels), or a workspace that all machines mount"
)


@dataclass(frozen=True)
class MeasurementOptions:
    """Options of a measurement: layers, engine and measures."""

    layers: tuple[str, ...] | None = None
    """Layers that the overlay's metrics count; null = all."""
    engine: str = "auto"
    """One of vizpub.analytics.options.ENGINES."""
    measures: Measures = field(default_factory=Measures)

    def __post_init__(self) -> None:
        """Raises: UnknownName for an unknown engine; UseError for a limit that is not finite."""
        if self.engine not in ENGINES:
            raise UnknownName("engine", self.engine, ENGINES)
        if not isfinite(visits := self.measures.max_edge_visits):  # run.json keeps it
            raise UseError(
                f"--max-edge-visits {visits:g}: give a finite number; with {ALWAYS_EXACT:g}, "
                "nothing is sampled"
            )

    @property
    def options(self) -> dict[str, Any]:
        """Options for run.json that change the tables; null = the default."""
        usual, measures = Measures(), self.measures
        visits = measures.max_edge_visits
        return {
            "layers": None if self.layers is None else sorted(self.layers),
            "engine": None if self.engine == MeasurementOptions.engine else self.engine,
            "betweenness": None if measures.betweenness else False,
            "max_edge_visits": None if visits == usual.max_edge_visits else visits,
            "own": [
                f"{own_metric.metric.name} {own_metric.metric.digest}"
                for own_metric in measures.own
            ]
            or None,
        }

    @classmethod
    def of(cls, options: Mapping[str, Any], own_metrics: tuple[OwnFunction, ...]) -> Self:
        """Restore from the options in run.json, and the run's own metrics."""
        layers, usual = options.get("layers"), Measures()
        betweenness, visits = options.get("betweenness"), options.get("max_edge_visits")
        measures = Measures(
            usual.betweenness if betweenness is None else betweenness,
            max_edge_visits=usual.max_edge_visits if visits is None else visits,
            own=own_metrics,
        )
        engine = options.get("engine") or cls.engine
        return cls(None if layers is None else tuple(layers), engine, measures)
