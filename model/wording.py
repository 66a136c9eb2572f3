"""Words in messages to people."""

from __future__ import annotations

from collections.abc import Sequence

NAME_HEAD = 4
"""Characters kept before the ellipsis of a short name: ids begin alike and differ at their ends."""


def shorten(name: str, longest: int = 24) -> str:
    """Shorten a name in its middle to at most `longest` characters, as everything shows it: tables,
    figures, errors and the explorer's page (`short` in numbers.js). Commands accept the form.

    12D3KooWAbcdefghijklmnopqrstuvwxyz → 12D3…hijklmnopqrstuvwxyz
    """
    if len(name) <= longest:
        return name
    head = min(NAME_HEAD, longest // 3)
    return f"{name[:head]}…{name[head + 1 - longest :]}"


def amount(count: int, noun: str) -> str:
    """Return '1 interval', '0 intervals', '1,200 intervals'; the plural of the noun takes an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def join_names(names: Sequence[str]) -> str:
    """Return 'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def was_or_were(count: int) -> str:
    """Return the verb after an amount."""
    return "was" if count == 1 else "were"
