"""The events of a peer in order of time → all folded tables, in one pass.

The fold holds what one peer has open: its streams, mesh links and topics, the streams of others
to it, and the messages it published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import pyarrow as pa

from vizpub.ingest.inputs.reader import InputRow
from vizpub.ingest.sources.folded import GAUGES, OBSERVED, PERIOD
from vizpub.ingest.sources.libp2p.control import ControlCounts
from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent
from vizpub.ingest.sources.libp2p.facts import TraceTally
from vizpub.ingest.sources.libp2p.writes import WriteTimes
from vizpub.ingest.tasks.fold import KeyFold, RowsByTable, RunCounts, count_name
from vizpub.model.clock import OPEN
from vizpub.reports.fields import INT32

STREAMS, MESH = "streams", "mesh"
OF_ATTRIBUTES = -1
"""The rank of a row with the attributes of a peer, which hold from the start of the run."""
COUNTED = (
    *("control_messages_sent", "control_messages_received"),
    *("publication_messages_sent", "publication_messages_received", "dropped"),
    *("rpcs_sent", "rpcs_received"),
)
"""The traffic columns that a trace has."""

TABLES: dict[str, pa.Schema] = {
    "peers": pa.schema(
        [
            ("peer", pa.string()),
            *((name, pa.int64()) for name in ("valid_from", "last", "end")),
            ("holders", pa.list_(pa.string())),
        ]
    ),
    "named": pa.schema([("peer", pa.string()), ("src", pa.string()), *PERIOD]),
    "traffic": pa.schema(
        [("peer", pa.string()), *PERIOD, *((name, pa.int64()) for name in COUNTED)]
    ),
    "gauges": GAUGES,
    **{
        name: of for name, of in OBSERVED.items() if name not in ("presence", "roles", "attributes")
    },
    "requests": pa.schema(
        [*((name, pa.string()) for name in ("peer", "message", "other")), ("arrivals", pa.int64())]
    ),
}
"""The folded tables.

peers      each that reports, from its first event (valid_from) to its last; the first time another
           peer closed a stream to it after that, null = none did, and which peers still hold
           a stream to it (null = not needed)
named      links from src to a peer that has no event of its own so far
links      streams (layer streams) and mesh links
traffic    valid_from and valid_to are intervals, in each of which this was counted; there are rows
           up to the interval of a peer's last event
gauges     of the writes in an interval (vizpub.ingest.sources.libp2p.writes)
requests   messages that a sent IWANT names, with the peer that it went to, or that a sent IDONTWANT
           names (other is null), and how many arrivals there had been at the sender
and those of vizpub.ingest.sources.base.Observed. What is never closed is OPEN.
"""


class EventFold(KeyFold):
    """A fold that makes TABLES from events."""

    tables: ClassVar[Mapping[str, pa.Schema]] = TABLES

    def __init__(self, files: Sequence[str], epoch_us: int, interval_us: int) -> None:
        """Create the fold from the names of the files, and the run's epoch in µs of Unix time."""
        super().__init__(self.tables, files)
        self.epoch_us, self._interval_us = epoch_us, interval_us

    def start(self) -> None:
        """Reset the counts."""
        self._tally, self._decode = TraceTally(), msgspec.msgpack.Decoder(TraceEvent).decode

    def begin(self, key: str) -> None:
        """Start a peer."""
        self._peer = FoldedPeer(key, self.rows, self._interval_us)

    def take(self, row: InputRow) -> None:
        """Take the next event of the peer, or of another peer's stream to it."""
        event = self.event_of(row)
        at = event.time // 1000 - self.epoch_us
        if event.peer == row.peer:
            self._peer.add_own(event, at, row.file)
        else:
            self._peer.add_of_others(event, at)

    def event_of(self, row: InputRow) -> TraceEvent:
        """Return the event of a row."""
        return self._decode(row.record)

    def end(self) -> None:
        """Write the open state of the peer."""
        self._tally.named += self._peer.leave()
        if copies := self._peer.copies():
            self._tally.copy(sorted(self._files[number] for number in copies))

    def add(self, tally: bytes) -> None:
        """Add the counts of a reader."""
        self._tally.add(TraceTally.of(json.loads(tally)))

    def total_counts(self) -> RunCounts:
        """Return the tally."""
        return self._tally.plain

    def refuse(self, row: InputRow, reason: str, text: bytes) -> None:
        """Put a record into the quarantine, and count it by reason."""
        count_name(self._tally.refused, reason)
        super().refuse(row, reason, text)


