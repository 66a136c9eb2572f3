"""Which metrics of an overlay to measure, and their cost limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vizpub.analytics.own import OwnFunction

ENGINES = ("auto", "kernels", "graphframes")
"""Engines; auto is kernels if the largest interval fits into a task."""


TARGETS_A_WORD = 64
"""Targets of a search for distances that share a word: its bits."""
LEAST_TARGETS = 512
"""Targets of the smallest sample of distances: eight random groups, a block of words."""
LEAST_SOURCES = 2
"""Sources of the smallest sample of betweenness: fewer have no variance."""
DAMPING = 0.85
"""Probability that PageRank's walk follows a link."""


STYLES = ("paper", "slides", "dark")
"""Styles of figures beside that for the screen."""
LEGENDS = (
    *("best", "outside", "none", "upper left", "upper right", "lower left", "lower right"),
    *("upper center", "lower center", "center left", "center right", "center"),
)
"""Places of a figure's legend: in the panels, below them, or nowhere."""
FILM_FPS = 8.0
"""Frames per second of a film."""
FILM_SIZE = (960, 800)
"""Width and height of a film, in pixels."""


PLAIN_PLANS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
"""Settings of Spark for plans that only move rows, as those of an ingest do: to compile or adapt
them takes longer than they run. Two million reports take the same processor time either way. The
engine graphframes goes without these settings.
"""


ALWAYS_EXACT = 1e30
"""`max_edge_visits` that no interval needs. A run stores its limit, and can store no infinity."""


@dataclass(frozen=True)
class Measures:
    """Options of what an engine measures."""

    betweenness: bool = True
    topics: bool = True
    max_edge_visits: float = 2e10
    """Links traversed per interval at most: n · (n + m) for exact betweenness, 1/64 of that for
    exact distances. Metrics that need more are sampled; with ALWAYS_EXACT, none is."""
    seed: int = 0
    """Seed of the samples, drawn separately in each interval, so that blocks do not matter."""
    own: tuple[OwnFunction, ...] = ()
    """The user's own metrics."""
