"""The validity periods that a question selects, and the ranges of an index that hold them.

A mode of the query `history` is two ranges: of the begin and of the end of a period. The index
(run, length_class, valid_from) finds both: a period of class l is at least 2^l and less than
2^(l+1) ticks long, so its end limits its begin. What is read is proportional to the answer and
to what is valid at the limits of the window, in a history of any length.
"""

from __future__ import annotations

from collections.abc import Mapping

from vizpub.model.clock import OPEN
from vizpub.model.errors import UseError

Range = tuple[int, int]
"""Ticks, both ends included."""

OPEN_CLASS = 63
"""The `length_class` of a period without an end."""
ALWAYS = (0, OPEN)
_WINDOW = ("from", "to")


def times_of(mode: str) -> tuple[str, ...]:
    """Return the parameters that a mode needs: `at`, `from` and `to`, or none."""
    return {"as-of": ("at",), "all": ()}.get(mode, _WINDOW)


def check_times(mode: str, arguments: Mapping[str, object]) -> None:
    """Raise UseError unless exactly the times that the mode needs are set."""
    needed = times_of(mode)
    missing = [name for name in needed if name not in arguments]
    extra = [name for name in ("at", *_WINDOW) if name in arguments and name not in needed]
    if missing or extra:
        takes = " and ".join(needed) or "no time"
        wrong = [f"{name} is missing" for name in missing] + [
            f"{name} is not used" for name in extra
        ]
        raise UseError(f"mode {mode} takes {takes}: {', '.join(wrong)}")


def mode_ranges(mode: str, ticks: Mapping[str, int]) -> tuple[Range, Range]:
    """Return the ranges of valid_from and valid_to that a mode selects; `ticks` are its times."""
    if mode == "all":
        return ALWAYS, ALWAYS
    if mode == "as-of":
        return (0, ticks["at"]), (ticks["at"] + 1, OPEN)
    low, high = ticks["from"], ticks["to"]
    return {
        "from-to": ((0, high - 1), (low + 1, OPEN)),
        "between": ((0, high), (low + 1, OPEN)),
        "contained-in": ((low, OPEN), (low, high)),
        "valid-during": ((0, low), (high, OPEN)),
        "created-in": ((low, high), ALWAYS),
        "deleted-in": (ALWAYS, (low, high)),
    }[mode]


def class_ranges(levels: tuple[int, ...], begins: Range, ends: Range) -> list[list[int]]:
    """Return the ranges of the index that hold the periods which begin and end in these ranges.

    Each is [length_class, first valid_from, last, first valid_to, last]. `levels` are the
    classes of the run's closed periods.
    """
    # Open periods come first: one that closes meanwhile is then read as open, or closed, or
    # both, but never missed (vizpub.graphstore.load.growth).
    ranges = [[OPEN_CLASS, *begins]] if ends[1] == OPEN else []
    ranges += [
        [level, max(begins[0], ends[0] - (2 << level) + 1), min(begins[1], ends[1] - (1 << level))]
        for level in levels
        if level != OPEN_CLASS
    ]
    return [[level, first, last, *ends] for level, first, last in ranges if first <= last]


def level_ranges(levels: tuple[int, ...], at: int) -> list[list[int]]:
    """Return the ranges of the index that hold the periods valid at a tick.

    Each is [length_class, after]: their `valid_from` is more than `after` and at most `at`.
    """
    ranges = class_ranges(levels, *mode_ranges("as-of", {"at": at}))
    return [[level, first - 1] for level, first, *_ in ranges]
