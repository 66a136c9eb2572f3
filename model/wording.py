"""Words in messages to people."""

from __future__ import annotations


def amount(count: int, noun: str) -> str:
    """'1 interval', '0 intervals', '1,200 intervals', of a noun that takes an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def was_or_were(count: int) -> str:
    """The verb after an amount."""
    return "was" if count == 1 else "were"
