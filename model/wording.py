"""Words in messages to people."""

from __future__ import annotations

from collections.abc import Sequence


def amount(count: int, noun: str) -> str:
    """Return '1 interval', '0 intervals', '1,200 intervals'; the plural of the noun takes an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def join_names(names: Sequence[str]) -> str:
    """Return 'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def was_or_were(count: int) -> str:
    """Return the verb after an amount."""
    return "was" if count == 1 else "were"
