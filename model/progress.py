"""Progress of long work, and words about long waits. The command line shows both."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Protocol

WAITS = "vizpub.waits"
"""The logger of long waits."""
_PATIENCE_S = 5.0
_LOG = logging.getLogger(WAITS)


class Progress(Protocol):
    """Gets the name of a step, the amount done, the total (0 = unknown), and a short note."""

    def __call__(self, step: str, done: int, total: int, note: str = "") -> None:
        """Report the progress of a step."""


def silent(step: str, done: int, total: int, note: str = "") -> None:
    """Report nothing."""


@contextmanager
def announce_wait(what: str, most_s: float | None = None) -> Iterator[None]:
    """Log what the block waits for, and for how long at most, once it has taken five seconds."""
    limit = "without a limit; Ctrl-C stops" if most_s is None else f"at most {most_s:g} s"
    timer = Timer(_PATIENCE_S, _LOG.info, ("waiting for %s, %s", what, limit))
    timer.daemon = True  # an interrupted command ends at once
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
