"""Tables as the tasks that have their rows write them: Parquet, a file a task and table.

A file has a name of its own for each attempt, and only what a task returns is ever named: those
of attempts that failed or were repeated mean nothing. Neither a committer nor a reader of footers
is needed: a task knows how many rows it wrote.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITTEN = "name string, file string, rows bigint, size bigint, told string"
_GROUP_ROWS = 1 << 17


class Written(NamedTuple):
    """A file of a table."""

    name: str
    """Of the table."""
    file: str
    rows: int
    size: int
    """Bytes."""


class Fold(Protocol):
    """What makes tables of rows that come in order."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of tables, each with its table's name."""

    def told(self) -> str:
        """What is said of all rows together, in the end."""


class Sink:
    """The files that one attempt of a task writes, one a table, below the tables' directories."""

    def __init__(self, directories: Mapping[str, str]) -> None:
        self._directories = directories
        self._file = f"{uuid4().hex}.parquet"
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._rows: dict[str, int] = {}

    def write(self, name: str, rows: pa.RecordBatch) -> None:
        """Add rows to a table."""
        held = self._held.setdefault(name, [])
        held.append(rows)
        self._rows[name] = self._rows.get(name, 0) + len(rows)
        if sum(map(len, held)) >= _GROUP_ROWS:
            self._flush(name)

    def close(self) -> Iterator[Written]:
        """End all files. What they are."""
        for name in self._held:
            self._flush(name)
            self._writers[name].close()
            size = os.path.getsize(self._path(name))
            yield Written(name, self._file, self._rows[name], size)

    def _path(self, name: str) -> Path:
        return Path(self._directories[name], self._file)

    def _flush(self, name: str) -> None:
        if not (held := self._held[name]):
            return
        rows = pa.Table.from_batches(held)
        held.clear()
        if name not in self._writers:
            self._path(name).parent.mkdir(parents=True, exist_ok=True)
            self._writers[name] = pq.ParquetWriter(
                self._path(name), rows.schema, write_page_checksum=True
            )
        self._writers[name].write_table(rows, row_group_size=_GROUP_ROWS)


def write(
    rows: DataFrame, fold: Fold, directories: Mapping[str, str]
) -> tuple[list[Written], list[str]]:
    """Fold the rows, partition by partition, into files below the directories. One job.

    What was written, and what each task told.
    """
    work = partial(_fold, fold=fold, directories=dict(directories))
    found = rows.mapInArrow(work, _WRITTEN).collect()
    written = [Written(*row[:4]) for row in found if row.told is None]
    return written, [row.told for row in found if row.told is not None]


def _fold(
    batches: Iterable[pa.RecordBatch], fold: Fold, directories: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    sink = Sink(directories)
    for name, rows in fold(batches):
        sink.write(name, rows)
    files = [(*written, None) for written in sink.close()]
    columns = zip(*files, (None, None, None, None, fold.told()), strict=True)
    types = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    yield pa.record_batch(arrays, names=["name", "file", "rows", "size", "told"])
