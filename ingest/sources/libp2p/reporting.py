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

from vizpub.ingest.sources.libp2p.events import Event, Type
from vizpub.ingest.sources.libp2p.fold import MESH, STREAMS
from vizpub.ingest.sources.libp2p.presence import held
from vizpub.reports.records import Report

Json = dict[str, Any]
_REMEMBERED_US = 600_000_000
"""How long a message is remembered: several times what gossipsub does."""


@dataclass
class _Peer:
    """What a peer has now, and what happened in the current interval."""

    name: str
    last_us: int = 0
    """Of its last own event."""
    events: int = 0
    """Of its own so far."""
    present: bool = False
    holders: set[str] = field(default_factory=set)
    """The peers that hold a stream to it."""
    deserted: bool = False
    """A stream to it was closed since its last own event."""
    streams: set[str] = field(default_factory=set)
    mesh: set[tuple[str, str]] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
    """Messages it refused, and when."""
    published: dict[str, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    sent: list[Json] = field(default_factory=list)
    received: list[Json] = field(default_factory=list)

    def take(self, event: Event, at: int) -> None:
        """The next own event, at µs since the run's epoch."""
        self.last_us, self.deserted = at, False
        self.events += 1
        other, topic, message = event.other or "", event.topic or "", event.message or ""
        match event.type:
            case Type.STREAM_OPENED:
                self.streams.add(other)
            case Type.STREAM_CLOSED:
                self.streams.discard(other)
                # No PRUNE is written for it.
                self.mesh = {link for link in self.mesh if link[0] != other}
            case Type.GRAFT | Type.PRUNE | Type.JOIN | Type.LEAVE:
                self._turn(event.type, other, topic)
            case Type.PUBLISH:
                self.published[message] = at
                told = {"message": message, "topic": topic, "publisher": self.name}
                self.sent.append({**told, "hops": 0, "time_us": at})
            case Type.REJECT if other != self.name:
                self.refused[message] = at
            case Type.DELIVER | Type.DUPLICATE:
                self._receive(event, at)
            case Type.SEND_RPC | Type.RECV_RPC | Type.DROP_RPC:
                self._count(event)

    def _turn(self, kind: int, other: str, topic: str) -> None:
        """A topic, or a link of its mesh, begins or ends."""
        if kind == Type.GRAFT:
            self.mesh.add((other, topic))
        elif kind == Type.PRUNE:
            self.mesh.discard((other, topic))
        elif kind == Type.JOIN:
            self.topics.add(topic)
        else:
            self.topics.discard(topic)
            # No PRUNE is written for it.
            self.mesh = {link for link in self.mesh if link[1] != topic}

    def _receive(self, event: Event, at: int) -> None:
        """An arrival. A report cannot say that a message was refused, and its copies would look
        like deliveries.
        """
        message = event.message or ""
        is_own = event.other == self.name or (event.other is None and message in self.published)
        if is_own or message in self.refused:
            return
        told: Json = {"message": message, "time_us": at}
        if event.topic is not None:
            told |= {"topic": event.topic, "subscribed": event.topic in self.topics}
        if event.other is not None:
            told["from"] = event.other
        self.received.append(told)

    def _count(self, event: Event) -> None:
        counts = event.counts
        if event.type == Type.DROP_RPC:
            self.counts["dropped"] += 1
        elif counts is not None:
            way = "sent" if event.type == Type.SEND_RPC else "received"
            self.counts[f"control_{way}"] += counts.control
            self.counts[f"publication_{way}"] += counts.messages
            self.counts[f"rpcs_{way}"] += 1

    def report(self, interval: int, *, left: bool) -> Json:
        """Of the interval that is over; the next one begins."""
        found = self.counts
        told: Json = {
            "format": Report.format,
            "peer": self.name,
            "interval": interval,
            # The same events make the same report, also after a restart.
            "seq": self.events,
            "neighbors": [
                *({"peer": other, "layer": STREAMS} for other in sorted(self.streams)),
                *({"peer": o, "layer": MESH, "topic": t} for o, t in sorted(self.mesh)),
            ],
            "topics": sorted(self.topics),
            **{kind: _each_way(found, kind) for kind in ("control", "publication")},
            "rpcs_sent": found["rpcs_sent"],
            "rpcs_received": found["rpcs_received"],
            "gauges": {"dropped": found["dropped"]},
            "sent": self.sent,
            "received": self.received,
        }
        if left:
            told |= {"neighbors": [], "topics": [], "left": True}
        self.counts, self.sent, self.received = Counter(), [], []
        old = self.last_us - _REMEMBERED_US
        for named in (self.refused, self.published):
            for message in [m for m, at in named.items() if at < old]:
                del named[message]
        return told


def _each_way(found: Counter[str], kind: str) -> Json:
    return {way: {"messages": found[f"{kind}_{way}"]} for way in ("sent", "received")}


class TraceReports:
    """Makes the reports of the peers of a trace, interval by interval.

    A peer reports from its first event on, until all streams to it are closed after its last event,
    or until it is silent for `silence_us` and no present peer holds a stream to it.
    """

    def __init__(self, epoch_us: int, interval_us: int, silence_us: int) -> None:
        """`epoch_us`: the run's epoch, in µs of Unix time."""
        self._epoch_us, self._interval_us, self._silence_us = epoch_us, interval_us, silence_us
        self._peers: dict[str, _Peer] = {}
        self._holders: defaultdict[str, set[str]] = defaultdict(set)
        self._coming: list[tuple[int, int, Event]] = []
        self._order = count()
        self._next: int | None = None
        self.late = 0
        """Events of intervals that were reported already; they count in the next one."""

    @property
    def coming(self) -> int:
        """Events that are in no report yet."""
        return len(self._coming)

    def add(self, event: Event) -> None:
        """An event, in any order."""
        at = event.time // 1000 - self._epoch_us
        if self._next is not None and at < self._next * self._interval_us:
            self.late += 1
        heappush(self._coming, (event.time, next(self._order), event))

    @property
    def last(self) -> int | None:
        """The last interval that was reported."""
        return None if self._next is None else self._next - 1

    def ended(self, time_us: int) -> int:
        """The last interval that is over at a time, in µs of Unix time."""
        return (time_us - self._epoch_us) // self._interval_us - 1

    def through(self, last: int) -> Iterator[tuple[int, list[Json]]]:
        """The reports of each interval up to one, from that of the first event on. What was before
        the run's epoch only makes the state in which peers begin.
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
        gone = self._gone(end_us)
        reports = []
        for peer in self._peers.values():
            is_there = peer.name not in gone
            if is_there or peer.present or peer.counts or peer.sent or peer.received:
                reports.append(peer.report(interval, left=not is_there))
            peer.present = is_there
        return reports

    def _take(self, event: Event) -> None:
        at = event.time // 1000 - self._epoch_us
        if (peer := self._peers.get(event.peer)) is None:
            peer = self._peers[event.peer] = _Peer(event.peer)
            peer.holders = self._holders[event.peer]
        peer.take(event, at)
        if event.other is None or event.other == event.peer:
            return
        if event.type == Type.STREAM_OPENED:
            self._holders[event.other].add(event.peer)
        elif event.type == Type.STREAM_CLOSED:
            self._holders[event.other].discard(event.peer)
            if other := self._peers.get(event.other):
                other.deserted = True

    def _gone(self, now_us: int) -> set[str]:
        """The peers that are gone, as far as is known now."""
        silent = {
            peer.name: sorted(peer.holders)
            for peer in self._peers.values()
            if peer.deserted or now_us - peer.last_us > self._silence_us
        }
        # A peer that is only named says nothing about others.
        known = {name: [h for h in holders if h in self._peers] for name, holders in silent.items()}
        return silent.keys() - held(known)
