"""What to measure of an overlay, and what it may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measures:
    """What an engine is asked for."""

    betweenness: bool = True
    topics: bool = True
    betweenness_budget: float = 2e10
    """Links walked per interval, n · (n + m) when exact; beyond it sources are sampled."""
    seed: int = 0
    """Draws what is sampled, in each interval apart, so that blocks may be cut anywhere."""
