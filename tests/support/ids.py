"""Names of tests must be the same in every process and run: two processes compare them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def id_of(value: object, argument: str) -> str | None:
    """Bytes, and unreadable text, are named by their argument and a number."""
    unreadable = isinstance(value, str) and not value.isprintable()
    return argument if unreadable or isinstance(value, bytes) else None


def refuse_addresses(items: Iterable[pytest.Item]) -> None:
    """Raises: pytest.UsageError where a name holds an address in memory."""
    if found := [item.nodeid for item in items if _ADDRESS.search(item.nodeid)]:
        raise pytest.UsageError(f"an address in the name of a test: {', '.join(found[:5])}")
