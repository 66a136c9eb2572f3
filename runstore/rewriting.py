"""Writes files of tables: new ones, and rows of a run again, where an append replaces others of
their file, to join parts, or to change rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vizpub.model.errors import FULL
from vizpub.runstore import durable
from vizpub.runstore.integrity import PARQUET, describe_file, files_of, stored_schema
from vizpub.runstore.manifest import Cut, Manifest, Part, StoredFile, TableEntry
from vizpub.runstore.store import StoredTable, reading
from vizpub.runstore.stores.place import store_of_run

Fresh = Callable[[str], Path]
"""Gives a new directory for a table, which is not there yet."""
RowChange = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Returns the rows of a batch that stay, as they are from now on."""
_GROUP_ROWS = 1 << 17
_OF_A_SIZE = 4
"""So many parts of a size, within a factor of eight, become one."""
_LEAST_PART = 1 << 8
"""Parts of fewer rows count as of one size."""


class TableFile:
    """A new file of a table. Rows are held until they fill a row group, however few come at once:
    each group costs whoever reads the file, and takes some kilobytes.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        """Begin the file, with the columns of a schema as stored_schema gives it."""
        self._file = pq.ParquetWriter(path, schema, **PARQUET)
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        self._held.append(rows)
        self._rows += len(rows)
        if self._rows >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is held, and the end of the file."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._held:
            rows = pa.Table.from_batches(self._held).cast(self._file.schema)
            self._file.write_table(rows, row_group_size=_GROUP_ROWS)
            self._held.clear()
            self._rows = 0


def cut_part(run: Path, name: str, part: Part, cut: Cut, fresh: Fresh) -> tuple[Part, ...]:
    """The part of a table with the rows that the cut leaves. Files with only such rows stay as they
    are, in a new directory if there are others; in a store, where they are: it has no links.

    Raises: StoreBroken, OSError.
    """
    files = part.files
    if files is None:
        files = tuple(map(describe_file, files_of(run, part, name)))
    unchanged = tuple(file for file in files if file.greatest(cut.column) < cut.below)
    if unchanged == files:
        return (part,)
    directory = fresh(name)
    directory.mkdir(parents=True)
    others = replace(part, files=tuple(file for file in files if file not in unchanged))
    left = pc.field(cut.column) < cut.below
    if store_of_run(run):
        kept = Part(part.directory, sum(file.rows for file in unchanged), unchanged)
        return kept, _part(run, directory, _write_rows(run, name, [others], directory, left))
    for path in files_of(run, replace(part, files=unchanged), name):
        try:
            durable.link(path, directory / path.name)
        except OSError as error:  # of a file system without links
            if error.errno in FULL:
                raise
            shutil.copyfile(path, directory / path.name)
    made = _write_rows(run, name, [others], directory, left)
    return (_part(run, directory, (*unchanged, *made)),)


def join_parts(
    run: Path, name: str, parts: Sequence[Part], fresh: Fresh, change: RowChange | None = None
) -> Part:
    """Parts of a table as one; a `change` gets their rows, those of the newest first.

    Raises: StoreBroken, OSError.
    """
    directory = fresh(name)
    directory.mkdir(parents=True)
    files = (
        _write_rows(run, name, parts[::-1], directory, change=change)
        if change
        else _write_rows(run, name, parts, directory)
    )
    return _part(run, directory, files)


def change_rows(
    run: Path, name: str, entry: TableEntry, change: RowChange, fresh: Fresh
) -> TableEntry:
    """The entry of a table whose rows `change` has changed, all in one part.

    Raises: StoreBroken, OSError.
    """
    if not entry.rows:
        return entry
    directory = fresh(name)
    directory.mkdir(parents=True)
    files = _write_rows(run, name, entry.parts, directory, change=change)
    part = _part(run, directory, files)
    return replace(entry, directory=part.directory, rows=part.rows, older=(), files=files)


def moved_run(run: Manifest, folders: Mapping[str, str]) -> Manifest:
    """The manifest of a copy of the run with its files in other directories."""

    def moved(entry: TableEntry) -> TableEntry:
        older = tuple(replace(part, directory=folders[part.directory]) for part in entry.older)
        return replace(entry, directory=folders[entry.directory], older=older)

    tables, carry = ({n: moved(e) for n, e in of.items()} for of in (run.tables, run.carry))
    return replace(run, tables=tables, carry=carry, view="", let_go={}, boundaries=())


def first_to_merge(rows: Sequence[int]) -> int:
    """The place of the first of the parts, given by their rows, that belong into one with all that
    follow; behind the last, if none do. Tables of less than 2³⁸ rows never have more than 32 parts.
    """
    sizes = [max(count, _LEAST_PART).bit_length() // 3 for count in rows]
    for place, size in enumerate(sizes):
        if sizes[place:].count(size) >= _OF_A_SIZE:
            return place
    return len(rows)


def _part(run: Path, directory: Path, files: tuple[StoredFile, ...]) -> Part:
    return Part(str(directory.relative_to(run)), sum(file.rows for file in files), files)


def _write_rows(
    run: Path,
    name: str,
    parts: Sequence[Part],
    directory: Path,
    where: pc.Expression | None = None,
    change: RowChange = lambda rows: rows,
) -> tuple[StoredFile, ...]:
    """Write the rows of parts, or such rows of them, into a file; there is none without rows."""
    first = next(path for part in parts for path in files_of(run, part, name))
    with reading(first):
        schema = stored_schema(pq.read_schema(first))
    path = directory / f"{uuid4().hex}.parquet"
    with TableFile(path, schema) as file:
        for batch in StoredTable(run, name, tuple(parts), schema).scan(where=where):
            file.write(change(batch))
    stored = describe_file(path)
    if not stored.rows:
        path.unlink()
    return (stored,) if stored.rows else ()
