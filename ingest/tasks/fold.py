"""Base classes of folds, which take rows and build tables: of all folds, and of those by key."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from vizpub.ingest.inputs.reader import TEXT_LIMIT, InputRow, RowKind

RunCounts = Mapping[str, Any]
"""Counts over a run or a part of it, by name, as JSON values."""

_FULL = 1 << 16
_MOST_NAMES = 1000
"""Names of unknown fields, and reasons, that are counted separately."""
_OTHERS = "(others)"
_SHOWN = 3

RowsByTable = dict[str, list[tuple[Any, ...]]]
"""Rows by table."""

NAME_COLUMNS: Mapping[str, Sequence[str]] = {
    "peer": ("name", "peer", "src", "dst", "publisher", "previous_hop"),
    "topic": ("topic",),
    "message": ("message",),
}
"""The columns that hold names, by kind."""
_WHEN = {"interval": "min", "valid_from": "min", "valid_to": "max", "tick": "min"}
NAMES = pa.schema(
    [
        *((column, pa.string()) for column in ("table", "kind", "column", "name")),
        *(
            ("interval", pa.int32()),
            ("valid_from", pa.int64()),
            ("valid_to", pa.int64()),
            ("tick", pa.int64()),
        ),
    ]
)
"""The table of names: the table and column of each name, with the least `interval`, `valid_from`
and `tick` and the greatest `valid_to` of its rows; null where the table has no such column. A
name may have several rows.
"""
_NAMING = (
    *("peers", "presence", "links", "subscriptions", "roles", "control"),
    *("publications", "receptions", "rejections"),
)
"""Tables whose names are collected; the names in other tables are also in `peers`."""


class TableBuffers:
    """Buffers rows of several tables, as tuples."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._schemas = schemas
        self.rows: RowsByTable = {name: [] for name in schemas}
        """Rows to write, which callers append to."""

    def take_full(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield and remove the rows of tables with full buffers."""
        return with_names(self._take_rows(_FULL))

    def take_rest(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield and remove all rows."""
        return with_names(self._take_rows(1))

    def _take_rows(self, least: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        for name, rows in self.rows.items():
            if len(rows) >= least:
                schema = self._schemas[name]
                columns = zip(*rows, strict=True)
                arrays = [pa.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)]
                rows.clear()
                yield name, pa.record_batch(arrays, schema=schema)


def with_names(
    tables: Iterable[tuple[str, pa.RecordBatch]],
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of tables, and for each batch the rows of NAMES."""
    for name, rows in tables:
        yield name, rows
        if name in _NAMING:
            yield from (("names", names) for names in names_in(name, rows))


def names_in(table: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of NAMES for rows of a table."""
    when = {name: rows[name] for name in _WHEN if name in rows.schema.names}
    for kind, columns in NAME_COLUMNS.items():
        for column in (name for name in columns if name in rows.schema.names):
            named_rows = pa.table({"name": rows[column], **when}).filter(rows[column].is_valid())
            groups = named_rows.group_by("name").aggregate([(name, _WHEN[name]) for name in when])
            labels = {"table": table, "kind": kind, "column": column}
            values = {
                **{name: pa.repeat(value, groups.num_rows) for name, value in labels.items()},
                "name": groups["name"],
                **{name: groups[f"{name}_{_WHEN[name]}"] for name in when},
            }
            nothing = pa.nulls(groups.num_rows)
            arrays = [values.get(field.name, nothing) for field in NAMES]
            yield from pa.table(arrays, NAMES.names).cast(NAMES).to_batches()


class RowFold(ABC):
    """A fold (vizpub.ingest.tasks.sink.Fold) of rows (vizpub.ingest.inputs.reader) that arrive by
    key, usually the peer, and in order of time.
    """

    rows: RowsByTable
    """Rows by table, to append to."""
    final: int | None = None
    """The last interval of the run that is appended to; what is reported of it or an earlier one
    comes late. Null where a run is made from all of its input."""

    def __init__(self, tables: Mapping[str, pa.Schema], files: Sequence[str]) -> None:
        """Create a fold from the schemas of its tables, including `quarantine`, and the file
        names.
        """
        self._schemas, self._files = tables, files

    @abstractmethod
    def start(self) -> None:
        """Prepare for the first row."""

    @abstractmethod
    def fold_batches(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Take all rows, and yield rows of tables beside those that are appended to `rows`."""

    @abstractmethod
    def total_counts(self) -> RunCounts:
        """Return the counts over all rows."""

    def add(self, tally: bytes) -> None:
        """Add the counts of a reader, as JSON; readers of some sources count nothing."""
        del tally

    def note(self, row: InputRow) -> None:
        """Take a row that is no record: a refusal, a damage, or counts."""
        if row.kind == RowKind.REFUSED:
            self.count_records(1)
            self.refuse(row, row.reason or "", row.record)
        elif row.kind == RowKind.DAMAGED:
            self._damaged[self._files[row.file]] = row.reason
        else:
            self.add(row.record)

    def count_records(self, records: int) -> None:
        """Count records."""
        self._seen += records

    def refuse(self, row: InputRow, reason: str, text: bytes) -> None:
        """Put a record, which need not be UTF-8, into the quarantine."""
        count_name(self._refused, reason)
        content = text.decode("utf-8", "replace")[:TEXT_LIMIT]
        self.rows["quarantine"].append((self._files[row.file], row.line, reason, content))

    def summary(self) -> str:
        """Return JSON with `counted`, `damaged` (reason by file), `seen` (number of records) and
        `refused` (number by reason).
        """
        judged = {"seen": self._seen, "refused": self._refused}
        return json.dumps({"counted": self.total_counts(), "damaged": self._damaged, **judged})

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (table name, rows) pairs."""
        self._tables = TableBuffers(self._schemas)
        self.rows, self._damaged = self._tables.rows, dict[str, str | None]()
        self._seen, self._refused = 0, Counter[str]()
        self.start()
        yield from self.fold_batches(batches)
        yield from self._tables.take_rest()


class KeyFold(RowFold):
    """A fold that takes records key by key."""

    @abstractmethod
    def begin(self, key: str) -> None:
        """Prepare for the first row of a key."""

    @abstractmethod
    def take(self, row: InputRow) -> None:
        """Take a record of the key."""

    @abstractmethod
    def end(self) -> None:
        """Finish a key after its last row."""

    def fold_batches(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Take all rows, key by key; see RowFold."""
        key = None
        for batch in batches:
            for row in map(InputRow._make, rows_of(batch)):
                if row.kind < RowKind.BEFORE:
                    self.note(row)
                    continue
                self.count_records(row.kind == RowKind.RECORD)
                if row.peer != key:
                    if key is not None:
                        self.end()
                    key = row.peer
                    self.begin(key or "")
                self.take(row)
            yield from self._tables.take_full()
        if key is not None:
            self.end()


def count_name(counter: Counter[str], name: str) -> None:
    """Count a name; once there are too many names, count new ones together."""
    has_room = name in counter or len(counter) < _MOST_NAMES
    counter[name if has_room else _OTHERS] += 1


def every_refused(refused: Counter[str]) -> str:
    """Return a message that every record was refused, with the most frequent reasons."""
    return ": ".join(filter(None, ["every record was refused", refusal_summary(refused)]))


def refusal_summary(refused: Counter[str]) -> str:
    """Return the most frequent reasons for refusals, with counts, as text."""
    return "; ".join(f"{reason} ({n:,})" for reason, n in refused.most_common(_SHOWN))


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a batch, as tuples."""
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)
