"""What work takes, as an estimate that is made before it starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Time and memory of work, of which some may go on at the same time."""

    seconds: float
    memory_bytes: int
