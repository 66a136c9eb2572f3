"""The reports of a peer in order of time → all folded tables, by the texts in `sql`.

Reports come peer by peer, and are folded some thousand at a time, all of a peer at once. The texts
compare each with the one before; what lists hold is followed by `held`. A state that lasts a
thousand intervals is one row. Periods that reach the last report of a peer end after it here;
`observed`, which knows the whole run, decides whether they stay open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics import steps
from vizpub.ingest.inputs.reader import Kind, Row
from vizpub.ingest.sources.folded import CARRIED, OBSERVED
from vizpub.ingest.sources.reports.facts import COUNTERS, Tally
from vizpub.ingest.sources.times import NO_OUTLIERS, Outliers
from vizpub.ingest.tasks.fold import Counted, RowFold, rows_of, with_names
from vizpub.model.arrays import Bools, Int64s
from vizpub.reports.records import OVERLAY
from vizpub.runstore.manifest import LATE

if TYPE_CHECKING:
    import duckdb

TABLES: dict[str, pa.Schema] = {
    "peers": pa.schema([("name", pa.string()), ("interval", pa.int32())]),
    "traffic": pa.schema(
        [("peer", pa.string()), ("interval", pa.int32())]
        + [(name, pa.int64()) for name in COUNTERS]
    ),
    "gauges": pa.schema(
        [
            ("peer", pa.string()),
            ("interval", pa.int32()),
            ("gauge", pa.string()),
            ("value", pa.float64()),
        ]
    ),
    "unreported": pa.schema(
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
"""The folded tables.

peers          the first interval of each that reports
unreported     periods in which a peer leaves open its `receptions` or `subscriptions`, or lists
               fewer ARRIVALS than it counts, or fewer of the REPEATED ones alone
traffic        of the interval alone; publication traffic that is not counted is taken from events
gauges         as reported
records        of each peer what a later report goes on from, as a record of the contract
and those of vizpub.ingest.sources.base.Observed, where `valid_to` is the interval after the last in
which something was reported.
"""

_MOST_ROWS, _MOST_BYTES = 1 << 16, 32 * 2**20
"""Of reports that are folded at a time; more where one peer has more."""


def _link(entry: Any) -> tuple[str | None, ...]:
    """dst, layer and topic of a neighbour."""
    if isinstance(entry, str):
        return entry, OVERLAY, None
    return entry["peer"], entry.get("layer") or OVERLAY, entry.get("topic")


_HELD: Mapping[str, tuple[str, Callable[[Any], tuple[str | None, ...]]]] = {
    "neighbors": ("links", _link),
    "topics": ("subscriptions", lambda topic: (topic,)),
    "roles": ("roles", lambda entry: (entry["role"], entry.get("topic"))),
}
"""The lists that are a peer's state: the table of what they hold, and the columns of an entry."""


