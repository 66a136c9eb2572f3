"""What an ingest measures, as run.json keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from vizpub.analytics.options import ENGINES, Measures
from vizpub.analytics.own import Own
from vizpub.model.errors import UnknownName


@dataclass(frozen=True)
class Measuring:
    """What to measure, and with which engine."""

    layers: tuple[str, ...] | None = None
    """Layers that the overlay's metrics count; null = all."""
    engine: str = "auto"
    """One of vizpub.analytics.options.ENGINES."""
    measures: Measures = field(default_factory=Measures)

    def __post_init__(self) -> None:
        """Raises: UnknownName for an unknown engine."""
        if self.engine not in ENGINES:
            raise UnknownName("engine", self.engine, ENGINES)

    @property
    def options(self) -> dict[str, Any]:
        """Options for run.json that change the tables; null = the default."""
        usual, asked = Measures(), self.measures
        visits = asked.max_edge_visits
        return {
            "layers": None if self.layers is None else sorted(self.layers),
            "engine": None if self.engine == Measuring.engine else self.engine,
            "betweenness": None if asked.betweenness else False,
            "max_edge_visits": None if visits == usual.max_edge_visits else visits,
            "own": [f"{own.metric.name} {own.metric.digest}" for own in asked.own] or None,
        }

    @classmethod
    def of(cls, options: Mapping[str, Any], own: tuple[Own, ...]) -> Self:
        """From options of run.json, and the run's own metrics."""
        layers, usual = options.get("layers"), Measures()
        betweenness, visits = options.get("betweenness"), options.get("max_edge_visits")
        measures = Measures(
            usual.betweenness if betweenness is None else betweenness,
            max_edge_visits=usual.max_edge_visits if visits is None else visits,
            own=own,
        )
        engine = options.get("engine") or cls.engine
        return cls(None if layers is None else tuple(layers), engine, measures)
