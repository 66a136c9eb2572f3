"""Which metrics of an overlay to measure, and their cost limit."""

from __future__ import annotations

from dataclasses import dataclass

ENGINES = ("auto", "kernels", "graphframes")
"""What may measure; auto is kernels while the largest interval fits into a task."""


TARGETS_A_WORD = 64
"""Targets that ride together when distances are searched: the bits of a word."""
LEAST_TARGETS = 512
"""Targets of the smallest sample of distances: eight random groups, a block of words."""
LEAST_SOURCES = 2
"""Sources of the smallest sample of betweenness: fewer have no spread."""
DAMPING = 0.85
"""With this probability PageRank's walk goes on along a link."""


@dataclass(frozen=True)
class Measures:
    """What an engine is asked for."""

    betweenness: bool = True
    topics: bool = True
    max_edge_visits: float = 2e10
    """Links walked per interval, n · (n + m) for exact betweenness and a 64th of that for exact
    distances; what would cost more is sampled."""
    seed: int = 0
    """Draws what is sampled, in each interval apart, so that blocks may be cut anywhere."""
