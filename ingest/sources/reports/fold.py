"""A peer's reports in order of time → all tables that they tell, in one pass.

What is held while a peer's reports go by is what it has open: its neighbours, topics and roles.
A state that stays for a thousand intervals is one row. What ends with the last report of a peer
ends after it here; only who knows the whole run knows whether that is its end, too (`observed`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from ingest.fold import Counted, KeyFold, Rows
from ingest.reader import Kind, Row
from ingest.reports.records import OVERLAY, Report
from ingest.sources.folded import CARRIED, OBSERVED
from ingest.sources.reports.decoding import report_decoder
from ingest.sources.reports.facts import COUNTERS, STATE, Tally, shape_of
from ingest.sources.reports.traffic import Counts, counters, differ, either, of_events
from model.columns import TRAFFIC_COLUMNS

TABLES: dict[str, pa.Schema] = {
    "peers": pa.schema([("name", pa.string()), ("interval", pa.int32())]),
    "traffic": pa.schema(
        [("peer", pa.string()), ("interval", pa.int32())]
        + [(name, pa.int64()) for name in COUNTERS]
    ),
    "untold": pa.schema(
        [
            ("peer", pa.string()),
            ("what", pa.string()),
            ("valid_from", pa.int64()),
            ("valid_to", pa.int64()),
        ]
    ),
    CARRIED: pa.schema([("peer", pa.string()), ("interval", pa.int32()), ("record", pa.binary())]),
    **{name: schema for name, schema in OBSERVED.items() if name != "rejections"},
}
"""What the fold makes.

peers          the first interval of each that reports
untold         spans in which a peer leaves open its `receptions` or `subscriptions`
traffic        of the interval alone; publication traffic that is not counted is taken from events
records        of each peer what a later report goes on from, as a record of the contract
and those of ingest.sources.base.Observed, where `valid_to` is the interval after the last in which
something was told.
"""


class ReportFold(KeyFold):
    """Makes TABLES of reports."""

    def __init__(self, files: Sequence[str], gap_tolerance: int, *, totals: bool) -> None:
        """Takes the names of the files; `totals` = counters run from the source's start."""
        super().__init__(TABLES, files)
        self._gap_tolerance, self.totals = gap_tolerance, totals

    def start(self) -> None:
        """Nothing is counted."""
        self._tally, self._decode = Tally(), report_decoder().decode

    def begin(self, key: str) -> None:
        """A peer."""
        self._peer = _Peer(key, self.rows, self._tally, self._gap_tolerance, self.totals)

    def take(self, row: Row) -> None:
        """The next report, or what the run before left behind."""
        report, peer = self._decode(row.record), self._peer
        if row.time == peer.at:
            self._lose(report, row)
            return
        peer.take(report, row.rank)
        if row.kind == Kind.RECORD:
            peer.tell(report)
        else:
            peer.go_on(report)

    def end(self) -> None:
        """The peer's last report was taken."""
        self._peer.leave()

    def add(self, tally: bytes) -> None:
        """What a reader has counted."""
        self._tally.add(Tally.of(json.loads(tally)))

    def counted(self) -> Counted:
        """The tally."""
        return self._tally.plain

    def refuse(self, row: Row, reason: str, text: bytes) -> None:
        """Counted, too."""
        self._tally.refuse(reason)
        super().refuse(row, reason, text)

    def _lose(self, report: Any, row: Row) -> None:
        """One of several reports of a peer and interval, behind the first."""
        self._tally.span(report.interval, report.interval)
        if row.rank != self._peer.rank:
            self._tally.lost["superseded_records"] += 1
        elif _said(report) == _said(self._peer.last):
            self._tally.lost["repeated_records"] += 1
        else:
            self._tally.lost["conflicting_records"] += 1
            self.refuse(row, "conflicting report", row.record)


