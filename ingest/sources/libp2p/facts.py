"""Counts over a trace, and the description of the run from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from vizpub.ingest.inputs.reader import InputSplit, RecordRefused
from vizpub.ingest.sources.base import RunDescription, SourceInput
from vizpub.ingest.sources.libp2p.events import KNOWN, EventType, TraceEvent
from vizpub.ingest.sources.tallies import RecordTally
from vizpub.ingest.sources.times import GAP, NO_OUTLIERS, Outliers, RecordTimes, check_length
from vizpub.ingest.tasks.fold import RunCounts, count_name, every_refused
from vizpub.model.clock import Clock
from vizpub.model.errors import InputError

NO_EVENT = "no event of the trace could be read"
SAME_EVENTS = "both have events of the same peer at the same time"

INTERVAL_US = 1_000_000

_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
_NO_BYTES = "traffic in bytes (traces have no sizes)"
_NO_HOPS = (
    "previous hop of first receptions, so hops and dissemination trees "
    "(the trace does not say whom a delivery came from)",
    "IDONTWANT entries, so control traffic is a lower bound "
    "(the tools that write this format leave them out)",
)


@dataclass
class TraceTally(RecordTally):
    """Counts over events; their times are nanoseconds of Unix time."""

    unknown: Counter[str] = field(default_factory=Counter)
    """Events of an unknown type, and those with an unknown field."""
    protocols: Counter[str] = field(default_factory=Counter)
    """Events by protocol."""
    deliveries: int = 0
    with_previous_hop: int = 0
    """Deliveries that name the previous hop."""
    duplicates: int = 0
    own_rejections: int = 0
    """Rejections of a message by its own publisher."""
    writes: int = 0
    """RPCs whose write has ended, with its duration."""
    named: int = 0
    """Streams to peers without events of their own."""
    logs: int = 0
    partial_logs: int = 0
    """Logs of nodes that report received messages alone; only the source interop has logs."""
    attributed: int = 0
    """Logs of nodes with attributes."""
    implementations: Counter[str] = field(default_factory=Counter)
    """Nodes by what they run."""
    parameters: dict[str, Any] | None = None
    """Those of the run, where a file has them; these three are of the source interop alone."""
    tables: Counter[str] = field(default_factory=Counter)
    """Parts of the input by table (xatu), or records by kind of entry (hermes)."""
    networks: Counter[str] = field(default_factory=Counter)
    """Records by network."""
    repeated: int = 0
    """Records that another version of the same one replaces."""
    unjoined: int = 0
    """Control entries whose RPC is not in the input; these three are of the source xatu alone."""
    copies: list[str] | None = None
    """Two files with events of one peer at the same time."""
    times: RecordTimes = field(default_factory=lambda: RecordTimes(0))

    def count_unknown(self, kind: int, fields: Iterable[str]) -> None:
        """Count the unknown fields of an event, and its type if that is unknown."""
        if kind not in KNOWN:
            count_name(self.unknown, f"unknown event type {kind}")
        for name in fields:
            count_name(self.unknown, f"unknown field {name}")

    def see(self, event: TraceEvent) -> None:
        """Count an event."""
        if event.proto is not None:
            count_name(self.protocols, event.proto)
        if event.type == EventType.DELIVER:
            self.deliveries += 1
            self.with_previous_hop += event.other is not None
        elif event.type == EventType.DUPLICATE:
            self.duplicates += 1
        elif event.type == EventType.REJECT:
            self.own_rejections += event.other == event.peer
        self.writes += event.write_ns is not None
        self.extend(event.time, event.time)

    def copy(self, files: list[str]) -> None:
        """Record two files with events of one peer at the same time."""
        self.copies = min(self.copies or files, files)

    def add(self, tally: Self) -> None:
        """Add the counts of another tally."""
        super().add(tally)
        self.parameters = self.parameters or tally.parameters
        if tally.copies is not None:
            self.copy(tally.copies)


@dataclass(frozen=True)
class TraceJudge:
    """Counts the events of a reader, and refuses those whose times are outliers."""

    interval_us: int = INTERVAL_US
    outliers: Outliers = NO_OUTLIERS

    @classmethod
    def of(cls, source_input: SourceInput) -> Self:
        """Create it with the outliers among counted times; without counts there are none yet."""
        interval_us = source_input.options.interval_us or INTERVAL_US
        if source_input.counted is None:
            return cls(interval_us)
        return cls(interval_us, find_outliers(source_input.counted, interval_us))

    def tally(self) -> TraceTally:
        """Return a new tally for a split."""
        return TraceTally(times=RecordTimes(GAP * 1000 * self.interval_us))

    def count(self, event: TraceEvent, tally: TraceTally, split: InputSplit, line: int) -> None:
        """Count an event. Raises: RecordRefused for an outlier."""
        if why := self.outliers.why(event.time):
            raise RecordRefused(why)
        tally.see(event)
        tally.times.see(event.time, event.peer, split.path, line)


def find_outliers(counted: RunCounts, interval_us: int) -> Outliers:
    """Find the times that do not belong to the run."""
    return TraceTally.of(counted).times.outliers(1000 * interval_us)


def describe_trace(tally: TraceTally, interval_us: int) -> RunDescription:
    """Describe the run; see Libp2p.describe."""
    if tally.first is None or tally.last is None:
        raise InputError(NO_EVENT, every_refused(tally.refused))
    if tally.copies is not None:
        first_file, second = tally.copies
        raise InputError(
            f"{first_file} and {second} {SAME_EVENTS}",
            "give one encoding of the trace, for example: vizpub ingest TRACE/json",
        )
    since, until = (time // 1000 // interval_us for time in (tally.first, tally.last))
    clock = Clock(ticks_per_interval=interval_us, tick_us=1, last=until - since)
    check_length(tally.times, clock, "the events")
    protocols = sorted(tally.protocols)
    epoch = _UNIX + timedelta(microseconds=epoch_us(tally.first, interval_us))
    floods = protocols and all(name.startswith("/floodsub/") for name in protocols)
    lacks_hops = tally.deliveries and not tally.with_previous_hop
    notes = dict(sorted(tally.unknown.items()))
    unsaid = tally.deliveries - tally.with_previous_hop
    if unsaid and tally.with_previous_hop:
        notes["deliveries that do not say whom they came from"] = unsaid
    if tally.own_rejections:
        notes["messages their own publisher rejected"] = tally.own_rejections
    return RunDescription(
        clock=clock,
        protocol="floodsub" if floods else "gossipsub",
        parameters={"protocols": protocols} if protocols else {},
        epoch=epoch.isoformat().replace("+00:00", "Z"),
        unknown=(_NO_BYTES, *_NO_HOPS) if lacks_hops else (_NO_BYTES,),
        notes=notes | tally.times.empty(1000 * interval_us),
        totals=tally.plain,
    )


def epoch_us(first: int, interval_us: int) -> int:
    """Return the time when the first event's interval began, in µs of Unix time."""
    return first // 1000 // interval_us * interval_us
