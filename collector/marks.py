"""The newest line of each peer: what its next ones are judged by."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from model.errors import InputError


class Marks:
    """Interval, seq and CRC of each peer's newest line, also where it is not written yet: else the
    lines of one request would know nothing of each other.
    """

    def __init__(self, newest: Mapping[str, int] | None = None) -> None:
        """`newest` are the intervals of peers that reported before a restart."""
        # No report has this seq: who reported before is known, and conflicts with nothing.
        self._known = {peer: (at, -1, 0) for peer, at in (newest or {}).items()}

    def __contains__(self, peer: str) -> bool:
        return peer in self._known

    def __len__(self) -> int:
        return len(self._known)

    @property
    def reached(self) -> int:
        """The greatest interval of any line."""
        return max((at for at, *_ in self._known.values()), default=0)

    def add(self, value: Mapping[str, Any], line: bytes) -> None:
        """A report of a peer, and its line. Raises: InputError where it conflicts with another."""
        peer, interval = value["peer"], value["interval"]
        mark = (interval, value.get("seq") or 0, zlib.crc32(line))
        before = self._known.get(peer, mark)
        if before[:2] == mark[:2] and before[2] != mark[2]:
            raise InputError(
                f"conflicting report: peer '{peer}' has another one of interval {interval} with "
                "the same seq; do two peers have one name?"
            )
        if mark[:2] >= before[:2]:
            self._known[peer] = mark
