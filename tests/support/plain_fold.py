"""The fold of reports in plain Python, one report after the other: an oracle for the texts in
ingest/sources/reports/sql.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from vizpub.ingest.inputs.reader import InputRow, RowKind
from vizpub.ingest.sources.folded import CARRIED
from vizpub.ingest.sources.reports.decoding import report_decoder
from vizpub.ingest.sources.reports.facts import COUNTERS, STATE, ReportTally
from vizpub.ingest.sources.reports.fold import TABLES
from vizpub.ingest.sources.reports.source import ARRIVALS, REPEATED
from vizpub.ingest.sources.times import NO_OUTLIERS, Outliers
from vizpub.ingest.tasks.fold import KeyFold, RowsByTable, RunCounts
from vizpub.model.columns import CONTROL_COLUMNS, TRAFFIC_COLUMNS
from vizpub.reports.fields import INT64
from vizpub.reports.records import OVERLAY, Report
from vizpub.runstore.manifest import LATE

Counts = list[int | None]
"""Values of facts.COUNTERS; null = not reported."""


def counters(report: Any) -> Counts:
    """The values of COUNTERS."""
    more = report.duplicates, report.rpcs_sent, report.rpcs_received
    return [*_ways(report.control), *_ways(report.publication), *more]


def _ways(counters: Any) -> tuple[int | None, int | None, int | None, int | None]:
    if counters is None:
        return None, None, None, None
    sent, received = counters.sent or _NOTHING, counters.received or _NOTHING
    return sent.messages, received.messages, sent.bytes, received.bytes


class _NOTHING:
    """Counters without reported values."""

    messages = bytes = None


def of_events(report: Any) -> Counts:
    """Publication traffic from the events of a report; null where an event lacks a value."""
    messages = size = arrived = arrived_size = None
    if report.sent is not None:
        messages = _sum([None if c.to is None else len(c.to) for c in report.sent])
        size = _sum([None if None in (c.to, c.bytes) else c.bytes * len(c.to) for c in report.sent])
    if report.received is not None:
        arrived, arrived_size = len(report.received), _sum([c.bytes for c in report.received])
    return [messages, arrived, size, arrived_size]


def _sum(values: Sequence[int | None]) -> int | None:
    """Sums beyond 64 bits are unknown."""
    if not values:
        return 0
    if None in values:
        return None
    total = sum(values)  # type: ignore[arg-type]
    return total if total <= INT64 else None


_PUBLICATION = slice(4, 8)
"""The counters that can also be derived from events."""
_ARRIVED, _REPEATED = 5, 8
"""The counters of received publications and of duplicates."""


def either(counted: Counts, events: Counts) -> Counts:
    """The counters, with missing ones derived from events: where these are complete. A list whose
    messages or bytes differ from those that are counted tells nothing of the other.
    """
    publication = counted[_PUBLICATION]
    if publication == [None] * 4:
        return [*counted[:4], *events, *counted[8:]]
    pairs = tuple(zip(publication, events, strict=True))
    agree = [None in pair or pair[0] == pair[1] for pair in pairs]
    # Messages and bytes of one way are two apart.
    known = [e if c is None and agree[n - 2] else c for n, (c, e) in enumerate(pairs)]
    return [*counted[:4], *known, *counted[8:]]


def unlisted(report: Any, counted: Counts) -> str | None:
    """What the list of a report's arrivals lacks by its counters: ARRIVALS, or REPEATED ones alone,
    as far as they tell; null where it lacks none.
    """
    listed, arrived, repeated = len(report.received), counted[_ARRIVED], counted[_REPEATED]
    if arrived is None or arrived == listed:
        return REPEATED if (repeated or 0) > listed else None
    is_told = arrived > listed if repeated is None else arrived == listed + repeated
    return REPEATED if is_told else ARRIVALS


def differ(counted: Counts, events: Counts) -> bool:
    """Whether the publication counters of a report differ from its events."""
    publication = counted[_PUBLICATION]
    if publication == [None] * 4:
        return False
    return any(
        None not in pair and pair[0] != pair[1] for pair in zip(publication, events, strict=True)
    )


def shape_of(report: Any, traffic: Sequence[int | None]) -> int:
    """The optional fields of a report, and whether its peer left, as bits; `traffic` has its
    values of COUNTERS.
    """
    c = traffic
    return (
        (report.neighbors is not None)
        | (report.topics is not None) << 1
        | (report.roles is not None) << 2
        | (report.sent is not None) << 3
        | (report.received is not None) << 4
        | (c[0] is not None or c[1] is not None) << 5
        | (c[2] is not None or c[3] is not None) << 6
        | (c[4] is not None or c[5] is not None) << 7
        | (c[6] is not None or c[7] is not None) << 8
        | (c[8] is not None) << 9
        | (c[9] is not None or c[10] is not None) << 10
        | (report.left is True) << 11
    )


class PlainFold(KeyFold):
    """As ReportFold."""

    def __init__(
        self,
        files: Sequence[str],
        gap_tolerance: int,
        outliers: Outliers = NO_OUTLIERS,
        *,
        totals: bool,
    ) -> None:
        """Takes the names of the files, and the intervals that do not belong to the run; `totals` =
        counters run from the source's start.
        """
        super().__init__(TABLES, files)
        self._gap_tolerance, self.outliers, self.totals = gap_tolerance, outliers, totals

    def start(self) -> None:
        """Reset the counts."""
        self._tally, self._decode = ReportTally(), report_decoder().decode

    def begin(self, key: str) -> None:
        """Start a peer."""
        self._peer = _Peer(key, self.rows, self._tally, self._gap_tolerance, self.totals)

    def take(self, row: InputRow) -> None:
        """The next report, or the state at the end of the run that is appended to."""
        if row.kind == RowKind.RECORD and self.final is not None and row.time <= self.final:
            self._tally.lost[LATE] += 1
            return
        if row.kind == RowKind.RECORD:
            why = self.outliers.why(row.time)
            times = self._tally.outlying if why else self._tally.times
            times.see(row.time, None, self._files[row.file], row.line)
            if why:
                self.refuse(row, why, row.record)
                return
        report, peer = self._decode(row.record), self._peer
        if row.time == peer.at:
            self._lose(report, row)
            return
        peer.take(report, row.rank)
        if row.kind == RowKind.RECORD:
            peer.add_events(report)
        else:
            peer.resume(report)

    def end(self) -> None:
        """Write the open state of the peer."""
        self._peer.leave()

    def add(self, tally: bytes) -> None:
        """Add the counts of a reader."""
        self._tally.add(ReportTally.of(json.loads(tally)))

    def total_counts(self) -> RunCounts:
        """The tally."""
        return self._tally.plain

    def refuse(self, row: InputRow, reason: str, text: bytes) -> None:
        """Also counted by reason."""
        self._tally.refuse(reason)
        super().refuse(row, reason, text)

    def _lose(self, report: Any, row: InputRow) -> None:
        """Count a further report of the same peer and interval."""
        self._tally.extend(report.interval, report.interval)
        if row.rank != self._peer.rank:
            self._tally.lost["superseded_records"] += 1
        elif _said(report) == _said(self._peer.last):
            self._tally.lost["repeated_records"] += 1
        else:
            self._tally.lost["conflicting_records"] += 1
            self.refuse(row, "conflicting report", row.record)


class _Peer:
    """The state of the current peer."""

    def __init__(
        self, name: str, rows: RowsByTable, tally: ReportTally, gap_tolerance: int, totals: bool
    ) -> None:
        self.name, self._rows, self._tally = name, rows, tally
        self._gap_tolerance, self._totals = gap_tolerance, totals
        self.at, self.rank = -1, 0
        """Of the last report."""
        self.last: Any = None
        self._first: int | None = None
        self._left = True
        self._since: int | None = None
        """When this stay began."""
        self._states = [_State(name, field, rows) for field in STATE]
        self._topics = self._states[1]
        self._unreported: dict[str, tuple[int, int]] = {}
        """The current period in which something is not reported."""
        self._counted: Counts = [None] * len(COUNTERS)
        """The counters as last reported, if they are totals."""
        self._reported_since: int | None = None
        self._kinds: dict[tuple[str, str | None], Counts] = {}
        """Control messages by kind and topic as last reported, if they are totals."""
        self._attributes: dict[str, str] = {}
        """The interval of the first report of this input."""

    def resume(self, report: Any) -> None:
        """Continue from the state at the end of the run that is appended to."""
        self._counted = counters(report)
        self._count_kinds(report)

    def take(self, report: Any, rank: int) -> None:
        """Update the state by the next report."""
        at, left, over = report.interval, report.left is True, self.at + 1
        bridges = not self._left and at - over <= self._gap_tolerance
        joined = bridges and not left
        if at > over and bridges:
            self._leave_open("receptions", over, at)
            if self._topics.reported is None:
                self._leave_open("subscriptions", over, at)
        if left or not bridges:
            self._turn(at, bridges=bridges, left=left)
        for state in self._states:
            now = None if left else getattr(report, state.field)
            if not joined or (now is not None and now != state.reported):
                state.turn(now, joined, at, over)
        self.at, self.rank, self.last, self._left = at, rank, report, left
        if self._first is None:
            self._first = at

    def _turn(self, at: int, *, bridges: bool, left: bool) -> None:
        """A stay begins at a report without a predecessor, and ends after one without a
        successor. A report that the peer left shows that it was present before.
        """
        self._be_absent(at if bridges else self.at + 1)
        self._since = None if left else at

    def _be_absent(self, end: int) -> None:
        if self._since is not None:
            self._rows["presence"].append((self.name, self._since, end))
            self._since = None

    def leave(self) -> None:
        """End all periods after the last report, if any came that was not late."""
        if self._reported_since is None:
            return
        carried = self._carried()
        self._tally.extend(self._reported_since, self.at)
        self._be_absent(self.at + 1)
        for state in self._states:
            state.turn(None, False, self.at, self.at + 1)
        for what in tuple(self._unreported):
            self._close_unreported(what)
        self._rows["peers"].append((self.name, self._first))
        self._rows[CARRIED].append((self.name, self.at, carried))

    def _leave_open(self, what: str, start: int, end: int) -> None:
        """Record that `what` is not reported for these intervals."""
        first, last = self._unreported.get(what, (start, start))
        if last != start:
            self._close_unreported(what)
            first = start
        self._unreported[what] = (first, end)

    def _close_unreported(self, what: str) -> None:
        if what in self._unreported:
            self._rows["unreported"].append((self.name, what, *self._unreported.pop(what)))

    def add_events(self, report: Any) -> None:
        """Add the events and the traffic of a report, and count its fields."""
        at, sent, received = report.interval, report.sent, report.received
        traffic = self._traffic(report)
        if self._reported_since is None:
            self._reported_since = at
        self._rows["traffic"].append((self.name, at, *traffic))
        self._tally.shapes[shape_of(report, traffic)] += 1
        by_kind = self._count_kinds(report).items()
        self._rows["control"] += [(self.name, at, *of, *counts) for of, counts in by_kind]
        self._tally.control_kinds += report.control_kinds is not None
        if report.gauges:
            self._tally.gauges += 1
            add = self._rows["gauges"].append
            for name, value in report.gauges.items():
                add((self.name, at, name, value))
        self._tally.attributes += bool(report.attributes)
        stated = sorted((of.key, of.value) for of in report.attributes or ())
        for key, value in dict(stated).items():
            if self._attributes.get(key) != value:
                self._attributes[key] = value
                self._rows["attributes"].append((self.name, key, value, at))
        if sent:
            self._publish(sent, at)
        if received:
            self._receive(received, at)
        elif received is None:
            self._leave_open("receptions", at, at + 1)
        if self._topics.reported is None and not self._left:
            self._leave_open("subscriptions", at, at + 1)

    def _count_kinds(self, report: Any) -> dict[tuple[str, str | None], Counts]:
        """Control messages of the interval by kind and topic; entries of both add up."""
        entries: dict[tuple[str, str | None], list[Any]] = defaultdict(list)
        for entry in report.control_kinds or ():
            entries[entry.kind, entry.topic].append(entry)
        summed: dict[tuple[str, str | None], Counts] = {}
        for of, same in entries.items():
            counts = ([getattr(entry, name) for entry in same] for name in CONTROL_COLUMNS)
            summed[of] = [None if None in known else sum(known) for known in counts]
        known = {of: [None if (n or 0) > INT64 else n for n in c] for of, c in summed.items()}
        if not self._totals:
            return known
        for of in known:
            self._kinds.setdefault(of, [None] * len(CONTROL_COLUMNS))
        return {of: _increase(sums, self._kinds[of]) for of, sums in known.items()}

    def _publish(self, sent: Sequence[Any], at: int) -> None:
        """Add the messages that the peer published itself."""
        for copy in sent:
            if copy.hops == 0 or (copy.hops is None and copy.publisher == self.name):
                publisher = copy.publisher or self.name
                self._rows["publications"].append(
                    (copy.message, copy.topic, publisher, at, copy.time_us, at, copy.bytes)
                )

    def _receive(self, received: Sequence[Any], at: int) -> None:
        """Add all arrivals, in the order of the report."""
        add = self._rows["receptions"].append
        for arrival, copy in enumerate(received):
            add(
                (
                    *(copy.message, copy.topic, copy.publisher, self.name, getattr(copy, "from")),
                    *(copy.time_us, at, at, arrival, None, copy.hops, copy.subscribed),
                )
            )

    def _traffic(self, report: Any) -> Counts:
        """The values of COUNTERS of a report, with missing ones derived from its events."""
        counted = counters(report)
        if self._totals:
            counted = self._added(counted)
        if report.sent is None and report.received is None:
            return counted
        events = of_events(report)
        is_different = differ(counted, events)
        self._tally.differing += is_different
        if report.received is not None and (what := unlisted(report, counted)):
            self._leave_open(what, report.interval, report.interval + 1)
            self._tally.repeating += not is_different
        return either(counted, events)

    def _added(self, counted: Counts) -> Counts:
        """The increase of counters that are totals; one that dropped was restarted."""
        return _increase(counted, self._counted)

    def _carried(self) -> bytes:
        """The record from which a later report continues: the state as last reported in this stay,
        and the counters as last reported.
        """
        record = {"format": Report.format, "peer": self.name, "interval": self.at}
        lists = {state.field: state.reported for state in self._states}
        counted: dict[str, dict[str, dict[str, int | None]]] = {}
        for name, value in zip(TRAFFIC_COLUMNS, self._counted, strict=False):
            kind, what, way = name.split("_")
            counted.setdefault(kind, {}).setdefault(way, {})[what] = value
        later = slice(len(TRAFFIC_COLUMNS), None)
        more = {"left": self._left, **dict(zip(COUNTERS[later], self._counted[later], strict=True))}
        known = {name: value for name, value in lists.items() if value is not None}
        by_kind = sorted(self._kinds.items(), key=lambda of: (of[0][0], of[0][1] or ""))
        names = ("kind", "topic", *CONTROL_COLUMNS)
        kinds = [dict(zip(names, (*of, *counts), strict=True)) for of, counts in by_kind]
        more["control_kinds"] = kinds or None
        return msgspec.json.encode({**record, **known, **counted, **more})


def _increase(counted: Counts, before: Counts) -> Counts:
    """What totals grew by; `before` becomes their last known values."""
    added = list(counted)
    for number, (value, last) in enumerate(zip(counted, before, strict=True)):
        if value is not None:
            if last is not None and value >= last:
                added[number] = value - last
            before[number] = value
    return added


class _State:
    """One of the lists that make up a peer's state."""

    def __init__(self, peer: str, field: str, rows: RowsByTable) -> None:
        self.field, self.reported = field, None
        """As last reported in this stay; null = not yet."""
        self._add = rows[_TABLE_OF[field]].append
        self._peer, self._parts = peer, _PARTS[field]
        self._held: dict[Any, int] = {}
        """Current items, and the interval in which each began."""

    def turn(self, reported: Any, joined: bool, at: int, over: int) -> None:
        """Set the state from a report at `at`. Items that are gone end after the last report
        (`over`); if the stay does not continue (not `joined`), all items start again.
        """
        held = self._held
        now = dict.fromkeys(_items(reported)) if reported else {}
        for item in [item for item in held if item not in now] if joined else list(held):
            self._add((self._peer, *self._parts(item), held.pop(item), over))
        for item in [item for item in now if item not in held]:
            held[item] = at
        self.reported = reported


