"""The events of a sentry in order of time → all folded tables, in one pass.

Beside what the fold of traces holds, it holds the connections of the sentry, the subscriptions that
other peers told it, and the control entries of the current millisecond, until their RPC is known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from vizpub.ingest.inputs.reader import InputRow
from vizpub.ingest.sources.libp2p.events import ControlEntry, EventType, RpcEntries, TraceEvent
from vizpub.ingest.sources.libp2p.facts import TraceTally
from vizpub.ingest.sources.libp2p.fold import (
    OF_ATTRIBUTES,
    AttributedFold,
    FoldedPeer,
    OpenPeriods,
)
from vizpub.ingest.sources.xatu.tables import WAYS, XatuEvent, XatuType
from vizpub.ingest.tasks.fold import RowsByTable
from vizpub.model.clock import OPEN

CONNECTIONS = "connections"
_OF_CONNECTIONS = frozenset({XatuType.CONNECTED, XatuType.DISCONNECTED, XatuType.HEARTBEAT})


class XatuFold(AttributedFold):
    """A fold of the events of sentries. Of several versions of a row, the newest counts."""

    def start(self) -> None:
        """Reset the counts."""
        super().start()
        self._decoder = msgspec.msgpack.Decoder(XatuEvent)

    def begin(self, key: str) -> None:
        """Start a peer."""
        self._peer = _Sentry(key, self.rows, self._interval_us, self.epoch_us, self._tally)
        self._now, self._versions = -1, set[tuple[Any, ...]]()
        self._attributes: dict[str, str] = {}

    def take(self, row: InputRow) -> None:
        """Take attributes of the peer, its next event, or one of a connection to it."""
        if row.rank == OF_ATTRIBUTES:
            self._take_attributes(row)
            return
        event = self._decoder.decode(row.record)
        if row.time != self._now:
            self._now = row.time
            self._versions.clear()
        is_own = event.peer == row.peer
        what = event.type, event.peer, event.other, event.topic, event.message
        if (identity := (*what, event.kind, event.key)) in self._versions:
            self._tally.repeated += is_own
            return
        self._versions.add(identity)
        at = event.time // 1000 - self.epoch_us
        if is_own:
            self._peer.add_own(event, at, row.file)
        else:
            self._peer.add_of_others(event, at)

    def _take_attributes(self, row: InputRow) -> None:
        """Write the attributes that are new, or have changed."""
        at = row.time // 1000 - self.epoch_us
        for key, value in msgspec.json.decode(row.record).items():
            if self._attributes.get(key) != value:
                self._attributes[key] = value
                self.rows["attributes"].append((row.peer, key, value, at))


class _Sentry(FoldedPeer):
    """The state of the current peer, which is a sentry or has connections of sentries to it."""

    def __init__(
        self, name: str, rows: RowsByTable, interval_us: int, epoch_us: int, tally: TraceTally
    ) -> None:
        super().__init__(name, rows, interval_us)
        self._epoch_us, self._tally = epoch_us, tally
        self._links, self._told = OpenPeriods(name), OpenPeriods(name)
        self._open = defaultdict[tuple[Any, ...], set[int | None]](set)
        """The connections of each link: when they were opened."""
        self._at = 0
        self._ways: dict[int | None, EventType] = {}
        self._entries: dict[tuple[Any, ...], list[XatuEvent]] = {}

    def add_own(self, event: TraceEvent, at: int, file: int) -> None:
        """Take the next event of its own, at a tick."""
        assert isinstance(event, XatuEvent)
        if at != self._at or event.type == XatuType.DISCONNECTED:
            self._join_entries()
            self._at = at
        super().add_own(event, at, file)
        if event.type in _OF_CONNECTIONS:
            ended = self._turn_link(self._links, (event.other, CONNECTIONS, None), event, at)
            self._rows["links"] += ended
            if ended:  # no PRUNE is written for it
                gone = self._mesh.end_all(at, lambda link: link[0] == event.other)
                self._rows["links"] += gone
                self._end_told(at, event.other)
        elif event.type == XatuType.RPC:
            self._ways[event.rpc] = WAYS[event.kind or ""]
        elif event.type == XatuType.ENTRY:
            _, index, *_ = event.key
            self._entries.setdefault((event.rpc, event.kind, index), []).append(event)

    def add_of_others(self, event: TraceEvent, at: int) -> None:
        """Take an event of a sentry's connection to this peer."""
        assert isinstance(event, XatuEvent)
        if event.type not in _OF_CONNECTIONS:
            super().add_of_others(event, at)
        elif ended := self._turn_link(self._held, (event.peer, CONNECTIONS), event, at):
            self._let_go(ended, at)

    def leave(self) -> int:
        """End the peer; see FoldedPeer."""
        self._join_entries()
        self._rows["links"] += self._links.end_all(OPEN)
        self._end_told(OPEN)
        return super().leave()

    def _turn_link(
        self, links: OpenPeriods, link: tuple[Any, ...], event: XatuEvent, at: int
    ) -> list[tuple[Any, ...]]:
        """Begin or end one of the connections that make a link. Return its period if it ends.

        A connection without a beginning in the input began when it was opened, as far as that is
        within the time of the sentry.
        """
        connections = self._open[link]
        if event.type == XatuType.CONNECTED:
            connections.add(event.opened)
            links.begin(link, at)
            return []
        since = at if event.opened is None else event.opened * 1_000_000 - self._epoch_us
        links.begin(link, min(max(since, self._first), at))
        if event.type == XatuType.HEARTBEAT:
            if not connections:
                connections.add(None)
            return []
        connections -= {event.opened, None}
        return [] if connections else links.end(link, at)

    def _join_entries(self) -> None:
        """Count the control entries of the millisecond, and take the subscriptions in them."""
        for (rpc, kind, _), rows in self._entries.items():
            if (way := self._ways.get(rpc)) is None:
                self._tally.unjoined += 1
                continue
            event = rows[0]
            if kind in ("subscribe", "unsubscribe") and way != EventType.DROP_RPC:
                self._take_subscription(event, way == EventType.SEND_RPC)
            ids = sum(row.offers for row in rows) if kind == "prune" else None
            entries = RpcEntries(control=(ControlEntry(kind, event.topic, ids),))
            counted = TraceEvent(way, self.name, event.time, entries=entries)
            self._traffic.count(counted, self._at // self._interval_us)
        self._entries.clear()
        self._ways.clear()

    def _take_subscription(self, event: XatuEvent, is_own: bool) -> None:
        """Begin or end the subscription that the sentry tells another peer, or one that it is
        told.
        """
        periods, topic = (
            (self._topics, (event.topic,)) if is_own else (self._told, (event.other, event.topic))
        )
        if event.kind == "subscribe":
            periods.begin(topic, self._at)
        elif is_own:
            self._rows["subscriptions"] += periods.end(topic, self._at)
        else:
            self._write_told(periods.end(topic, self._at))

    def _end_told(self, at: int, other: str | None = None) -> None:
        """End the subscriptions of another peer, or of all."""
        self._write_told(self._told.end_all(at, lambda of: other in (None, of[0])))

    def _write_told(self, periods: list[tuple[Any, ...]]) -> None:
        self._rows["subscriptions"] += (tuple(of) for _, *of in periods)
