"""Progress of long work. The command line draws a bar from it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Gets the name of a step, the amount done, the total (0 = unknown), and a short note."""

    def __call__(self, step: str, done: int, total: int, note: str = "") -> None:
        """Report the progress of a step."""


def silent(step: str, done: int, total: int, note: str = "") -> None:
    """Report nothing."""
