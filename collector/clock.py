"""The collector's own time since the run's epoch, which a change of the wall clock does not move.

It begins with the wall clock at the start of the collector, and follows a steady clock from then
on, which continues while the machine is suspended. It numbers intervals for peers that ask, and
decides which reports are too far ahead. It closes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

_JUMP_S = 1.0
"""A smaller change of the wall clock is no jump: time daemons adjust it in small steps."""


def _steady_clock() -> float:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class CollectorClock:
    """Time since an epoch."""

    def __init__(
        self,
        epoch: str,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = _steady_clock,
    ) -> None:
        """`epoch` in ISO 8601."""
        self._epoch = datetime.fromisoformat(epoch).timestamp()
        self._wall, self._steady = wall, steady
        self._offset = self._seen_offset = wall() - steady()
        """Wall clock minus steady clock: when this clock began, and at the last jump."""

    @property
    def now_us(self) -> int:
        """Time since the epoch, in µs; 0 before it."""
        return max(int((self._steady() + self._offset - self._epoch) * 1_000_000), 0)

    def jump(self) -> float:
        """Return the seconds by which the wall clock was set since the last call, or 0."""
        offset = self._wall() - self._steady()
        if abs(change := offset - self._seen_offset) < _JUMP_S:
            return 0.0
        self._seen_offset = offset
        return change
