"""The run store: one directory per run, Parquet inside, run.json on top.

    <workspace>/runs/<run>/run.json
    <workspace>/runs/<run>/links/<generation>/*.parquet

Reading needs pyarrow only. Writing goes through `RunWriter`, which hands out directories
that nobody sees until a stage commits them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from errno import ENOSPC
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from filelock import SoftFileLock, Timeout

from ingest.manifest import (
    FILE,
    Cut,
    Manifest,
    Part,
    StoredFile,
    TableEntry,
    read_manifest,
    write_manifest,
)
from model.columns import Table
from model.errors import (
    DiskFull,
    RunLocked,
    RunNotComplete,
    StoreBroken,
    UnknownName,
    UseError,
)
from model.run import RunFacts, check_run_name
from model.tables import TABLES, table

_LOCK = ".lock"
_REPLACED = "replaced.json"
"""The manifest of a complete run whose successor is not yet complete."""
_APPENDED = "appended.json"
"""The manifest of what is to take the place of a complete run once it is complete itself."""


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

    def has(self, name: str) -> bool:
        """Whether the table was written (it may be empty)."""
        return name in self.manifest.tables

    def rows(self, name: str) -> int:
        """How many rows a table has; 0 if it was not written."""
        return self.manifest.tables[name].rows if self.has(name) else 0

    def files(self, name: str) -> list[Path]:
        """The Parquet files of a table, in a stable order; an older one may have rows that no
        longer count. Raises: StoreBroken.
        """
        return [path for part in self._parts(name) for path in self._files_of(part, name)]

    def _parts(self, name: str) -> tuple[Part, ...]:
        return self.manifest.tables[name].parts if self.has(name) else ()

    def _files_of(self, part: Part, name: str) -> list[Path]:
        return files_of(self.directory, part, name)

    def scan(
        self, name: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """A table in batches, in memory bounded by a batch. No rows if it was not written.

        Raises: UnknownName, StoreBroken; `read` and `row_groups` too.
        """
        schema = table(name).arrow
        for part in self._parts(name):
            if files := [str(path) for path in self._files_of(part, name)]:
                dataset = ds.dataset(files, schema=schema)
                with _reading(Path(files[0]).parent):
                    yield from dataset.to_batches(columns=columns, filter=_both(where, part.cut))

    def read(
        self, name: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """A table, or some columns and rows of it, sorted by its key."""
        meant = table(name)
        chosen = list(columns or meant.names)
        schema = pa.schema([meant.arrow.field(column) for column in chosen])
        found = pa.Table.from_batches(self.scan(name, chosen, where), schema)
        keys = [(key, "ascending") for key in meant.key if key in chosen]
        return found.sort_by(keys) if keys else found

    def row_groups(self, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        """A table by Parquet row group: (label, rows). The label is the same at every reading."""
        schema = table(name).arrow
        for part in self._parts(name):
            for path in self._files_of(part, name):
                with _reading(path), pq.ParquetFile(path) as parquet:
                    for group in range(parquet.num_row_groups):
                        rows = _shaped(parquet.read_row_group(group), schema)
                        if part.cut:
                            rows = rows.filter(_below(part.cut))
                        for batch in rows.combine_chunks().to_batches():
                            yield f"{path.parent.name}/{path.name}#{group}", batch


def files_of(run: Path, part: Part, name: str) -> list[Path]:
    """The files of a part of table `name`, in a stable order, as run.json lists them.

    Raises: StoreBroken where one is gone or has another size.
    """
    directory = run / part.directory
    if part.files is None:
        if not directory.is_dir():
            raise StoreBroken(str(directory), f"the files of table {name} are gone")
        return sorted(directory.glob("*.parquet"))
    paths = []
    for file in part.files:
        path = directory / file.name
        try:
            size = path.stat().st_size
        except OSError as error:
            raise StoreBroken(str(path), f"a file of table {name} is gone") from error
        if size != file.size:
            raise StoreBroken(str(path), f"it has {size:,} bytes, and run.json says {file.size:,}")
        paths.append(path)
    return paths


def _shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the schema; null, where the file is older than a column."""
    there = set(rows.column_names)
    columns = [
        rows[f.name].cast(f.type) if f.name in there else pa.nulls(len(rows), f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _stored(path: Path) -> StoredFile:
    return StoredFile(path.name, pq.read_metadata(path).num_rows, path.stat().st_size)


def _below(cut: Cut) -> pc.Expression:
    return pc.field(cut.column) < cut.below


def _both(where: pc.Expression | None, cut: Cut | None) -> pc.Expression | None:
    if cut is None or where is None:
        return where if cut is None else _below(cut)
    return where & _below(cut)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What Arrow says of a broken file, in our words. Raises: StoreBroken."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise StoreBroken(str(path), f"not readable as Parquet ({error})") from error


def runs(workspace: Path) -> list[StoredRun]:
    """Every run of a workspace, complete or not, by name. Raises: StoreBroken."""
    directories = sorted(path.parent for path in (workspace / "runs").glob(f"*/{FILE}"))
    return [StoredRun(directory, read_manifest(directory)) for directory in directories]


def run_names(workspace: Path) -> list[str]:
    """The names of the runs of a workspace; reads no run.json."""
    return sorted(path.parent.name for path in (workspace / "runs").glob(f"*/{FILE}"))


def open_run(workspace: Path, name: str, *, complete: bool = True) -> StoredRun:
    """A run to read. Raises: UnknownName, StoreBroken, RunNotComplete (if `complete`)."""
    directory = workspace / "runs" / check_run_name(name)
    if not (directory / FILE).is_file():
        raise UnknownName("run", name, run_names(workspace), f"vizpub runs list, in {workspace}")
    run = StoredRun(directory, read_manifest(directory))
    if complete and not run.manifest.complete:
        raise RunNotComplete(name, run.manifest.state, "the same vizpub ingest command again")
    return run


@dataclass
class RunWriter:
    """The one writer of a run; see `writing`."""

    directory: Path
    manifest: Manifest | None
    base: Manifest | None = None
    """The complete run that is appended to: what readers see until the new one is complete."""
    handed_out: set[Path] = field(default_factory=set)
    """Directories that are being written, and that no manifest names yet."""

    def begin(self, manifest: Manifest) -> None:
        """Start the run anew. A complete one of that name is kept aside until `accept`."""
        if self.manifest is not None and self.manifest.complete:
            aside = self.directory / f"{_REPLACED}.new"
            shutil.copyfile(self.directory / FILE, aside)
            aside.replace(self.directory / _REPLACED)
        self.manifest = manifest
        self.handed_out.clear()
        write_manifest(self.directory, manifest)
        self.sweep()

    def pending(self) -> Manifest | None:
        """What an append to the run as it stands has come to, if one was stopped."""
        if self.manifest is None or not (self.directory / _APPENDED).is_file():
            return None
        found = read_manifest(self.directory, _APPENDED)
        return found if found.extends == self.manifest.identity else None

    def extend(self, manifest: Manifest) -> None:
        """Append to the run: begin, or go on with what is pending."""
        self.base, self.manifest = self.manifest, manifest
        write_manifest(self.directory, manifest, _APPENDED)
        self.sweep()

    def accept(self) -> None:
        """The run is complete: the one that was kept aside is let go."""
        (self.directory / _REPLACED).unlink(missing_ok=True)
        self.sweep()

    def restore(self) -> None:
        """The input is not good: the run that was kept aside or appended to is back."""
        self.handed_out.clear()
        if self.base is not None:
            (self.directory / _APPENDED).unlink(missing_ok=True)
            self.manifest, self.base = self.base, None
            self.sweep()
        elif (self.directory / _REPLACED).is_file():
            (self.directory / _REPLACED).replace(self.directory / FILE)
            self.manifest = read_manifest(self.directory)
            self.sweep()

    def fresh_directory(self, name: str) -> Path:
        """A directory for a new generation of a table; unseen until it is committed."""
        directory = self.directory / name / uuid4().hex[:12]
        self.handed_out.add(directory)
        return directory

    def commit(self, manifest: Manifest) -> None:
        """Make the manifest, and so every directory it names, the state of the run.

        One that is appended is seen once it is complete.
        """
        under_way = self.base is not None and not manifest.complete
        write_manifest(self.directory, manifest, _APPENDED if under_way else FILE)
        self.manifest = manifest
        self.handed_out.clear()
        if self.base is not None and manifest.complete:
            self.base = None
            self.sweep()

    def entry(
        self,
        directory: Path,
        older: tuple[Part, ...] = (),
        schema: str | None = None,
    ) -> TableEntry:
        """What run.json says of a written directory, beside older parts; counts from the Parquet
        files. `schema` is a staged table's.
        """
        files = tuple(map(_stored, sorted(directory.glob("*.parquet"))))
        return self.listed(directory, files, older, schema)

    def listed(
        self,
        directory: Path,
        files: tuple[StoredFile, ...],
        older: tuple[Part, ...] = (),
        schema: str | None = None,
    ) -> TableEntry:
        """`entry`, of files that are known."""
        rows = sum(file.rows for file in files) + sum(part.rows for part in older)
        return TableEntry(str(directory.relative_to(self.directory)), rows, older, files, schema)

    def cut(self, parts: Sequence[Part], cut: Cut | None) -> tuple[Part, ...]:
        """The parts up to the cut; counted anew only where that is less than before."""
        return tuple(self._cut(part, cut) for part in parts)

    def _cut(self, part: Part, cut: Cut | None) -> Part:
        left = part.up_to(cut)
        if left == part.cut or left is None:
            return part
        files = [str(path) for path in files_of(self.directory, part, part.directory)]
        rows = ds.dataset(files).count_rows(filter=_below(left)) if files else 0
        return replace(part, rows=rows, cut=left)

    def sweep(self) -> None:
        """Remove what no manifest names: the leavings of a killed writer."""
        manifests = [self.manifest, self.base, self.pending()]
        if manifests[1:] == [None, None]:
            (self.directory / _APPENDED).unlink(missing_ok=True)
        if (self.directory / _REPLACED).is_file():
            manifests.append(read_manifest(self.directory, _REPLACED))
        named = {name for manifest in manifests if manifest for name in manifest.directories}
        kept = {self.directory / name for name in named} | self.handed_out
        for directory in self._below_tables("/*"):
            if directory not in kept:
                shutil.rmtree(directory)
        for directory in [*self._below_tables(""), *self.directory.glob("*")]:
            if directory.is_dir() and not any(directory.iterdir()):
                directory.rmdir()

    def _below_tables(self, below: str) -> list[Path]:
        roots = [*(t.name for t in TABLES), "staged/*"]
        found = (path for root in roots for path in self.directory.glob(root + below))
        return [path for path in found if path.is_dir()]


@contextmanager
def writing(workspace: Path, name: str) -> Iterator[RunWriter]:
    """The run's writer, for the length of the block. Raises: RunLocked, StoreBroken.

    The lock names its holder's process and host; that of a dead process of this host is
    taken over. Raises UseError too where the workspace cannot be written.
    """
    directory = workspace / "runs" / check_run_name(name)
    with _locked(directory):
        manifest = read_manifest(directory) if (directory / FILE).is_file() else None
        writer = RunWriter(directory, manifest)
        writer.sweep()
        yield writer


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    lock = SoftFileLock(directory / _LOCK, timeout=0)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise RunLocked(directory.name, _holder(directory / _LOCK)) from error
    except OSError as error:
        if error.errno == ENOSPC:
            raise DiskFull(str(directory)) from error
        raise UseError(f"cannot write {directory}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def _holder(lock: Path) -> str:
    """Who holds the lock, in words; the file has its process and host."""
    told = lock.read_text(errors="replace").split() if lock.is_file() else []
    process, host = (*told, "?", "?")[:2]
    return f"process {process} on {host} (if that is gone, remove {lock})"


def remove_run(workspace: Path, name: str) -> None:
    """Delete a run from the workspace. Raises: UnknownName, RunLocked."""
    directory = workspace / "runs" / check_run_name(name)
    if not directory.is_dir():
        raise UnknownName("run", name, run_names(workspace), "vizpub runs list")
    with _locked(directory):
        # First the manifest: from here on the run is gone for every reader.
        (directory / FILE).unlink(missing_ok=True)
        shutil.rmtree(directory)


def metric_table(name: str) -> Table:
    """'overlay' or 'metrics/overlay' → its table. Raises: UnknownName."""
    return table(name if name.startswith("metrics/") else f"metrics/{name}")
