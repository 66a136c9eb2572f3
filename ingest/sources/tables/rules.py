"""The rules of columns of tabular files: what a value must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vizpub.reports.fields import INT64, Key

Fields = Mapping[str, str | None]
"""A row: text by column; null where it is absent or empty."""
Rule = Callable[[Fields, str], str | None]
"""The problem of a column of a row, as text; null if it is valid."""

_INTEGER = re.compile("-?[0-9]+")
_DIGITS = len(str(INT64))


def key(row: Fields, name: str) -> str | None:
    """A name: not empty, no control character."""
    return optional_key(row, name) if row[name] else f"no '{name}'"


def optional_key(row: Fields, name: str) -> str | None:
    """A name, or nothing."""
    return next(Key().problems(row[name], name), None) if row[name] else None


def whole(row: Fields, name: str, most: int = INT64) -> str | None:
    """A number from 0 to `most`."""
    text = row[name]
    if not text:
        return f"no '{name}'"
    if not _INTEGER.fullmatch(text):
        return f"'{name}' is not an integer"
    if text.startswith("-"):
        return f"'{name}' is negative"
    number = number_of(text)
    return f"'{name}' is too large" if number is None or number > most else None


def number_of(text: str) -> int | None:
    """The value of decimal digits; null for other text, and for more than 64 bits."""
    digits = text.lstrip("0")
    if not (text.isascii() and text.isdigit()) or len(digits) > _DIGITS:
        return None
    number = int(digits or "0")
    return number if number <= INT64 else None
