"""Writes rows of a run again: where an append replaces others of their file, or to join parts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow.compute as pc
import pyarrow.parquet as pq

from vizpub.model.errors import FULL
from vizpub.runstore import durable
from vizpub.runstore.integrity import PARQUET, describe_file, files_of, stored_schema
from vizpub.runstore.manifest import Cut, Part, StoredFile
from vizpub.runstore.store import StoredTable, reading

Fresh = Callable[[str], Path]
"""Gives a new directory for a table, which is not there yet."""


def cut_part(run: Path, name: str, part: Part, cut: Cut, fresh: Fresh) -> Part:
    """The part of a table with the rows that the cut leaves. Files with only such rows stay as they
    are, in a new directory if there are others.

    Raises: StoreBroken, OSError.
    """
    files = part.files
    if files is None:
        files = tuple(map(describe_file, files_of(run, part, name)))
    unchanged = tuple(file for file in files if file.greatest(cut.column) < cut.below)
    if unchanged == files:
        return part
    directory = fresh(name)
    directory.mkdir(parents=True)
    for path in files_of(run, replace(part, files=unchanged), name):
        try:
            durable.link(path, directory / path.name)
        except OSError as error:  # of a file system without links
            if error.errno in FULL:
                raise
            shutil.copyfile(path, directory / path.name)
    others = replace(part, files=tuple(file for file in files if file not in unchanged))
    files_made = _write_rows(run, name, [others], directory, pc.field(cut.column) < cut.below)
    return _part(run, directory, (*unchanged, *files_made))


def join_parts(run: Path, name: str, parts: Sequence[Part], fresh: Fresh) -> Part:
    """Parts of a table as one. Raises: StoreBroken, OSError."""
    directory = fresh(name)
    directory.mkdir(parents=True)
    return _part(run, directory, _write_rows(run, name, parts, directory))


def _part(run: Path, directory: Path, files: tuple[StoredFile, ...]) -> Part:
    return Part(str(directory.relative_to(run)), sum(file.rows for file in files), files)


def _write_rows(
    run: Path,
    name: str,
    parts: Sequence[Part],
    directory: Path,
    where: pc.Expression | None = None,
) -> tuple[StoredFile, ...]:
    """Write the rows of parts, or such rows of them, into a file; there is none without rows."""
    first = next(path for part in parts for path in files_of(run, part, name))
    with reading(first):
        schema = stored_schema(pq.read_schema(first))
    path = directory / f"{uuid4().hex}.parquet"
    with pq.ParquetWriter(path, schema, **PARQUET) as file:
        for batch in StoredTable(run, name, tuple(parts), schema).scan(where=where):
            file.write_batch(batch)
    stored = describe_file(path)
    if not stored.rows:
        path.unlink()
    return (stored,) if stored.rows else ()
