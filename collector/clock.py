"""The collector's own time since the epoch of the run, which no change of the clock moves.

It is taken from the wall clock when the collector starts, and from a steady clock from then on,
which goes on while the machine is suspended. It numbers intervals for who asks, and says what is
too far ahead. It closes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

_JUMP_S = 1.0
"""What the clock is set by at least. Who keeps it right moves it by less, bit by bit."""


def _steady() -> float:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Clock:
    """Time since an epoch."""

    def __init__(
        self,
        epoch: str,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = _steady,
    ) -> None:
        """`epoch` in ISO 8601."""
        self._epoch = datetime.fromisoformat(epoch).timestamp()
        self._wall, self._steady = wall, steady
        self._ahead = self._known = wall() - steady()
        """Of the steady clock: what the wall clock had when this one began, and has as was told."""

    @property
    def now_us(self) -> int:
        """Time since the epoch, in µs; 0 before it."""
        return max(int((self._steady() + self._ahead - self._epoch) * 1_000_000), 0)

    def jump(self) -> float:
        """By how many seconds the wall clock was set since the last look; 0 where it was not."""
        ahead = self._wall() - self._steady()
        if abs(by := ahead - self._known) < _JUMP_S:
            return 0.0
        self._known = ahead
        return by
