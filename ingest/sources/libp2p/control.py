"""Counts of control messages by kind and topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent

_WAYS = (EventType.SEND_RPC, EventType.RECV_RPC, EventType.DROP_RPC)
_UNKNOWN = (None, None, None)


def _zeros() -> list[int]:
    return [0, 0, 0]


class ControlCounts:
    """What a peer sent, received and dropped: control messages, and the ids that these name."""

    def __init__(self) -> None:
        self._messages, self._ids = (
            defaultdict[tuple[str, str | None], list[int]](_zeros) for _ in range(2)
        )

    def count(self, event: TraceEvent) -> None:
        """Add the entries of an RPC."""
        assert event.entries is not None
        way = _WAYS.index(event.type)
        for kind, topic, ids, _, is_first in event.entries.control:
            self._messages[kind, topic][way] += is_first
            if ids is not None:
                self._ids[kind, topic][way] += ids

    def take(self) -> Iterator[tuple[Any, ...]]:
        """Yield kind, topic and the values of vizpub.model.columns.CONTROL_COLUMNS, and forget
        them.
        """
        for of, messages in self._messages.items():
            yield *of, *messages, *self._ids.get(of, _UNKNOWN), *_UNKNOWN
        self._messages.clear()
        self._ids.clear()
