"""The base classes of folds, which take rows and build tables: of all, and of those by key."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from vizpub.ingest.inputs.reader import TEXT_LIMIT, Kind, Row

Counted = Mapping[str, Any]
"""Counts over a run or a part of it, as JSON values."""

_FULL = 1 << 16
_MOST_NAMES = 1000
"""Names of unknown fields, and reasons, that are counted separately."""
_OTHERS = "(others)"
_SHOWN = 3

Rows = dict[str, list[tuple[Any, ...]]]
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
    *("peers", "presence", "links", "subscriptions", "roles"),
    *("publications", "receptions", "rejections"),
)
"""Tables whose names are collected; the names in other tables are also in `peers`."""


class Tables:
    """Buffers rows of several tables, as tuples."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._schemas = schemas
        self.rows: Rows = {name: [] for name in schemas}
        """Add to them."""

    def full(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Take the rows of tables with full buffers."""
        return with_names(self._taken(_FULL))

    def rest(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Take all rows."""
        return with_names(self._taken(1))

    def _taken(self, least: int) -> Iterator[tuple[str, pa.RecordBatch]]:
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
    """The same rows of tables, with those of NAMES."""
    for name, rows in tables:
        yield name, rows
        if name in _NAMING:
            yield from (("names", names) for names in names_in(name, rows))


def names_in(table: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of NAMES for rows of a table."""
    when = {name: rows[name] for name in _WHEN if name in rows.schema.names}
    for kind, columns in NAME_COLUMNS.items():
        for column in (name for name in columns if name in rows.schema.names):
            named = pa.table({"name": rows[column], **when}).filter(rows[column].is_valid())
            found = named.group_by("name").aggregate([(name, _WHEN[name]) for name in when])
            stands = {"table": table, "kind": kind, "column": column}
            values = {
                **{name: pa.repeat(value, found.num_rows) for name, value in stands.items()},
                "name": found["name"],
                **{name: found[f"{name}_{_WHEN[name]}"] for name in when},
            }
            nothing = pa.nulls(found.num_rows)
            arrays = [values.get(field.name, nothing) for field in NAMES]
            yield from pa.table(arrays, NAMES.names).cast(NAMES).to_batches()


class RowFold(ABC):
    """A fold (vizpub.ingest.tasks.sink.Fold) of rows (vizpub.ingest.inputs.reader) that arrive by
    key, usually the peer, and in order of time.
    """

    rows: Rows
    """Rows by table, to append to."""
    final: int | None = None
    """The last interval of the run that is appended to; what is reported of it or an earlier one
    comes late. Null where a run is made from all of its input."""

    def __init__(self, tables: Mapping[str, pa.Schema], files: Sequence[str]) -> None:
        """Takes the schemas of its tables, including `quarantine`, and the names of the files."""
        self._schemas, self._files = tables, files

    @abstractmethod
    def start(self) -> None:
        """Called before the first row."""

    @abstractmethod
    def fold(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Take all rows. Yields rows of tables, beside those that are added to `rows`."""

    @abstractmethod
    def counted(self) -> Counted:
        """The counts over all rows."""

    def add(self, tally: bytes) -> None:
        """Called with the counts of a reader, as JSON; readers of some sources count nothing."""
        del tally

    def note(self, row: Row) -> None:
        """Take a row that is no record: a refusal, a damage, or counts."""
        if row.kind == Kind.REFUSED:
            self.seen(1)
            self.refuse(row, row.reason or "", row.record)
        elif row.kind == Kind.DAMAGED:
            self._damaged[self._files[row.file]] = row.reason
        else:
            self.add(row.record)

    def seen(self, records: int) -> None:
        """Count records."""
        self._seen += records

    def refuse(self, row: Row, reason: str, text: bytes) -> None:
        """Put a record, which need not be UTF-8, into the quarantine."""
        count(self._refused, reason)
        kept = text.decode("utf-8", "replace")[:TEXT_LIMIT]
        self.rows["quarantine"].append((self._files[row.file], row.line, reason, kept))

    def summary(self) -> str:
        """JSON with `counted`, `damaged` (reason by file), `seen` (number of records) and `refused`
        (number by reason).
        """
        judged = {"seen": self._seen, "refused": self._refused}
        return json.dumps({"counted": self.counted(), "damaged": self._damaged, **judged})

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (table name, rows) pairs."""
        self._tables = Tables(self._schemas)
        self.rows, self._damaged = self._tables.rows, dict[str, str | None]()
        self._seen, self._refused = 0, Counter[str]()
        self.start()
        yield from self.fold(batches)
        yield from self._tables.rest()


class KeyFold(RowFold):
    """A fold that takes records key by key."""

    @abstractmethod
    def begin(self, key: str) -> None:
        """Called before the first row of a key."""

    @abstractmethod
    def take(self, row: Row) -> None:
        """Called for each record of the key."""

    @abstractmethod
    def end(self) -> None:
        """Called after the last row of a key."""

    def fold(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """See RowFold."""
        key = None
        for batch in batches:
            for row in map(Row._make, rows_of(batch)):
                if row.kind < Kind.BEFORE:
                    self.note(row)
                    continue
                self.seen(row.kind == Kind.RECORD)
                if row.peer != key:
                    if key is not None:
                        self.end()
                    key = row.peer
                    self.begin(key or "")
                self.take(row)
            yield from self._tables.full()
        if key is not None:
            self.end()


def count(counter: Counter[str], name: str) -> None:
    """Count a name; once there are too many names, count new ones together."""
    has_room = name in counter or len(counter) < _MOST_NAMES
    counter[name if has_room else _OTHERS] += 1


def every_refused(refused: Counter[str]) -> str:
    """A message that every record was refused, with the most frequent reasons."""
    return ": ".join(filter(None, ["every record was refused", reasons(refused)]))


def reasons(refused: Counter[str]) -> str:
    """The most frequent reasons for refusals, with counts, as text."""
    return "; ".join(f"{reason} ({n:,})" for reason, n in refused.most_common(_SHOWN))


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch, as tuples."""
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)
