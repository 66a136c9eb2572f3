"""Writing of tables by tasks: one Parquet file per task and table.

Each attempt of a task writes files with names of their own, and only the files that a successful
task returns are listed in run.json. Files of failed or repeated attempts are ignored, so no
committer is needed, and nothing has to be read back after it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import uuid4

import pyarrow as pa

from vizpub.runstore import durable
from vizpub.runstore.integrity import describe_file, stored_schema
from vizpub.runstore.manifest import StoredFile
from vizpub.runstore.rewriting import TableFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITTEN = "table string, file string, summary string"


_Files = tuple[StoredFile, ...]


class Fold(Protocol):
    """A function of a task from rows in order to rows of tables."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (table name, rows) pairs."""

    def summary(self) -> str | None:
        """Return the summary over all rows, after the last one; null = none."""


class PassThrough(NamedTuple):
    """The fold that passes the rows of one table through."""

    table: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows that are not empty, with the name of the table."""
        return ((self.table, batch) for batch in batches if len(batch))

    def summary(self) -> None:
        """Return null: there is no summary."""


class OutputTable(NamedTuple):
    """Directory and schema of a table to write."""

    directory: Path
    schema: pa.Schema


class _WriteResult(NamedTuple):
    """The files that tasks wrote, and the summaries of their folds."""

    files: Mapping[str, _Files]
    """By table; a table without rows has one empty file."""
    summaries: Sequence[str]


class _Sink:
    """The files that one attempt of a task writes: one per table, in the table's directory."""

    def __init__(self, directories: Mapping[str, str]) -> None:
        self._directories = directories
        self._file = f"{uuid4().hex}.parquet"
        self._files: dict[str, TableFile] = {}

    def write(self, name: str, rows: pa.RecordBatch) -> None:
        """Add rows to a table."""
        if name not in self._files:
            self._path(name).parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = TableFile(self._path(name), stored_schema(rows.schema))
        self._files[name].write(rows)

    def close(self) -> Iterator[tuple[str, StoredFile]]:
        """Close and sync all files, which then survive a power cut. Yield (table, file) pairs."""
        for name, file in self._files.items():
            file.close()
            durable.sync_file(self._path(name))
            yield name, describe_file(self._path(name))

    def _path(self, name: str) -> Path:
        return Path(self._directories[name], self._file)


def write_tables(rows: DataFrame, fold: Fold, tables: Mapping[str, OutputTable]) -> _WriteResult:
    """Fold the rows of each partition into files of the tables, in one Spark job."""
    places = {name: str(place.directory.absolute()) for name, place in tables.items()}
    folded = rows.mapInArrow(partial(_fold_into_files, fold=fold, directories=places), _WRITTEN)
    files: dict[str, list[StoredFile]] = {name: [] for name in tables}
    summaries = []
    for row in folded.collect():
        if row.table is None:
            summaries.append(row.summary)
        else:
            files[row.table].append(StoredFile(**json.loads(row.file)))
    without = {name: place for name, place in tables.items() if not files[name]}
    nothing = store_tables({name: of.schema.empty_table() for name, of in without.items()}, without)
    return _WriteResult(
        {**{name: tuple(written_files) for name, written_files in files.items()}, **nothing},
        summaries,
    )


def store_tables(
    rows: Mapping[str, pa.Table], tables: Mapping[str, OutputTable]
) -> dict[str, _Files]:
    """Write each table in memory to one file. Return the files by table."""
    sink = _Sink({name: str(place.directory.absolute()) for name, place in tables.items()})
    for name, table in rows.items():
        shaped = table.cast(tables[name].schema)
        for batch in shaped.to_batches() or [pa.RecordBatch.from_pylist([], shaped.schema)]:
            sink.write(name, batch)
    return {name: (file,) for name, file in sink.close()}


def _fold_into_files(
    batches: Iterable[pa.RecordBatch], fold: Fold, directories: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    sink = _Sink(directories)
    for name, rows in fold(batches):
        sink.write(name, rows)
    results = [{"table": name, "file": json.dumps(asdict(file))} for name, file in sink.close()]
    if (summary := fold.summary()) is not None:
        results.append({"summary": summary})
    columns = [(name, pa.string()) for name in ("table", "file", "summary")]
    yield pa.RecordBatch.from_pylist(results, pa.schema(columns))
