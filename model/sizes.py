"""Sizes as people write them."""

from __future__ import annotations

import re

from vizpub.model.errors import UseError
from vizpub.model.wording import amount

_BYTES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmg]?)b?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Parse '512', '64kB', '1.5MB' or '1GB' as bytes, at least 1; a kB has 1,024.

    Raises: UseError for anything else.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or (size := int(float(match[1]) * _BYTES[match[2].lower()])) < 1:
        raise UseError(f"'{text}' is not a size; write for example 64MB")
    return size


def format_size(size: int) -> str:
    """Format bytes as '64 MB', in the largest unit that is exact."""
    for unit, factor in (("GB", 2**30), ("MB", 2**20), ("kB", 2**10)):
        if size % factor == 0:
            return f"{size // factor} {unit}"
    return amount(size, "byte")
