"""How long work tells how far it is: a function that takes the name of the step, how much
of it is done and how much there is (0 = not known). The command line draws a bar from it.
"""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]


def silent(step: str, done: int, total: int) -> None:
    """Tell nobody."""
