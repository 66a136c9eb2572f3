"""The reports of a peer in order of time → all folded tables, by the texts in `sql`.

Reports come peer by peer, and are folded some thousand at a time, all of a peer at once. The texts
compare each with the one before; `held` follows the entries of lists. A state that lasts a
thousand intervals is one row. Periods that reach the last report of a peer end after it here;
`Reports.observe`, which knows the whole run, decides whether they stay open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics import step_profile, steps
from vizpub.analytics.steps import Step
from vizpub.ingest.inputs.reader import InputRow, RowKind
from vizpub.ingest.sources.folded import CARRIED, GAUGES, OBSERVED, PERIOD
from vizpub.ingest.sources.reports.facts import COUNTERS, ReportTally
from vizpub.ingest.sources.times import NO_OUTLIERS, Outliers
from vizpub.ingest.tasks.fold import RowFold, RunCounts, rows_of, with_names
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
    "gauges": GAUGES,
    "unreported": pa.schema([("peer", pa.string()), ("what", pa.string()), *PERIOD]),
    CARRIED: pa.schema([("peer", pa.string()), ("interval", pa.int32()), ("record", pa.binary())]),
    **{name: schema for name, schema in OBSERVED.items() if name not in ("rejections", "sizes")},
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

_LIST_TEXTS = """
    SELECT CASE WHEN has_{field} THEN {field} END AS text
    FROM stays JOIN reports USING (row) ORDER BY row
"""
_ENTRIES = """SELECT json_transform(text, '["JSON"]')::VARCHAR[] AS entries FROM texts"""

_MOST_ROWS, _MOST_BYTES = 1 << 16, 32 * 2**20
"""Limits of the reports that are folded at a time; more if one peer has more."""


def _link_columns(entry: Any) -> tuple[str | None, ...]:
    """Return dst, layer and topic of a neighbour."""
    if isinstance(entry, str):
        return entry, OVERLAY, None
    return entry["peer"], entry.get("layer") or OVERLAY, entry.get("topic")


_LISTS: Mapping[str, tuple[str, Callable[[Any], tuple[str | None, ...]]]] = {
    "neighbors": ("links", _link_columns),
    "topics": ("subscriptions", lambda topic: (topic,)),
    "roles": ("roles", lambda entry: (entry["role"], entry.get("topic"))),
}
"""Lists that are a peer's state: the table of their entries, and the columns of an entry."""


