"""Writing of tables by tasks: one Parquet file per task and table.

Each attempt of a task writes files with names of their own, and only the files that a successful
task returns are listed in run.json. Files of failed or repeated attempts are ignored, so no
committer is needed, and nothing has to be read back after it is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import uuid4

import pyarrow as pa

from vizpub.analytics.step_profile import StepUses, at_work, count_rows, profile_task
from vizpub.runstore import durable
from vizpub.runstore.integrity import describe_file, stored_schema
from vizpub.runstore.manifest import StoredFile
from vizpub.runstore.rewriting import TableFile
from vizpub.runstore.stores.place import RunPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITTEN = "table string, file string, summary string"
_SINK = "ingest/tasks/sink.py"


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
    """The files that one attempt of a task writes: one per table, in the table's directory. In a
    store they are written on this machine first.
    """

    def __init__(self, place: RunPlace, directories: Mapping[str, str]) -> None:
        self._place, self._run, self._directories = place, place.here(), directories
        self._file = f"{uuid4().hex}.parquet"
        self._files: dict[str, TableFile] = {}

    def write(self, name: str, rows: pa.RecordBatch) -> None:
        """Add rows to a table."""
        if name not in self._files:
            self._path(name).parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = TableFile(self._path(name), stored_schema(rows.schema))
        self._files[name].write(rows)

    def close(self) -> Iterator[tuple[str, StoredFile]]:
        """Close and sync all files, which then survive a power cut, and let other machines have
        them. Yield (table, file) pairs.
        """
        for name, file in self._files.items():
            file.close()
            durable.sync_file(self._path(name))
            self._place.share(self._path(name))
            yield name, describe_file(self._path(name))

    def _path(self, name: str) -> Path:
        return self._run / self._directories[name] / self._file


def write_tables(
    rows: DataFrame,
    fold: Fold,
    place: RunPlace,
    tables: Mapping[str, OutputTable],
    report: Callable[[StepUses], None] | None = None,
) -> _WriteResult:
    """Fold the rows of each partition into files of the tables of a run, in one Spark job. Tasks
    `report` what their steps used; null = without a profile.
    """
    directories = _below(place, tables)
    into_files = partial(_fold_into_files, fold=fold, place=place, directories=directories)
    folded = rows.mapInArrow(partial(profile_task, work=into_files, report=report), _WRITTEN)
    files: dict[str, list[StoredFile]] = {name: [] for name in tables}
    summaries = []
    for row in folded.collect():
        if row.table is None:
            summaries.append(row.summary)
        else:
            files[row.table].append(StoredFile(**json.loads(row.file)))
    nothing = _store_empty(place, {name: of for name, of in tables.items() if not files[name]})
    return _WriteResult(
        {**{name: tuple(written_files) for name, written_files in files.items()}, **nothing},
        summaries,
    )


def _below(place: RunPlace, tables: Mapping[str, OutputTable]) -> dict[str, str]:
    """Return the directories of tables, relative to the run's."""
    paths = {name: of.directory.relative_to(place.directory) for name, of in tables.items()}
    return {name: str(path) for name, path in paths.items()}


def _store_empty(place: RunPlace, tables: Mapping[str, OutputTable]) -> dict[str, _Files]:
    """Write one file without rows for each table. Return the files by table."""
    sink = _Sink(place, _below(place, tables))
    for name, of in tables.items():
        sink.write(name, pa.RecordBatch.from_pylist([], of.schema))
    return {name: (file,) for name, file in sink.close()}


def _fold_into_files(
    batches: Iterable[pa.RecordBatch],
    fold: Fold,
    place: RunPlace,
    directories: Mapping[str, str],
) -> Iterator[pa.RecordBatch]:
    sink = _Sink(place, directories)
    for name, rows in fold(batches):
        with at_work(_SINK):
            sink.write(name, rows)
        count_rows(_SINK, len(rows), len(rows))
    with at_work(_SINK):
        results = [{"table": name, "file": json.dumps(asdict(file))} for name, file in sink.close()]
    if (summary := fold.summary()) is not None:
        results.append({"summary": summary})
    columns = [(name, pa.string()) for name in ("table", "file", "summary")]
    yield pa.RecordBatch.from_pylist(results, pa.schema(columns))
