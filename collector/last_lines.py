"""The lines of each peer by which its next ones are judged."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from vizpub.model.errors import InputError


class LastLines:
    """Seq and CRC of each peer's lines by interval: of its newest one, and of open intervals.

    Lines count before they are written: otherwise two lines of one request could conflict.
    """

    def __init__(self, newest: Mapping[str, int] | None = None) -> None:
        """`newest` are the intervals of peers that reported before a restart."""
        # No report has this seq: peers that reported before are known, and conflict with nothing.
        self._marks = {peer: {interval: (-1, 0)} for peer, interval in (newest or {}).items()}

    def __contains__(self, peer: str) -> bool:
        return peer in self._marks

    def __len__(self) -> int:
        return len(self._marks)

    @property
    def greatest_interval(self) -> int:
        """The greatest interval of any line."""
        return max(map(max, self._marks.values()), default=0)

    def add(self, value: Mapping[str, Any], line: bytes, closed: int | None) -> None:
        """Add the line of a report, while all intervals up to `closed` are closed.

        Raises: InputError if it conflicts with another line of the peer.
        """
        peer, interval = value["peer"], value["interval"]
        seq, crc = value.get("seq") or 0, zlib.crc32(line)
        of_peer = self._marks.setdefault(peer, {})
        previous = of_peer.get(interval, (seq, crc))
        if previous[0] == seq and previous[1] != crc:
            raise InputError(
                f"conflicting report: peer '{peer}' has another one of interval {interval} with "
                "the same seq; do two peers have one name?"
            )
        of_peer[interval] = max(previous, (seq, crc))
        newest = max(of_peer)
        for old in [i for i in of_peer if i < newest and closed is not None and i <= closed]:
            del of_peer[old]
