"""Words in messages to people."""

from __future__ import annotations

from collections.abc import Sequence


def amount(count: int, noun: str) -> str:
    """'1 interval', '0 intervals', '1,200 intervals', of a noun that takes an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def was_or_were(count: int) -> str:
    """The verb after an amount."""
    return "was" if count == 1 else "were"
