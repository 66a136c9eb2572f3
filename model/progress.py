"""Progress of long work. The command line draws a bar from it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Takes the name of the step, how much of it is done and how much there is (0 = not
    known), and perhaps how it stands in a few words.
    """

    def __call__(self, step: str, done: int, total: int, note: str = "") -> None:
        """Tell."""


def silent(step: str, done: int, total: int, note: str = "") -> None:
    """Tell nobody."""