class ReportFold(RowFold):
    """Makes TABLES of reports."""

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
        self._tally = Tally()

    def fold(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """See RowFold."""
        texts = _between(self.totals)
        with steps.open_database() as database:
            database.execute(f"SET VARIABLE gap_tolerance = {self._gap_tolerance}")
            database.execute(f"SET VARIABLE totals = {self.totals}")
            database.execute((files(__package__) / "sql/macros.sql").read_text("utf-8"))
            for rows in self._of_whole_peers(batches):
                if len(chosen := self._choose(rows)):
                    database.register("rows", chosen)
                    for name, text in texts.items():
                        database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {text}")
                    self._count(database)
                    yield from with_names(_make(database))
                yield from self._tables.full()

    def add(self, tally: bytes) -> None:
        """Add the counts of a reader."""
        self._tally.add(Tally.of(json.loads(tally)))

    def counted(self) -> Counted:
        """The tally."""
        return self._tally.plain

    def refuse(self, row: Row, reason: str, text: bytes) -> None:
        """Also counted by reason."""
        self._tally.refuse(reason)
        super().refuse(row, reason, text)

    def _of_whole_peers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The records, some peers at a time."""
        held, size = list[pa.RecordBatch](), 0
        for batch in batches:
            is_record = batch["kind"].to_numpy() >= Kind.BEFORE
            for row in rows_of(batch.filter(pa.array(~is_record))):
                self.note(Row(*row))
            held += _only(is_record, batch)
            size += held[-1].nbytes
            if sum(map(len, held)) >= _MOST_ROWS or size >= _MOST_BYTES:
                rows = pa.Table.from_batches(held)
                last = pc.index(rows["peer"], rows["peer"][-1]).as_py()
                yield rows.slice(0, last)
                rest = rows.slice(last)
                held, size = rest.to_batches(), rest.nbytes
        if held:
            yield pa.Table.from_batches(held)

    def _choose(self, rows: pa.Table) -> pa.Table:
        """The reports that count, with the columns that texts take; the rest is counted, or put
        into the quarantine: what is late, what does not belong to the run, and further reports of
        the same peer and interval.
        """
        time, is_new = rows["time"].to_numpy(), rows["kind"].to_numpy() == Kind.RECORD
        self.seen(int(is_new.sum()))
        if self.final is not None:
            late = is_new & (time <= self.final)
            self._tally.lost.update({LATE: int(late.sum())} if late.any() else {})
            rows, time, is_new = _only(~late, rows, time, is_new)
        outlying = is_new & self._outlying(time)
        for row in map(Row._make, rows_of(rows.filter(outlying))):
            self.refuse(row, self.outliers.why(row.time) or "", row.record)
        for times, of in (
            (self._tally.outlying, outlying),
            (self._tally.times, is_new & ~outlying),
        ):
            numbers, lines = (rows[name].to_numpy()[of] for name in ("file", "line"))
            times.see_all(time[of], numbers, lines, self._files)
        rows, time, is_new = _only(~outlying, rows, time, is_new)
        further = _further(rows["peer"].combine_chunks(), time)
        self._lose(rows, further)
        rows, time, is_new = _only(~further, rows, time, is_new)
        columns = {
            "row": np.arange(len(rows)),
            "peer": rows["peer"],
            "interval": time,
            "is_new": is_new,
            "record": rows["record"].cast(pa.string()),
        }
        return pa.table(columns)

    def _outlying(self, time: Int64s) -> Bools:
        """Which times do not belong to the run."""
        if not self.outliers:
            return np.zeros(len(time), bool)
        each, places = np.unique(time, return_inverse=True)
        return np.array([bool(self.outliers.why(one)) for one in each.tolist()], bool)[places]

    def _lose(self, rows: pa.Table, further: Bools) -> None:
        """Count further reports of a peer and interval, beside the first of them."""
        first = np.maximum.accumulate(np.where(further, 0, np.arange(len(rows))))
        both = rows.take(first[further]), rows.filter(further)
        for kept, lost in zip(*(map(Row._make, rows_of(of)) for of in both), strict=True):
            self._tally.extend(lost.time, lost.time)
            if lost.rank != kept.rank:
                self._tally.lost["superseded_records"] += 1
            elif lost.record == kept.record or _content(lost.record) == _content(kept.record):
                self._tally.lost["repeated_records"] += 1
            else:
                self._tally.lost["conflicting_records"] += 1
                self.refuse(lost, "conflicting report", lost.record)

    def _count(self, database: duckdb.DuckDBPyConnection) -> None:
        for shape, reports, first, last, *counts in database.sql("FROM tallies").fetchall():
            self._tally.shapes[shape] += reports
            self._tally.extend(first, last)
            with_gauges, differing, repeating = counts
            self._tally.gauges += with_gauges
            self._tally.differing += differing
            self._tally.repeating += repeating


def _make(database: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of the tables that are made of the reports at hand."""
    from vizpub.ingest.sources.reports.held import periods  # numba, which tasks alone need

    stays = _arrow(database, "FROM stays ORDER BY row")
    for field, (table, meaning) in _HELD.items():
        lists = _arrow(database, f"SELECT {field}::VARCHAR[] AS {field} FROM reports ORDER BY row")
        reported = lists[field].combine_chunks(), stays[f"has_{field}"].combine_chunks()
        held = periods(*reported, meaning, stays, TABLES[table])
        yield from ((table, rows) for rows in held.to_batches() if len(rows))
    for table, text in _FINAL.items():
        columns = ", ".join(f'"{name}"' for name in TABLES[table].names)
        made = _arrow(database, f"SELECT {columns} FROM ({text})").cast(TABLES[table])
        yield from ((table, rows) for rows in made.to_batches() if len(rows))


def _text(name: str) -> str:
    return steps.step(name, __package__).text


_FINAL = {
    "traffic": "FROM measured",
    **{
        name: _text(name)
        for name in (
            *("peers", "presence", "gauges", "unreported", "publications", "receptions"),
            CARRIED,
        )
    },
}
"""The texts that make folded tables, by table."""


def _between(totals: bool) -> dict[str, str]:
    """The texts that make what others take, in order, by what they make."""
    names = ("reports", "stays", "counters", "copies_sent", "copies_received", "listed")
    counted = {"counted": _text("increases") if totals else "FROM counters"}
    last = {name: _text(name) for name in ("measured", "tallies")}
    return {name: _text(name) for name in names} | counted | last


def _further(peers: pa.StringArray, time: Int64s) -> Bools:
    """Which rows have the peer and the time of the row before."""
    same = np.zeros(len(time), bool)
    same[1:] = (time[1:] == time[:-1]) & pc.equal(peers[1:], peers[:-1]).to_numpy(False)
    return same


def _only(chosen: Bools, rows: pa.Table, *columns: Any) -> tuple[Any, ...]:
    if chosen.all():
        return rows, *columns
    return rows.filter(pa.array(chosen)), *(column[chosen] for column in columns)


def _arrow(database: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    return database.sql(text).to_arrow_table()


def _content(record: bytes) -> dict[str, Any]:
    """What a report says, however it is spelled."""
    report = _pruned(msgspec.json.decode(record))
    for field in _HELD.keys() & report.keys():
        report[field] = [*map(_HELD[field][1], report[field])]
    return {"left": False, **report, "run": None}


def _pruned(value: Any) -> Any:
    """A JSON value without what is null or empty in its objects."""
    if isinstance(value, list):
        return [*map(_pruned, value)]
    if not isinstance(value, dict):
        return value
    inner = {name: _pruned(one) for name, one in value.items()}
    return {name: one for name, one in inner.items() if one is not None and one != {}}
