"""The events of a node → folded tables."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import msgspec
import pyarrow as pa

from vizpub.ingest.inputs.reader import InputRow
from vizpub.ingest.sources.bctrace.events import (
    GAUGES,
    MESSAGE_BYTES,
    MESSAGES,
    UNSIZED,
    Transfer,
)
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.sources.libp2p.events import RpcEntries, TraceEvent
from vizpub.ingest.sources.libp2p.fold import OF_ATTRIBUTES, AttributedFold, limit_interval
from vizpub.model.clock import OPEN

HEARD, TRANSFERRED = 1, 2
"""The ranks of another peer's subscription, after own events of the same time, and of a transfer.
"""


class TraceFold(AttributedFold):
    """A fold that also takes the nodes of headers, and transfers of messages and their parts.

    A line has one id of a control entry, which counts as a message at the first of as many lines
    alike as it has ids.
    """

    tables: ClassVar[dict[str, pa.Schema]] = {
        **AttributedFold.tables,
        "presence": OBSERVED["presence"],
        "sent": pa.schema(
            [
                *(("peer", pa.string()), ("interval", pa.int32())),
                *((name, pa.int64()) for name in ("messages", "bytes")),
            ]
        ),
    }

    def start(self) -> None:
        """Reset the counts."""
        super().start()
        self._decode_transfer = msgspec.msgpack.Decoder(Transfer).decode

    def begin(self, key: str) -> None:
        """Start a peer."""
        super().begin(key)
        self._counts, self._interval = Counter[str](), 0
        self._missing: dict[tuple[Any, ...], int] = {}
        """The ids that entries still lack."""

    def take(self, row: InputRow) -> None:
        """Take a node, a transfer, or the next event of the peer."""
        if row.rank == TRANSFERRED:
            self._add_transfer(self._decode_transfer(row.record))
            return
        super().take(row)
        if row.rank == OF_ATTRIBUTES:
            self.rows["presence"].append((row.peer, 0, OPEN))

    def event_of(self, row: InputRow) -> TraceEvent:
        """Return the event of a row, with the one id of a control entry that it has."""
        event = super().event_of(row)
        if event.entries is not None:
            (entry,) = event.entries.control
            alike = event.type, event.other, entry.kind, entry.topic, entry.ids
            assert entry.ids is not None
            missing = self._missing.pop(alike, entry.ids)
            if missing > 1:
                self._missing[alike] = missing - 1
            is_first = missing == entry.ids
            event.entries = RpcEntries(control=(entry._replace(ids=1, is_first=is_first),))
        return event

    def _add_transfer(self, transfer: Transfer) -> None:
        at = transfer.time // 1000 - self.epoch_us
        interval = limit_interval(at // self._interval_us)
        if interval != self._interval:
            self._write_counts()
            self._interval = interval
        self._counts.update(transfer.counts)
        if transfer.bytes is not None:
            self.rows["sizes"].append((transfer.message, interval, at, transfer.bytes))

    def _write_counts(self) -> None:
        """Write what was sent in the interval, and the gauges of parts, none without a part."""
        of, counts = (self._peer.name, self._interval), self._counts
        if not counts.keys().isdisjoint(GAUGES):
            self.rows["gauges"] += ((*of, name, float(counts[name])) for name in GAUGES)
        if messages := counts[MESSAGES]:
            size = None if counts[UNSIZED] else counts[MESSAGE_BYTES]
            self.rows["sent"].append((*of, messages, size))
        counts.clear()

    def end(self) -> None:
        """Write the open state of the peer."""
        super().end()
        self._write_counts()
