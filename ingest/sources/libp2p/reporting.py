"""Events of a trace that still grows → a report of each peer for each interval.

A report has what a trace knows: the streams and mesh links that the peer has at the interval's end,
its topics, and the RPCs, publications and arrivals of the interval. `docs/collecting.md` says what
differs from an ingest of the same trace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from vizpub.ingest.sources.libp2p.control import ControlCounts
from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent
from vizpub.ingest.sources.libp2p.fold import MESH, STREAMS
from vizpub.ingest.sources.libp2p.presence import find_held
from vizpub.ingest.sources.libp2p.writes import WriteTimes
from vizpub.reports.records import ControlKind, Report

Json = dict[str, Any]
_REMEMBERED_US = 600_000_000
"""Time for which a message is remembered: several times that of gossipsub."""


@dataclass
class _ReportingPeer:
    """The state of a peer, and the events of its current interval."""

    name: str
    last_us: int = 0
    """Time of its last own event."""
    events: int = 0
    """Number of its own events so far."""
    present: bool = False
    holders: set[str] = field(default_factory=set)
    """Peers that hold a stream to it."""
    deserted: bool = False
    """True if a stream to it was closed since its last own event."""
    streams: set[str] = field(default_factory=set)
    mesh: set[tuple[str, str]] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
    """Times of the messages it refused."""
    published: dict[str, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    control: ControlCounts = field(default_factory=ControlCounts)
    writes: WriteTimes = field(default_factory=WriteTimes)
    sent: list[Json] = field(default_factory=list)
    received: list[Json] = field(default_factory=list)

    def take(self, event: TraceEvent, at: int) -> None:
        """Take the next own event, at µs since the run's epoch."""
        self.last_us, self.deserted = at, False
        self.events += 1
        remote_peer, topic, message = event.other or "", event.topic or "", event.message or ""
        match event.type:
            case EventType.STREAM_OPENED:
                self.streams.add(remote_peer)
            case EventType.STREAM_CLOSED:
                self.streams.discard(remote_peer)
                # No PRUNE is written for it.
                self.mesh = {link for link in self.mesh if link[0] != remote_peer}
            case EventType.GRAFT | EventType.PRUNE | EventType.JOIN | EventType.LEAVE:
                self._turn(event.type, remote_peer, topic)
            case EventType.PUBLISH:
                self.published[message] = at
                copy = {"message": message, "topic": topic, "publisher": self.name}
                self.sent.append({**copy, "hops": 0, "time_us": at})
            case EventType.REJECT if remote_peer != self.name:
                self.refused[message] = at
            case EventType.DELIVER | EventType.DUPLICATE:
                self._receive(event, at)
            case EventType.SEND_RPC | EventType.RECV_RPC | EventType.DROP_RPC:
                self._count(event)
            case EventType.SEND_RPC_COMPLETED if event.write_ns is not None:
                self.writes.add(event.write_ns)

    def _count(self, event: TraceEvent) -> None:
        """Count an RPC and its entries."""
        if event.entries is not None:
            self.control.count(event)
        if event.type == EventType.DROP_RPC:
            self.counts["dropped"] += 1
        elif event.entries is not None:
            direction = "sent" if event.type == EventType.SEND_RPC else "received"
            self.counts[f"control_{direction}"] += len(event.entries.control)
            self.counts[f"publication_{direction}"] += event.entries.messages
            self.counts[f"rpcs_{direction}"] += 1

    def _turn(self, kind: int, remote_peer: str, topic: str) -> None:
        """Begin or end a topic, or a link of the mesh."""
        if kind == EventType.GRAFT:
            self.mesh.add((remote_peer, topic))
        elif kind == EventType.PRUNE:
            self.mesh.discard((remote_peer, topic))
        elif kind == EventType.JOIN:
            self.topics.add(topic)
        else:
            self.topics.discard(topic)
            # No PRUNE is written for it.
            self.mesh = {link for link in self.mesh if link[1] != topic}

    def _receive(self, event: TraceEvent, at: int) -> None:
        """Add an arrival, except of refused messages: a report cannot say that a message was
        refused, and its copies would look like deliveries.
        """
        message = event.message or ""
        is_own = event.other == self.name or (event.other is None and message in self.published)
        if is_own or message in self.refused:
            return
        arrival: Json = {"message": message, "time_us": at}
        if event.topic is not None:
            arrival |= {"topic": event.topic, "subscribed": event.topic in self.topics}
        if event.other is not None:
            arrival["from"] = event.other
        self.received.append(arrival)

    def report(self, interval: int, *, has_left: bool) -> Json:
        """Return the report of the interval that is over, and begin the next one."""
        counts = self.counts
        report: Json = {
            "format": Report.format,
            "peer": self.name,
            "interval": interval,
            # The same events make the same report, also after a restart.
            "seq": self.events,
            "neighbors": [
                *({"peer": remote_peer, "layer": STREAMS} for remote_peer in sorted(self.streams)),
                *({"peer": o, "layer": MESH, "topic": t} for o, t in sorted(self.mesh)),
            ],
            "topics": sorted(self.topics),
            **{
                kind: {way: {"messages": counts[f"{kind}_{way}"]} for way in ("sent", "received")}
                for kind in ("control", "publication")
            },
            "control_kinds": [ControlKind(*of).to_json() for of in self.control.take()],
            "rpcs_sent": counts["rpcs_sent"],
            "rpcs_received": counts["rpcs_received"],
            "gauges": {"dropped": counts["dropped"], **self.writes.take()},
            "sent": self.sent,
            "received": self.received,
        }
        if has_left:
            report |= {"neighbors": [], "topics": [], "left": True}
        self.counts, self.sent, self.received = Counter(), [], []
        old = self.last_us - _REMEMBERED_US
        for times in (self.refused, self.published):
            for message in [m for m, at in times.items() if at < old]:
                del times[message]
        return report


