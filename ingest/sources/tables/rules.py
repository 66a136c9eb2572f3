"""Rules for the values in the columns of tabular files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vizpub.reports.fields import INT64, Key

Fields = Mapping[str, str | None]
"""A row: text by column; null where it is absent or empty."""
Rule = Callable[[Fields, str], str | None]
"""A function from a row and a column to the problem, as text; null if the value is valid."""

_INTEGER = re.compile("-?[0-9]+")
_DIGITS = len(str(INT64))


def check_key(row: Fields, name: str) -> str | None:
    """Check a name: it is not empty and has no control character."""
    return check_optional_key(row, name) if row[name] else f"no '{name}'"


def check_optional_key(row: Fields, name: str) -> str | None:
    """Check a name that may be absent."""
    return next(Key().problems(row[name], name), None) if row[name] else None


def check_whole_number(row: Fields, name: str, most: int = INT64) -> str | None:
    """Check a whole number from 0 to `most`."""
    text = row[name]
    if not text:
        return f"no '{name}'"
    if not _INTEGER.fullmatch(text):
        return f"'{name}' is not an integer"
    if text.startswith("-"):
        return f"'{name}' is negative"
    number = parse_number(text)
    return f"'{name}' is too large" if number is None or number > most else None


def parse_number(text: str) -> int | None:
    """Return the value of decimal digits; null for other text, and for more than 64 bits."""
    digits = text.lstrip("0")
    if not (text.isascii() and text.isdigit()) or len(digits) > _DIGITS:
        return None
    number = int(digits or "0")
    return number if number <= INT64 else None