class AttributedFold(EventFold):
    """An EventFold that also takes the attributes of peers."""

    tables: ClassVar[Mapping[str, pa.Schema]] = {**TABLES, "attributes": OBSERVED["attributes"]}

    def take(self, row: InputRow) -> None:
        """Take the attributes of the peer, or its next event."""
        if row.rank == OF_ATTRIBUTES:
            attributes = msgspec.json.decode(row.record)
            self.rows["attributes"] += [(row.peer, *item, 0) for item in attributes.items()]
        else:
            super().take(row)


class FoldedPeer:
    """The state of the current peer, including the streams of others to it."""

    def __init__(self, name: str, rows: RowsByTable, interval_us: int) -> None:
        self.name, self._rows, self._interval_us = name, rows, interval_us
        self._first = self._last = 0
        self._files: dict[int, tuple[int, int]] = {}
        """First and last time of its events by file; empty = no event yet."""
        self._end: int | None = None
        self._named = 0
        self._streams, self._mesh, self._topics, self._held = (OpenPeriods(name) for _ in range(4))
        self._traffic = _PeerTraffic(name, rows)
        self._published: set[str | None] = set()
        self._arrivals = 0

    def add_own(self, event: TraceEvent, at: int, file: int) -> None:
        """Take the next event of its own, at a tick."""
        if not self._files:
            self._first = at
        since, _ = self._files.get(file, (event.time, event.time))
        self._files[file] = since, event.time
        self._last, self._end = at, None
        self._traffic.count(event, at // self._interval_us)
        match event.type:
            case EventType.DELIVER | EventType.DUPLICATE:
                self._receive(event, at)
                if event.type == EventType.DELIVER and event.bytes is not None:
                    self._rows["sizes"].append((event.message, *self._time(at)[1:], event.bytes))
            case EventType.PUBLISH:
                self._published.add(event.message)
                time_us, interval, tick = self._time(at)
                published = event.message, event.topic, self.name, interval, time_us, tick
                self._rows["publications"].append((*published, event.bytes))
            case EventType.REJECT if event.other != self.name:
                refused = event.message, event.topic, self.name, event.other
                self._rows["rejections"].append((*refused, *self._time(at), event.reason))
            case EventType.JOIN | EventType.LEAVE | EventType.GRAFT | EventType.PRUNE:
                self._turn(event, at)
            case EventType.SEND_RPC:
                self._add_requests(event)
            case EventType.STREAM_OPENED:
                self._streams.begin((event.other, STREAMS, None), at)
            case EventType.STREAM_CLOSED:
                self._rows["links"] += self._streams.end((event.other, STREAMS, None), at)
                # No PRUNE is written for it.
                self._rows["links"] += self._mesh.end_all(at, lambda link: link[0] == event.other)

    def _add_requests(self, event: TraceEvent) -> None:
        """Add the messages that the peer says it wants, or does not."""
        for entry in event.entries.control if event.entries else ():
            other = None if entry.kind == "idontwant" else event.other
            if other is None and entry.kind == "iwant":
                continue  # it would be an IDONTWANT
            self._rows["requests"] += (
                (self.name, message, other, self._arrivals) for message in entry.messages
            )

    def _turn(self, event: TraceEvent, at: int) -> None:
        """Begin or end a topic, or a link of the mesh."""
        link = event.other, MESH, event.topic
        if event.type == EventType.JOIN:
            self._topics.begin((event.topic,), at)
        elif event.type == EventType.GRAFT:
            self._mesh.begin(link, at)
        elif event.type == EventType.PRUNE:
            self._rows["links"] += self._mesh.end(link, at)
        else:
            self._rows["subscriptions"] += self._topics.end((event.topic,), at)
            # No PRUNE is written for it.
            self._rows["links"] += self._mesh.end_all(at, lambda link: link[2] == event.topic)

    def _receive(self, event: TraceEvent, at: int) -> None:
        """Add an arrival, unless a publisher delivers its own message: from itself, or, in an old
        trace without senders, after it published the message.
        """
        if event.other is None:
            is_own = event.type == EventType.DELIVER and event.message in self._published
        else:
            is_own = event.other == self.name
        if not is_own:
            self._arrivals += 1
            copy = event.message, event.topic, None, self.name, event.other
            details = self._arrivals, event.type == EventType.DELIVER, None, None
            self._rows["receptions"].append((*copy, *self._time(at), *details))

    def _time(self, at: int) -> tuple[int, int, int]:
        """Return time_us, interval and tick."""
        return at, limit_interval(at // self._interval_us), at

    def add_of_others(self, event: TraceEvent, at: int) -> None:
        """Take an event of another peer: of its stream to this one, or this one's subscription."""
        if event.type == EventType.JOIN:
            self._topics.begin((event.topic,), at)
            return
        if event.type == EventType.LEAVE:
            self._rows["subscriptions"] += self._topics.end((event.topic,), at)
            return
        stream = event.peer, STREAMS
        if event.type == EventType.STREAM_OPENED:
            self._held.begin(stream, at)
        else:
            self._let_go(self._held.end(stream, at), at)

    def _let_go(self, links: list[tuple[Any, ...]], at: int) -> None:
        """Take the end of links of another peer to this one."""
        if not self._files:
            self._name(links)
        if self._end is None:
            self._end = at

    def _name(self, links: list[tuple[Any, ...]]) -> None:
        self._rows["named"] += ((peer, src, *period) for peer, src, _, *period in links)
        self._named += len(links)

    def leave(self) -> int:
        """End the peer. Return the number of streams to it, if it has no event of its own."""
        held = self._held.end_all(OPEN)
        if not self._files:
            self._name(held)
            return self._named
        holders = None if self._end is None else [src for _, src, *_ in held]
        self._rows["peers"].append((self.name, self._first, self._last, self._end, holders))
        self._rows["links"] += [*self._streams.end_all(OPEN), *self._mesh.end_all(OPEN)]
        self._rows["subscriptions"] += self._topics.end_all(OPEN)
        self._traffic.end()
        return 0

    def copies(self) -> tuple[int, int] | None:
        """Find two files that overlap in time, as a peer writes one trace. Return their numbers."""
        latest = -1, -1, -1
        for since, until, file in sorted((*span, file) for file, span in self._files.items()):
            if since < latest[1] or (since, until) == latest[:2]:
                return latest[2], file
            if until >= latest[1]:
                latest = since, until, file
        return None


class OpenPeriods:
    """Things that a peer opens and closes. Repeated opening and closing is ignored; a period that
    ends in the tick in which it began lasts one tick.
    """

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._since: dict[tuple[Any, ...], int] = {}

    def begin(self, thing: tuple[Any, ...], at: int) -> None:
        """Open a thing at a tick, unless it is open."""
        self._since.setdefault(thing, at)

    def end(self, thing: tuple[Any, ...], at: int) -> list[tuple[Any, ...]]:
        """Close a thing. Return its period if it was open: the peer, the thing, valid_from,
        valid_to.
        """
        since = self._since.pop(thing, None)
        return [] if since is None else [(self._peer, *thing, since, max(at, since + 1))]

    def end_all(
        self, at: int, ends: Callable[[tuple[Any, ...]], bool] = lambda thing: True
    ) -> list[tuple[Any, ...]]:
        """Close all open things for which `ends` is true. Return their periods."""
        ending = [thing for thing in self._since if ends(thing)]
        return [period for thing in ending for period in self.end(thing, at)]


def limit_interval(interval: int) -> int:
    """Limit an interval to 32 bits; longer runs are refused, or folded again with another epoch."""
    return max(-1, min(interval, INT32))


class _PeerTraffic:
    """The traffic of a peer by interval."""

    def __init__(self, peer: str, rows: RowsByTable) -> None:
        self._peer, self._rows, self._control_rows = peer, rows["traffic"], rows["control"]
        self._gauge_rows = rows["gauges"]
        self._interval: int | None = None
        self._sums = [0] * len(COUNTED)
        self._control = ControlCounts()
        self._writes = WriteTimes()

    def count(self, event: TraceEvent, interval: int) -> None:
        """Add an event. A trace is complete, so an interval without events has no traffic."""
        if interval != self._interval:
            self.end(interval)
            self._interval = interval
        if event.write_ns is not None:
            self._writes.add(event.write_ns)
        if event.entries is None:
            return
        self._control.count(event)
        if event.type == EventType.DROP_RPC:
            self._sums[4] += 1
        else:
            is_received = event.type == EventType.RECV_RPC
            self._sums[is_received] += len(event.entries.control)
            self._sums[2 + is_received] += event.entries.messages
            self._sums[5 + is_received] += 1

    def end(self, following: int | None = None) -> None:
        """Write the current interval, and zeros until the next one with an event."""
        if self._interval is not None:
            over, interval = self._interval + 1, limit_interval(self._interval)
            self._rows.append((self._peer, self._interval, over, *self._sums))
            self._control_rows += ((self._peer, interval, *of) for of in self._control.take())
            self._gauge_rows += ((self._peer, interval, *of) for of in self._writes.take().items())
            self._sums = [0] * len(COUNTED)
            if following is not None and following > over:
                self._rows.append((self._peer, over, following, *self._sums))
