"""The lines of each peer that its next ones are judged by."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from vizpub.model.errors import InputError


class Marks:
    """Seq and CRC of each peer's lines by interval: of its newest one, and of those that are not
    closed. They count also where they are not written yet: else the lines of one request would know
    nothing of each other.
    """

    def __init__(self, newest: Mapping[str, int] | None = None) -> None:
        """`newest` are the intervals of peers that reported before a restart."""
        # No report has this seq: who reported before is known, and conflicts with nothing.
        self._known = {peer: {at: (-1, 0)} for peer, at in (newest or {}).items()}

    def __contains__(self, peer: str) -> bool:
        return peer in self._known

    def __len__(self) -> int:
        return len(self._known)

    @property
    def reached(self) -> int:
        """The greatest interval of any line."""
        return max(map(max, self._known.values()), default=0)

    def add(self, value: Mapping[str, Any], line: bytes, closed: int | None) -> None:
        """A report of a peer, and its line, while all intervals up to `closed` are closed.

        Raises: InputError where it conflicts with another.
        """
        peer, interval = value["peer"], value["interval"]
        seq, crc = value.get("seq") or 0, zlib.crc32(line)
        of_peer = self._known.setdefault(peer, {})
        before = of_peer.get(interval, (seq, crc))
        if before[0] == seq and before[1] != crc:
            raise InputError(
                f"conflicting report: peer '{peer}' has another one of interval {interval} with "
                "the same seq; do two peers have one name?"
            )
        of_peer[interval] = max(before, (seq, crc))
        newest = max(of_peer)
        for at in [at for at in of_peer if at < newest and closed is not None and at <= closed]:
            del of_peer[at]
