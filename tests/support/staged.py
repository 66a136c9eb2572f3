"""Files read by a folded source in this process, without Spark up to the observed tables."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.texts import given, made, observed_by
from vizpub.ingest.inputs.files import InputFile, find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.inputs.reader import InputRow, InputSplit, RowKind, SplitReader, as_batches
from vizpub.ingest.sources import sources_for
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    Source,
    SourceInput,
    SourceOptions,
    Tallies,
)
from vizpub.ingest.tasks.fold import RunCounts, rows_of
from vizpub.ingest.tasks.sink import Fold
from vizpub.model.tables import TRAFFIC


@dataclass(frozen=True)
class Staged:
    """What was folded from some files."""

    rows: list[InputRow]
    """The records that the reader accepted, as they went to the fold."""
    tables: dict[str, pa.Table]
    counted: RunCounts
    damaged: dict[str, str]
    """Why a file could be read only in part, by path."""

    @property
    def records(self) -> list[Any]:
        """The accepted records."""
        return [json.loads(row.record) for row in self.rows]

    @property
    def quarantine(self) -> list[tuple[str, int, str, str]]:
        """File, line, reason and text."""
        rows = self.tables["quarantine"].to_pylist()
        return sorted((Path(r["file"]).name, r["line"], r["reason"], r["text"]) for r in rows)


def staged(source: Source, files: Sequence[InputFile], options: SourceOptions) -> Staged:
    """Read and fold the files as Spark's tasks would, one after another."""
    splits = [_numbered(split) for split in source.splits(files)]

    def tallies(read: SplitReader) -> Tallies:
        each = (row for row in _rows(splits, read) if row.kind == RowKind.TALLY)
        return [json.loads(row.record) for row in each]

    def made(
        before: RunCounts | None,
    ) -> tuple[list[InputRow], Fold, dict[str, pa.Table], RunCounts]:
        source_input = SourceInput(files, options, tallies, before)
        read = source.reader(source_input)
        rows = sorted(_rows(splits, read), key=_order)
        fold = source.make_fold(source_input)
        tables = _folded(source, fold, rows)
        return rows, fold, tables, source.combine_tallies([fold.total_counts()])

    rows, fold, tables, counted = made(None)
    if source.is_refuted(fold, counted, options):
        rows, fold, tables, counted = made(counted)
    taken, damaged = [row for row in rows if row.kind >= RowKind.RECORD], fold.summary()
    return Staged(taken, tables, counted, json.loads(damaged)["damaged"])


def _numbered(split: InputSplit) -> InputSplit:
    """With the number of its first line, which Spark would have counted."""
    if split.line:
        return split
    before = Path(split.path).read_bytes()[: split.start]
    return split._replace(line=before.count(b"\n") + 1)


def _rows(splits: Sequence[InputSplit], read: SplitReader) -> Iterator[InputRow]:
    for split in splits:
        for batch in as_batches(read(split)):
            yield from map(InputRow._make, rows_of(batch))


def _order(row: InputRow) -> tuple[Any, ...]:
    return row.peer or "", row.time, row.rank, row.file, row.line


def _folded(source: Source, fold: Fold, rows: Sequence[InputRow]) -> dict[str, pa.Table]:
    made = defaultdict(list)
    for name, batch in fold(as_batches(rows)):
        made[name].append(batch)
    return {name: pa.Table.from_batches(made[name], s) for name, s in source.tables.items()}


_TIMED = ("time_us", "interval", "tick")
OF_TRACES = {
    "links": ("src", "dst", "layer", "topic", "valid_from", "valid_to"),
    "subscriptions": ("peer", "topic", "valid_from", "valid_to"),
    "publications": ("message", "topic", "publisher", *_TIMED),
    "receptions": ("message", "topic", "peer", "previous_hop", *_TIMED, "arrival", "first"),
    "rejections": ("message", "topic", "peer", "previous_hop", *_TIMED, "reason"),
}
"""What a trace says, however it is written: columns by observed table."""


class Taken:
    """What a source observed in some files."""

    def __init__(self, source: Source, found: Staged, options: SourceOptions) -> None:
        self.staged = found
        self.told: RunDescription = source.describe(found.counted, options)
        self.seen: ObservedTables = source.observe(self.told, options)

    def table(self, name: str) -> pa.Table:
        """An observed table; a column of traffic that a text leaves out is null."""
        folded = {
            f"{of}/{table}": rows
            for of in ("folded", "whole")
            for table, rows in self.staged.tables.items()
        }
        asked = given(self.told.clock, self.seen.known_tables)
        rows = made(f"observed/{name}", observed_by(self.seen), folded, asked)
        for column in TRAFFIC.names if name == "traffic" else ():
            if column not in rows.column_names:
                rows = rows.append_column(column, pa.nulls(len(rows), pa.int64()))
        return rows

    def records(self, table: str, *order: str) -> list[dict[str, Any]]:
        """The rows of an observed table, in an order."""
        rows: list[dict[str, Any]] = self.table(table).to_pylist()
        return sorted(rows, key=lambda row: [row[name] for name in order])

    def rows(self, table: str, *columns: str) -> set[tuple[Any, ...]]:
        """The rows of an observed table."""
        rows = self.table(table)
        kept = rows.select(columns or rows.column_names)
        return {tuple(row.values()) for row in kept.to_pylist()}


def take(*paths: Path, options: SourceOptions | None = None) -> Taken:
    """What the source that recognises some files observes in them."""
    options = options or SourceOptions()
    sources = sources_for(options)
    found = take_inventory(None, find_files(map(str, paths)), sources)
    source = next(source for source in sources if source.name == found.source)
    return Taken(source, staged(source, found.files, options), options)