class TraceReports:
    """Makes the reports of the peers of a trace, interval by interval.

    A peer reports from its first event on, until all streams to it are closed after its last event,
    or until it is silent for `silence_us` and no present peer holds a stream to it.
    """

    def __init__(self, epoch_us: int, interval_us: int, silence_us: int) -> None:
        """Create it for a run whose epoch is `epoch_us`, in µs of Unix time."""
        self._epoch_us, self._interval_us, self._silence_us = epoch_us, interval_us, silence_us
        self._peers: dict[str, _ReportingPeer] = {}
        self._holders: defaultdict[str, set[str]] = defaultdict(set)
        self._coming: list[tuple[int, int, TraceEvent]] = []
        self._order = count()
        self._next: int | None = None
        self.late = 0
        """Number of events in intervals that were reported already; they count in the next one."""

    @property
    def coming(self) -> int:
        """Number of events that are in no report yet."""
        return len(self._coming)

    def add(self, event: TraceEvent) -> None:
        """Add an event, in any order."""
        at = event.time // 1000 - self._epoch_us
        if self._next is not None and at < self._next * self._interval_us:
            self.late += 1
        heappush(self._coming, (event.time, next(self._order), event))

    @property
    def last(self) -> int | None:
        """Last interval that was reported; null if none was."""
        return None if self._next is None else self._next - 1

    def last_ended(self, time_us: int) -> int:
        """Return the last interval that is over at a time, in µs of Unix time."""
        return (time_us - self._epoch_us) // self._interval_us - 1

    def reports_through(self, last: int) -> Iterator[tuple[int, list[Json]]]:
        """Yield the reports of each interval up to `last`, from that of the first event on.

        Events before the run's epoch only make the state in which peers begin.
        """
        while True:
            if self._next is None:
                if not self._coming:
                    return
                first = (self._coming[0][0] // 1000 - self._epoch_us) // self._interval_us
                self._next = max(first, 0)
            if self._next > last:
                return
            interval, self._next = self._next, self._next + 1
            yield interval, self._reports(interval)

    def _reports(self, interval: int) -> list[Json]:
        end_us = (interval + 1) * self._interval_us
        while self._coming and self._coming[0][0] // 1000 - self._epoch_us < end_us:
            self._take(heappop(self._coming)[2])
        silent = {
            peer.name: sorted(peer.holders)
            for peer in self._peers.values()
            if peer.deserted or end_us - peer.last_us > self._silence_us
        }
        # A peer that is only named says nothing about others.
        known_holders = {
            name: [h for h in holders if h in self._peers] for name, holders in silent.items()
        }
        gone = silent.keys() - find_held(known_holders)
        reports = []
        for peer in self._peers.values():
            is_there = peer.name not in gone
            if is_there or peer.present or peer.counts or peer.sent or peer.received:
                reports.append(peer.report(interval, has_left=not is_there))
            peer.present = is_there
        return reports

    def _take(self, event: TraceEvent) -> None:
        at = event.time // 1000 - self._epoch_us
        if (peer := self._peers.get(event.peer)) is None:
            peer = self._peers[event.peer] = _ReportingPeer(event.peer)
            peer.holders = self._holders[event.peer]
        peer.take(event, at)
        if event.other is None or event.other == event.peer:
            return
        if event.type == EventType.STREAM_OPENED:
            self._holders[event.other].add(event.peer)
        elif event.type == EventType.STREAM_CLOSED:
            self._holders[event.other].discard(event.peer)
            if remote_peer := self._peers.get(event.other):
                remote_peer.deserted = True
