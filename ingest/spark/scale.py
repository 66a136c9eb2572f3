"""The size of an input: a small one is read and folded by one task, and committed once."""

from __future__ import annotations

SMALL_INPUT = 8 * 2**20
"""Bytes of packed lines below which an input is small."""
SMALL_RUN = 500_000
"""Rows that an append may read of its run and still be small."""


def is_small(size: int) -> bool:
    """Return True if an input of `size` bytes of compressed lines is small."""
    return size <= SMALL_INPUT
