"""Tables as the tasks that have their rows write them: Parquet, a file a task and table.

A file has a name of its own for each attempt, and only what a task returns is ever named: those
of attempts that failed or were repeated mean nothing. No committer is needed, and nobody has to
read what was written to know what it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from runstore import durable
from runstore.intact import described
from runstore.manifest import StoredFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITTEN = "table string, file string, told string"
_GROUP_ROWS = 1 << 17
_PARQUET = {
    "write_page_checksum": True,
    # Else statistics stand in the headers of pages, which no checksum covers.
    "write_page_index": True,
}


class Fold(Protocol):
    """What makes tables of rows that come in order."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of tables, each with its table's name."""

    def told(self) -> str | None:
        """What is said of all rows together, in the end."""


class AsTheyAre(NamedTuple):
    """The fold that leaves the rows of one table as they are."""

    table: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows."""
        return ((self.table, batch) for batch in batches if len(batch))

    def told(self) -> None:
        """Nothing."""


class Place(NamedTuple):
    """Where a table is to lie."""

    directory: Path
    schema: pa.Schema


class Written(NamedTuple):
    """What tasks wrote, and what they told."""

    files: Mapping[str, tuple[StoredFile, ...]]
    """By table; one without rows has an empty one."""
    told: Sequence[str]


class Sink:
    """The files that one attempt of a task writes, one a table, below the tables' directories."""

    def __init__(self, directories: Mapping[str, str]) -> None:
        self._directories = directories
        self._file = f"{uuid4().hex}.parquet"
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._held: dict[str, list[pa.RecordBatch]] = {}

    def write(self, name: str, rows: pa.RecordBatch) -> None:
        """Add rows to a table."""
        held = self._held.setdefault(name, [])
        held.append(rows)
        if sum(map(len, held)) >= _GROUP_ROWS:
            self._flush(name)

    def close(self) -> Iterator[tuple[str, StoredFile]]:
        """End all files, which outlast a power cut from here on. Tables, and what they got."""
        for name in self._held:
            self._flush(name)
            self._writers[name].close()
            durable.sync_file(self._path(name))
            yield name, described(self._path(name))

    def _path(self, name: str) -> Path:
        return Path(self._directories[name], self._file)

    def _flush(self, name: str) -> None:
        if not (held := self._held[name]):
            return
        rows = pa.Table.from_batches(held)
        held.clear()
        if name not in self._writers:
            self._path(name).parent.mkdir(parents=True, exist_ok=True)
            self._writers[name] = pq.ParquetWriter(self._path(name), rows.schema, **_PARQUET)
        self._writers[name].write_table(rows, row_group_size=_GROUP_ROWS)


def write(work: Sequence[tuple[DataFrame, Fold]], tables: Mapping[str, Place]) -> Written:
    """Fold rows, partition by partition, into files of the tables. One job."""
    from pyspark.sql import DataFrame

    places = {name: str(place.directory.absolute()) for name, place in tables.items()}
    parts = [
        rows.mapInArrow(partial(_fold, fold=fold, directories=places), _WRITTEN)
        for rows, fold in work
    ]
    files: dict[str, list[StoredFile]] = {name: [] for name in tables}
    told = []
    for row in reduce(DataFrame.unionAll, parts).collect():
        if row.table is None:
            told.append(row.told)
        else:
            files[row.table].append(StoredFile(**json.loads(row.file)))
    nothing = Sink(places)
    for name, place in tables.items():
        if not files[name]:
            nothing.write(name, pa.RecordBatch.from_pylist([], place.schema))
    for name, file in nothing.close():
        files[name].append(file)
    return Written({name: tuple(found) for name, found in files.items()}, told)


def _fold(
    batches: Iterable[pa.RecordBatch], fold: Fold, directories: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    sink = Sink(directories)
    for name, rows in fold(batches):
        sink.write(name, rows)
    found = [{"table": name, "file": json.dumps(asdict(file))} for name, file in sink.close()]
    if (told := fold.told()) is not None:
        found.append({"told": told})
    columns = [(name, pa.string()) for name in ("table", "file", "told")]
    yield pa.RecordBatch.from_pylist(found, pa.schema(columns))
