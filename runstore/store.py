"""The run store: one directory per run, Parquet inside, run.json on top.

    <workspace>/runs/<run>/run.json
    <workspace>/runs/<run>/data/links/<generation>/*.parquet

Reading needs pyarrow only, and checks every file against run.json (vizpub.runstore.integrity).
Writing is in vizpub.runstore.writer, and what other programs read in vizpub.runstore.views.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vizpub.model.columns import Table
from vizpub.model.errors import (
    NothingCollected,
    RunChanged,
    RunNotComplete,
    StoreBroken,
    UnknownName,
    UseError,
)
from vizpub.model.run import Boundary, RunFacts, check_run_name
from vizpub.model.tables import table
from vizpub.runstore.integrity import dataset, files_of, select_files
from vizpub.runstore.manifest import FILE, Manifest, Part, Since, manifest_in
from vizpub.runstore.stores.objects import AT_ONCE
from vizpub.runstore.stores.place import folder_of, name_of, store_of, store_of_run

if TYPE_CHECKING:
    import pyarrow.dataset as ds


@dataclass(frozen=True)
class StoredTable:
    """Parts of a table in a run's directory, to read from."""

    directory: Path
    name: str
    parts: tuple[Part, ...]
    schema: pa.Schema

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: pc.Expression | None = None,
        since: Since | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in batches. Raises: as StoredRun.scan."""
        if since:
            recent = pc.field(since.column) >= since.least
            where = recent if where is None else where & recent
        for part in self.parts:
            selected = select_files(part, self.schema, where)
            if files := files_of(self.directory, selected, self.name):
                stored, rows = dataset(files, self.schema), 0
                with reading(*files):
                    for batch in stored.to_batches(columns=columns, filter=where):
                        rows += len(batch)
                        yield batch
                if where is None:
                    _check_rows(self.directory, part, rows)

    def datasets(self, since: Since | None) -> list[tuple[ds.Dataset, pc.Expression | None]]:
        """The table, or such rows of it, as datasets with what holds for the rows to take of each
        (null = all). Both can be sent to other processes.
        """
        return [
            (dataset(files, self.schema), recent)
            for part, recent in self.reaching(since)
            if (files := files_of(self.directory, part, self.name))
        ]

    def reaching(self, since: Since | None) -> list[tuple[Part, pc.Expression | None]]:
        """The parts with those of their files that may have such rows, and what holds for the rows
        to take (null = all).
        """
        recent = pc.field(since.column) >= since.least if since else None
        parts = (part.reaching(since) if since else part for part in self.parts)
        return [(part, recent) for part in parts if part.files is None or part.files]


@dataclass(frozen=True)
class StoredRun:
    """A run on disk, to read from."""

    directory: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        """The run's name."""
        return self.manifest.name

    @property
    def facts(self) -> RunFacts:
        """The facts of the run. Raises: StoreBroken before they are known."""
        return self.manifest.facts

    def definition(self, name: str) -> Table:
        """A table with the columns that it has in this run. Raises: UnknownName."""
        return self.manifest.definition(name)

    def has(self, name: str) -> bool:
        """Return True if the table was written (it may be empty)."""
        return name in self.manifest.tables

    def rows_from(self, name: str, column: str, least: int) -> Iterator[pa.RecordBatch]:
        """The rows of a table whose `column` is `least` or more, as `scan` with `since`."""
        batches = self.scan(name, self.definition(name).names, since=Since(column, least))
        return (rows for rows in batches if len(rows))

    def rows(self, name: str) -> int:
        """The number of rows of a table; 0 if it was not written."""
        return self.manifest.tables[name].rows if self.has(name) else 0

    def is_current(self) -> bool:
        """Return True if run.json still has these tables: nothing was appended, and the run was
        neither replaced nor removed. Raises: StoreBroken where run.json cannot be read.
        """
        try:
            return current_manifest(self.directory).identity == self.manifest.identity
        except FileNotFoundError:
            return False

    def boundary_since(self, tables: str) -> Boundary | None:
        """Before it, nothing changed since the run had tables of this identity; null = unknown."""
        identities = [change.of for change in self.manifest.boundaries]
        if tables not in identities:
            return None
        changes = self.manifest.boundaries[identities.index(tables) :]
        return reduce(Boundary.least, (change.boundary for change in changes))

    def parts(self, name: str) -> list[str]:
        """The names of the files of a table, oldest part first; a name never stands for other
        rows.
        """
        return [Path(file.name).stem for part in self._parts(name) for file in part.files or ()]

    def part_rows(self, name: str, part: str) -> Iterator[pa.RecordBatch]:
        """The rows of one of `parts`. Raises: as `scan`."""
        (part_of_file,) = (
            Part(of.directory, file.rows, (file,))
            for of in self._parts(name)
            for file in of.files or ()
            if Path(file.name).stem == part
        )
        return self._stream(replace(self._stored_table(name), parts=(part_of_file,)).scan())

    def files(self, name: str) -> list[Path]:
        """The Parquet files of a table, in a stable order. Raises: as `scan`."""
        with self._unless_changed():
            parts = self._parts(name)
            return [path for part in parts for path in files_of(self.directory, part, name)]

    def _parts(self, name: str) -> tuple[Part, ...]:
        return self.manifest.tables[name].parts if self.has(name) else ()

    def scan(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        where: pc.Expression | None = None,
        since: Since | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """A table in batches, in memory bounded by a batch. No rows if it was not written. With
        `since`, only files that may have such rows are opened.

        Raises: UnknownName, StoreBroken, and RunChanged where the files are gone because another
        command has appended to the run, replaced or removed it; `read` and `row_groups` too.
        """
        return self._stream(self._stored_table(name).scan(columns, where, since))

    def _stored_table(self, name: str) -> StoredTable:
        schema = self.definition(name).arrow
        return StoredTable(self.directory, name, self._parts(name), schema)

    def _stream(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self._unless_changed():
            yield from batches

    @contextmanager
    def _unless_changed(self) -> Iterator[None]:
        """Raise RunChanged for files that another command let go: they stay for a while only, and
        that they are gone is no damage.
        """
        try:
            yield
        except StoreBroken as error:
            if self.is_current():
                raise
            raise RunChanged(self.name) from error

    def dataset(self, name: str) -> ds.Dataset:
        """A table as a dataset of Arrow, to be read by others. Raises: as `scan`."""
        return dataset(self.files(name), self.definition(name).arrow)

    def read(
        self, name: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """A table, or some columns and rows of it, sorted by its key."""
        rows = self.read_unordered(name, columns, where)
        keys = [(k, "ascending") for k in self.definition(name).key if k in rows.column_names]
        return rows.sort_by(keys) if keys else rows

    def read_unordered(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        where: pc.Expression | None = None,
        since: Since | None = None,
    ) -> pa.Table:
        """The same rows as `read`, in any order: sorting many takes longer than reading them."""
        definition = self.definition(name)
        selected = list(columns or definition.names)
        schema = pa.schema([definition.arrow.field(column) for column in selected])
        return pa.Table.from_batches(self.scan(name, selected, where, since), schema)

    def row_groups(self, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        """A table by Parquet row group: (label, rows). The label is the same at every reading."""
        schema = self.definition(name).arrow
        with self._unless_changed():
            for part in self._parts(name):
                yield from self._row_groups(name, part, schema)

    def _row_groups(
        self, name: str, part: Part, schema: pa.Schema
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        count = 0
        for path in files_of(self.directory, part, name):
            with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as parquet:
                for group in range(parquet.num_row_groups):
                    rows = _fit_schema(parquet.read_row_group(group), schema)
                    count += len(rows)
                    for batch in rows.combine_chunks().to_batches():
                        yield f"{path.stem}/{group}", batch
        _check_rows(self.directory, part, count)


def _fit_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the schema; null, where the file is older than a column."""
    columns = [
        rows[f.name].cast(f.type) if f.name in rows.column_names else pa.nulls(len(rows), f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _check_rows(run: Path, part: Part, count: int) -> None:
    """Raises: StoreBroken where a part has other rows than run.json says."""
    if count != part.rows:
        why = f"{count:,} rows were read, and run.json says {part.rows:,}"
        raise StoreBroken(str(run / part.directory), why)


@contextmanager
def reading(*files: Path) -> Iterator[None]:
    """Errors of Arrow on broken files as StoreBroken, which names the first of them."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        path = next(filter(is_broken, files), files[0].parent)
        raise StoreBroken(str(path), f"not readable as Parquet ({error})") from error


def is_broken(path: Path) -> bool:
    """Return True if a stored file cannot be read, or has a page of another checksum."""
    try:
        for _ in dataset([path]).to_batches():
            pass
    except (pa.ArrowException, OSError):
        return True
    return False


@dataclass(frozen=True)
class BrokenRun:
    """A run whose run.json cannot be read."""

    name: str
    error: StoreBroken


def runs(workspace: Path) -> list[StoredRun | BrokenRun]:
    """All runs of a workspace by name: complete, incomplete and broken ones."""
    folder = folder_of(workspace)
    store = store_of(folder)
    names = sorted(store.folders("runs")) if store else run_names(folder)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        stored = pool.map(partial(_run_or_error, folder), names)
        return [run for run in stored if run is not None]


def _run_or_error(workspace: Path, name: str) -> StoredRun | BrokenRun | None:
    directory = (workspace / "runs" / name).absolute()
    try:
        return StoredRun(directory, current_manifest(directory))
    except StoreBroken as error:
        return BrokenRun(name, error)
    except FileNotFoundError:  # removed meanwhile, or never there
        return None


def run_names(workspace: Path) -> list[str]:
    """The names of the runs of a workspace that this user may see; reads no run.json in a folder.

    Raises: UseError where the workspace may not be read, or is a URI that is not served;
    ServiceError.
    """
    folder = folder_of(workspace) / "runs"
    if store := store_of(folder.parent):
        names = store.folders("runs")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(store.find, [f"runs/{name}/{FILE}" for name in names])
            return sorted(name for name, there in zip(names, found, strict=True) if there)
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise UseError(f"{error.filename} cannot be read: {error.strerror}") from error
    return sorted(name for name in names if os.path.exists(folder / name / FILE))


def directory_of(workspace: Path, name: str) -> Path:
    """The directory of a run that is or would be; for one in a store, that of its copies here.
    Absolute: Arrow takes `day:1/runs` for a URI.

    Raises: UseError for an invalid name, and for a workspace that is a URI that is not served.
    """
    return (folder_of(workspace) / "runs" / check_run_name(name)).absolute()


def current_manifest(directory: Path) -> Manifest:
    """The manifest of a run as readers see it. Raises: as manifest_in; ServiceError."""
    store = store_of_run(directory)
    if store is None:
        return manifest_in(directory)
    found = store.find(f"runs/{directory.name}/{FILE}")
    if found is None:
        raise FileNotFoundError(f"{store.url}/runs/{directory.name}/{FILE}")
    return manifest_in(directory, found.content)


def open_run(workspace: Path, name: str, *, complete: bool = True) -> StoredRun:
    """A run to read. Raises: UnknownName, StoreBroken, RunNotComplete (if `complete`)."""
    directory = directory_of(workspace, name)
    try:
        _check_there(directory)
        run = StoredRun(directory, current_manifest(directory))
    except FileNotFoundError:
        see = f"vizpub --workspace {name_of(folder_of(workspace))} runs list"
        raise UnknownName("run", name, run_names(workspace), see) from None
    if complete and not run.manifest.complete:
        if run.manifest.collection:
            raise NothingCollected(name, run.manifest.state, f"vizpub live collect {name}")
        raise RunNotComplete(name, run.manifest.state, "the same vizpub ingest command again")
    return run


def _check_there(directory: Path) -> None:
    """Raises: FileNotFoundError where a folder has no run."""
    if store_of_run(directory):
        return
    try:
        # Path.is_file is False in Python 3.14 where this user may not look.
        is_there = S_ISREG(os.stat(directory / FILE).st_mode)
    except PermissionError:  # there may be one that this user may not see
        is_there = True
    except OSError:
        is_there = False
    if not is_there:
        raise FileNotFoundError(directory)


def metric_table(name: str) -> Table:
    """'overlay' or 'metrics/overlay' → its table. Raises: UnknownName."""
    return table(name if name.startswith("metrics/") else f"metrics/{name}")