class _Peer:
    """One peer while its reports go by."""

    def __init__(
        self, name: str, rows: Rows, tally: Tally, gap_tolerance: int, totals: bool
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
        self._untold: dict[str, tuple[int, int]] = {}
        """The last span of what is left open."""
        self._counted: Counts = [None] * len(COUNTERS)
        """The counters as last told, where they are totals."""
        self._told_since: int | None = None
        """The interval of the first report that is not of the run before."""

    def go_on(self, report: Any) -> None:
        """The report is what the run that is appended to left behind."""
        self._counted = counters(report)

    def take(self, report: Any, rank: int) -> None:
        """The next report: what it says of the peer's state."""
        at, left, over = report.interval, report.left is True, self.at + 1
        bridges = not self._left and at - over <= self._gap_tolerance
        joined = bridges and not left
        if at > over and bridges:
            self._leave_open("receptions", over, at)
            if self._topics.told is None:
                self._leave_open("subscriptions", over, at)
        if left or not bridges:
            self._turn(at, bridges=bridges, left=left)
        for state in self._states:
            told = None if left else getattr(report, state.field)
            if not joined or (told is not None and told != state.told):
                state.turn(told, joined, at, over)
        self.at, self.rank, self.last, self._left = at, rank, report, left
        if self._first is None:
            self._first = at

    def _turn(self, at: int, *, bridges: bool, left: bool) -> None:
        """A stay begins at a report that follows on none, and ends after one that none follows
        on; one that says that the peer left tells that it was there before it.
        """
        self._be_absent(at if bridges else self.at + 1)
        self._since = None if left else at

    def _be_absent(self, end: int) -> None:
        if self._since is not None:
            self._rows["presence"].append((self.name, self._since, end))
            self._since = None

    def leave(self) -> None:
        """There are no more reports."""
        carried = self._carried()
        if self._told_since is not None:
            self._tally.span(self._told_since, self.at)
        self._be_absent(self.at + 1)
        for state in self._states:
            state.turn(None, False, self.at, self.at + 1)
        for what in tuple(self._untold):
            self._close_untold(what)
        self._rows["peers"].append((self.name, self._first))
        self._rows[CARRIED].append((self.name, self.at, carried))

    def _leave_open(self, what: str, start: int, end: int) -> None:
        """What is known of others is not told of these intervals."""
        first, last = self._untold.get(what, (start, start))
        if last != start:
            self._close_untold(what)
            first = start
        self._untold[what] = (first, end)

    def _close_untold(self, what: str) -> None:
        if what in self._untold:
            self._rows["untold"].append((self.name, what, *self._untold.pop(what)))

    def tell(self, report: Any) -> None:
        """What a report tells once, and what is counted of it."""
        at, sent, received = report.interval, report.sent, report.received
        traffic = self._traffic(report)
        if self._told_since is None:
            self._told_since = at
        self._rows["traffic"].append((self.name, at, *traffic))
        self._tally.shapes[shape_of(report, traffic)] += 1
        if sent:
            self._publish(sent, at)
        if received:
            self._receive(received, at)
        elif received is None:
            self._leave_open("receptions", at, at + 1)
        if self._topics.told is None and not self._left:
            self._leave_open("subscriptions", at, at + 1)

    def _publish(self, sent: Sequence[Any], at: int) -> None:
        """What a peer sent without having received it."""
        for copy in sent:
            if copy.hops == 0 or (copy.hops is None and copy.publisher == self.name):
                publisher = copy.publisher or self.name
                self._rows["publications"].append(
                    (copy.message, copy.topic, publisher, at, copy.time_us, at)
                )

    def _receive(self, received: Sequence[Any], at: int) -> None:
        """Every arrival, in the order in which its report has them."""
        add = self._rows["receptions"].append
        for arrival, copy in enumerate(received):
            add(
                (
                    *(copy.message, copy.topic, copy.publisher, self.name, getattr(copy, "from")),
                    *(copy.time_us, at, at, arrival, None, copy.hops, copy.subscribed),
                )
            )

    def _traffic(self, report: Any) -> Counts:
        """What a report tells of COUNTERS: as counted, else by its events."""
        counted = counters(report)
        if self._totals:
            counted = self._added(counted)
        if report.sent is None and report.received is None:
            return counted
        events = of_events(report)
        self._tally.differing += differ(counted, events)
        return either(counted, events)

    def _added(self, counted: Counts) -> Counts:
        """What was added to counters that run on; one that dropped began anew."""
        added = list(counted)
        for number, (value, before) in enumerate(zip(counted, self._counted, strict=True)):
            if value is not None:
                if before is not None and value >= before:
                    added[number] = value - before
                self._counted[number] = value
        return added

    def _carried(self) -> bytes:
        """What a later report goes on from, as a record: the state as last told in this stay, and
        the counters as last told at all.
        """
        record = {"format": Report.format, "peer": self.name, "interval": self.at}
        told = {state.field: state.told for state in self._states if state.told is not None}
        counted: dict[str, dict[str, dict[str, int | None]]] = {}
        for name, value in zip(TRAFFIC_COLUMNS, self._counted, strict=False):
            kind, what, way = name.split("_")
            counted.setdefault(kind, {}).setdefault(way, {})[what] = value
        more = {"left": self._left, "duplicates": self._counted[-1]}
        return msgspec.json.encode({**record, **told, **counted, **more})


class _State:
    """One of the lists that make up a peer's state."""

    def __init__(self, peer: str, field: str, rows: Rows) -> None:
        self.field, self.told = field, None
        """What was last told of it in this stay; null = nothing yet."""
        self._add = rows[_TABLE_OF[field]].append
        self._peer, self._parts = peer, _PARTS[field]
        self._held: dict[Any, int] = {}
        """What is held, and since when."""

    def turn(self, told: Any, joined: bool, at: int, over: int) -> None:
        """It is told anew. What is gone was over after the last report (`over`), and what does
        not go on (not `joined`) begins anew.
        """
        held = self._held
        now = dict.fromkeys(_items(told)) if told else {}
        for item in [item for item in held if item not in now] if joined else list(held):
            self._add((self._peer, *self._parts(item), held.pop(item), over))
        for item in [item for item in now if item not in held]:
            held[item] = at
        self.told = told


def _items(entries: list[Any]) -> list[Any]:
    """Topics, neighbours or roles as what is quickly compared: a name, or a tuple of more."""
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
    """All that a report says; what says the same is equal."""
    state = [getattr(report, field) for field in STATE]
    items = [told and _items(told) for told in state]
    return (report.seq, report.left is True, items, counters(report), report.sent, report.received)