class ReportFold(RowFold):
    """A fold that makes TABLES from reports."""

    def __init__(
        self,
        files: Sequence[str],
        gap_tolerance: int,
        outliers: Outliers = NO_OUTLIERS,
        *,
        totals: bool,
    ) -> None:
        """Create the fold from the names of the files, and the intervals that do not belong to the
        run; `totals` = counters run from the source's start.
        """
        super().__init__(TABLES, files)
        self._gap_tolerance, self.outliers, self.totals = gap_tolerance, outliers, totals

    def start(self) -> None:
        """Reset the counts."""
        self._tally = ReportTally()

    def fold_batches(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Take all rows, some peers at a time; see RowFold."""
        with steps.open_database() as database:
            database.execute(f"SET VARIABLE gap_tolerance = {self._gap_tolerance}")
            database.execute(f"SET VARIABLE totals = {self.totals}")
            database.execute((files(__package__) / "sql/macros.sql").read_text("utf-8"))
            for rows in self._of_whole_peers(batches):
                if len(chosen := self._choose(rows)):
                    database.register("rows", chosen)
                    step_profile.give_table("rows", [chosen])
                    for step in _first_steps(self.totals):
                        steps.create_table(database, step, "OR REPLACE TEMP TABLE")
                    self._count(database)
                    yield from with_names(_make_tables(database))
                yield from self._tables.take_full()

    def add(self, tally: bytes) -> None:
        """Add the counts of a reader."""
        self._tally.add(ReportTally.of(json.loads(tally)))

    def total_counts(self) -> RunCounts:
        """Return the tally."""
        return self._tally.plain

    def refuse(self, row: InputRow, reason: str, text: bytes) -> None:
        """Put a record into the quarantine, and count it by reason."""
        self._tally.refuse(reason)
        super().refuse(row, reason, text)

    def _of_whole_peers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the records, some peers at a time."""
        held, size = list[pa.RecordBatch](), 0
        for batch in batches:
            is_record = batch["kind"].to_numpy() >= RowKind.BEFORE
            for row in rows_of(batch.filter(pa.array(~is_record))):
                self.note(InputRow(*row))
            held += _filter_rows(is_record, batch)
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
        """Return the reports that count, with the columns that texts take.

        The others are counted or put into the quarantine: late ones, those that do not belong to
        the run, and further reports of the same peer and interval.
        """
        time, is_new = rows["time"].to_numpy(), rows["kind"].to_numpy() == RowKind.RECORD
        self.count_records(int(is_new.sum()))
        if self.final is not None:
            late = is_new & (time <= self.final)
            self._tally.lost.update({LATE: int(late.sum())} if late.any() else {})
            rows, time, is_new = _filter_rows(~late, rows, time, is_new)
        outlying = is_new & self._outlying(time)
        for row in map(InputRow._make, rows_of(rows.filter(outlying))):
            self.refuse(row, self.outliers.why(row.time) or "", row.record)
        for times, of in (
            (self._tally.outlying, outlying),
            (self._tally.times, is_new & ~outlying),
        ):
            numbers, lines = (rows[name].to_numpy()[of] for name in ("file", "line"))
            times.see_all(time[of], numbers, lines, self._files)
        rows, time, is_new = _filter_rows(~outlying, rows, time, is_new)
        if not is_new.all():
            rows, time, is_new = _filter_rows(_in_use(rows, is_new), rows, time, is_new)
        peers = rows["peer"].combine_chunks()
        further = np.zeros(len(time), bool)  # of the peer and interval of the row before
        further[1:] = (time[1:] == time[:-1]) & pc.equal(peers[1:], peers[:-1]).to_numpy(False)
        if further.any():
            self._lose(rows, further)
            rows, time, is_new = _filter_rows(~further, rows, time, is_new)
        columns = {
            "row": np.arange(len(rows)),
            "peer": rows["peer"],
            "interval": time,
            "is_new": is_new,
            "record": rows["record"].cast(pa.string()),
        }
        return pa.table(columns)

    def _outlying(self, time: Int64s) -> Bools:
        """Return a mask of the times that do not belong to the run."""
        if not self.outliers:
            return np.zeros(len(time), bool)
        each, places = np.unique(time, return_inverse=True)
        return np.array([bool(self.outliers.why(one)) for one in each.tolist()], bool)[places]

    def _lose(self, rows: pa.Table, further: Bools) -> None:
        """Count further reports of a peer and interval, beside the first of them."""
        first = np.maximum.accumulate(np.where(further, 0, np.arange(len(rows))))
        both = rows.take(first[further]), rows.filter(further)
        for first_row, lost in zip(*(map(InputRow._make, rows_of(of)) for of in both), strict=True):
            self._tally.extend(lost.time, lost.time)
            if lost.rank != first_row.rank:
                self._tally.lost["superseded_records"] += 1
            elif lost.record == first_row.record or _parse_content(lost.record) == _parse_content(
                first_row.record
            ):
                self._tally.lost["repeated_records"] += 1
            else:
                self._tally.lost["conflicting_records"] += 1
                self.refuse(lost, "conflicting report", lost.record)

    def _count(self, database: duckdb.DuckDBPyConnection) -> None:
        for shape, reports, first, last, *counts in database.sql("FROM tallies").fetchall():
            self._tally.shapes[shape] += reports
            self._tally.extend(first, last)
            with_gauges, with_attributes, with_control_kinds, differing, repeating = counts
            self._tally.gauges += with_gauges
            self._tally.attributes += with_attributes
            self._tally.control_kinds += with_control_kinds
            self._tally.differing += differing
            self._tally.repeating += repeating


def _in_use(rows: pa.Table, is_new: Bools) -> Bools:
    """Return a mask of the new reports, and of the state from which the first of a peer goes on:
    older states, and those of peers that do not report, change nothing.
    """
    peers = rows["peer"].combine_chunks()
    goes_on: Bools = pc.equal(peers[:-1], peers[1:]).to_numpy(False)
    leads: Bools = np.append(goes_on & is_new[1:], False)
    return is_new | leads


def _make_tables(database: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of the tables that are made from the reports at hand."""
    with step_profile.at_work(_HELD):
        # Numba, which tasks alone need.
        from vizpub.ingest.sources.reports.held import find_periods

        stay_rows = _query(database, "FROM stays ORDER BY row")
    for field, (table, meaning) in _LISTS.items():
        with step_profile.at_work(_HELD):
            texts = _query(database, _LIST_TEXTS.format(field=field))["text"].combine_chunks()
            encoded = texts.dictionary_encode()  # peers repeat their lists
            database.register("texts", pa.table({"text": encoded.dictionary}))
            lists = _query(database, _ENTRIES)["entries"].combine_chunks()
            list_of_row = np.array(encoded.indices.fill_null(-1).to_numpy())
            held = find_periods(lists, list_of_row, meaning, stay_rows, TABLES[table])
        step_profile.count_rows(_HELD, len(stay_rows), len(held))
        yield from ((table, rows) for rows in held.to_batches() if len(rows))
    for step in _LAST_STEPS:
        columns = ", ".join(f'"{name}"' for name in TABLES[step.makes].names)
        with step_profile.at_work(step.name):
            made = _query(database, f"SELECT {columns} FROM ({step.text})").cast(TABLES[step.makes])
        step_profile.count_table(step.name, step.takes, step.makes, len(made))
        yield from ((step.makes, rows) for rows in made.to_batches() if len(rows))


def _load_steps(*names: str) -> tuple[Step, ...]:
    return tuple(steps.load_step(name, __package__) for name in names)


@cache
def _first_steps(totals: bool) -> tuple[Step, ...]:
    """Return the steps whose tables others take, in order."""
    counters = Step(_HERE, "FROM counters", "counted", whole=("counters",))
    return (
        *_load_steps("reports", "stays", "counters", "kinds"),
        *_load_steps("copies_sent", "copies_received", "listed"),
        *(_load_steps("increases") if totals else [counters]),
        *_load_steps("measured", "tallies"),
    )


_HERE, _HELD = (f"ingest/sources/reports/{module}.py" for module in ("fold", "held"))
_LAST_STEPS = (
    Step(_HERE, "FROM measured", "traffic", whole=("measured",)),
    *_load_steps("peers", "presence", "attributes", "control", "gauges", "unreported"),
    *_load_steps("publications", "receptions", CARRIED),
)
"""Those that make folded tables."""


def _filter_rows(chosen: Bools, rows: pa.Table, *columns: Any) -> tuple[Any, ...]:
    if chosen.all():
        return rows, *columns
    return rows.filter(pa.array(chosen)), *(column[chosen] for column in columns)


def _query(database: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    return database.sql(text).to_arrow_table()


def _parse_content(record: bytes) -> dict[str, Any]:
    """Return the content of a report in one form, however it is spelled."""
    report = _drop_empty(msgspec.json.decode(record))
    for field in _LISTS.keys() & report.keys():
        report[field] = [*map(_LISTS[field][1], report[field])]
    return {"left": False, **report, "run": None}


def _drop_empty(value: Any) -> Any:
    """Return a JSON value without null and empty members of its objects."""
    if isinstance(value, list):
        return [*map(_drop_empty, value)]
    if not isinstance(value, dict):
        return value
    inner = {name: _drop_empty(one) for name, one in value.items()}
    return {name: one for name, one in inner.items() if one is not None and one != {}}