def _items(entries: list[Any]) -> list[Any]:
    """Topics, neighbours or roles as hashable values: a name, or a tuple."""
    if type(entries[0]) is str and set(map(type, entries)) == {str}:
        return entries
    return [entry if isinstance(entry, str) else _item(entry) for entry in entries]


def _item(entry: Any) -> Any:
    if hasattr(entry, "role"):
        return entry.role, entry.topic
    layer = entry.layer or OVERLAY
    is_plain = layer == OVERLAY and entry.topic is None
    return entry.peer if is_plain else (entry.peer, layer, entry.topic)


def _link(item: Any) -> Any:
    """dst, layer and topic."""
    return (item, OVERLAY, None) if isinstance(item, str) else item


_TABLE_OF = {"neighbors": "links", "topics": "subscriptions", "roles": "roles"}
_PARTS: dict[str, Callable[[Any], Any]] = {
    "neighbors": _link,
    "topics": lambda topic: (topic,),
    "roles": lambda role: role,
}


def _said(report: Any) -> tuple[Any, ...]:
    """The content of a report, for comparison."""
    state = [getattr(report, field) for field in STATE]
    items = [entries and _items(entries) for entries in state]
    events = report.attributes, report.sent, report.received
    return (report.seq, report.left is True, items, counters(report), report.gauges, *events)
