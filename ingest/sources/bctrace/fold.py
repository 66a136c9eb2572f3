"""The events of a node → folded tables."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import msgspec
import pyarrow as pa

from vizpub.ingest.inputs.reader import InputRow
from vizpub.ingest.sources.bctrace.events import GAUGES
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.sources.libp2p.fold import OF_ATTRIBUTES, AttributedFold, limit_interval
from vizpub.model.clock import OPEN

HEARD, OF_PART = 1, 2
"""The ranks of another peer's subscription, after own events of the same time, and of a part."""


class TraceFold(AttributedFold):
    """A fold that also takes the nodes of headers, and parts of messages."""

    tables: ClassVar[dict[str, pa.Schema]] = {
        **AttributedFold.tables,
        "presence": OBSERVED["presence"],
    }

    def begin(self, key: str) -> None:
        """Start a peer."""
        super().begin(key)
        self._parts, self._interval = Counter[str](), 0

    def take(self, row: InputRow) -> None:
        """Take a node, a part, or the next event of the peer."""
        if row.rank == OF_PART:
            self._add_part(row)
            return
        super().take(row)
        if row.rank == OF_ATTRIBUTES:
            self.rows["presence"].append((row.peer, 0, OPEN))

    def _add_part(self, row: InputRow) -> None:
        interval = limit_interval((row.time // 1000 - self.epoch_us) // self._interval_us)
        if interval != self._interval:
            self._write_parts()
            self._interval = interval
        self._parts.update(msgspec.msgpack.decode(row.record))

    def _write_parts(self) -> None:
        """Write the gauges of the interval, none without a part."""
        if self._parts:
            of = self._peer.name, self._interval
            self.rows["gauges"] += ((*of, name, float(self._parts[name])) for name in GAUGES)
            self._parts.clear()

    def end(self) -> None:
        """Write the open state of the peer."""
        super().end()
        self._write_parts()
