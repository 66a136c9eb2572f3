"""Writes runs: new files lie in new directories until a manifest names them.

An existing run stays unchanged until its replacement is complete; that one is built beside it,
with a manifest of its own. Files are synced before the manifest that names them, so after a power
cut either the old or the new run is complete; see vizpub.runstore.durable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from vizpub.machine.files import as_errors_of_ours
from vizpub.model.errors import RunCollected, StoreBroken, UnknownName, UseError
from vizpub.model.tables import TABLES
from vizpub.runstore import durable, views
from vizpub.runstore.changes import PENDING, identity_to_replace, pending
from vizpub.runstore.collection import Collected, check_owner
from vizpub.runstore.integrity import describe_file
from vizpub.runstore.leftovers import DATA, LET_GO, keep_young, let_go
from vizpub.runstore.manifest import (
    FILE,
    Cut,
    Manifest,
    Part,
    StoredFile,
    TableEntry,
    manifest_in,
    write_manifest,
)
from vizpub.runstore.rewriting import RowChange, cut_part, first_to_merge, join_parts
from vizpub.runstore.run_lock import lock_run
from vizpub.runstore.store import directory_of, run_names
from vizpub.runstore.stores.place import RunPlace, store_of_run
from vizpub.runstore.stores.remote import RemoteRun, claiming, exists
from vizpub.runstore.views import VIEW, VIEWS

NOT_BEGUN = "is not there any more, or was not begun by this collection"


@dataclass
class RunWriter:
    """The only writer of a run; see `writing`."""

    directory: Path
    stored: Manifest | None
    """The content of run.json, which readers see."""
    broken: StoreBroken | None = None
    """Why run.json cannot be read."""
    manifest: Manifest | None = None
    """The run that is being made; before `begin`, the content of run.json."""
    beside: bool = False
    """The run is built beside the one that readers see."""
    handed_out: set[Path] = field(default_factory=set)
    """New directories that no manifest names yet."""
    synced: set[str] = field(default_factory=set)
    """Directories that manifests named."""
    collects: bool = False
    """A collector writes, and what it makes is a run that it has begun."""
    remote: RemoteRun | None = None
    """The run in the store of the workspace; null = the workspace is a folder."""
    place: RunPlace = field(init=False)
    """The run's directory, for tasks."""

    def __post_init__(self) -> None:
        self.place = RunPlace(self.directory, None)
        self.manifest = self.manifest or self.stored
        self.synced |= self.stored.directories if self.stored else set()

    @property
    def base(self) -> Manifest | None:
        """The run that is appended to; null if this is no append."""
        adds = self.beside and self.manifest is not None and self.manifest.extends
        return self.stored if adds else None

    def check_owner(self, collection: str) -> None:
        """Raises: RunCollected, and UseError for a collector whose run is gone, where the run may
        not be made by that collection (empty = by none).
        """
        of = Collected(self.directory.parents[1], self.directory.name)
        if not self.collects:
            check_owner(of, self.stored, collection)
        elif not (self.stored and of.owns(self.stored) and self.stored.collection == collection):
            raise UseError(
                f"run '{of.run}' {NOT_BEGUN}; pause, and see: vizpub live collect {of.run}"
            )

    def begin(self, manifest: Manifest) -> None:
        """Start or resume making the run.

        An existing run that is complete or unreadable stays, and this one is built beside it.
        Raises: UseError where the directory cannot be written, DiskFull; as check_owner.
        """
        self.check_owner(manifest.collection)
        self.beside = self.broken is not None or (self.stored is not None and self.stored.complete)
        replaces = identity_to_replace(self.directory, self.stored) if self.beside else ""
        self.manifest = replace(manifest, replaces=replaces)
        self.handed_out.clear()
        with as_errors_of_ours(self.directory):
            durable.make_directory(self.directory)
            self._write(self.manifest)
            self.sweep()

    def reserve(self, collection: str) -> None:
        """Take the name for a collection: readers see a run without any interval, and begin makes
        it. Discards what is there, which is not complete. Raises: UseError, DiskFull, ServiceError.
        """
        reports = Manifest(self.directory.name, "reports", (), {}, collection=collection)
        self.manifest = replace(reports, state="collecting")
        with as_errors_of_ours(self.directory):
            durable.make_directory(self.directory)
            if self.remote:
                self.remote.reserve(self.manifest)
            self._write(self.manifest)
            self.sweep()

    def release(self) -> None:
        """Give back a name that was only taken."""
        if self.stored and not self.stored.complete:
            self.manifest = self.stored = None
            _remove(self.directory, self.remote)

    def pending(self) -> Manifest | None:
        """The manifest of an interrupted replacement of the current run; null if there is none."""
        return pending(self.directory, self.stored)

    def restore(self) -> None:
        """Discard what was begun; an existing complete run stays."""
        if self.beside:
            durable.remove(self.directory / PENDING)
            self.handed_out.clear()
            self.manifest, self.beside = self.stored, False
            self.sweep()
        elif self.stored and self.stored.collection and not self.stored.complete:
            self.handed_out.clear()
            self.reserve(self.stored.collection)
        else:
            self.handed_out.clear()
            self.release()

    def fresh_directory(self, name: str) -> Path:
        """A new directory for a table; readers do not see it before the commit."""
        fresh = self.remote.fresh_name() if self.remote else uuid4().hex[:12]
        directory = self.directory / DATA / name / fresh
        self.handed_out.add(directory)
        return directory

    def commit(self, manifest: Manifest) -> None:
        """Sync the new files, then make the manifest the durable state of the run.

        When it is complete, readers see it, and the run that it replaces is removed after
        KEPT_SECONDS, by the next command.
        """
        if manifest.complete:
            view = "" if self.remote else views.make(self.directory, manifest)
            before = self.stored if self.stored and self.stored.complete else None
            released = let_go(before, manifest) if before else {}
            manifest = replace(manifest, view=view, let_go=released)
            # A kill may come at once: the next command then shows the view.
            _touch(self.directory / LET_GO, 0)
        folders = views.folders(self.directory, manifest.view) if manifest.complete else ()
        unsynced = (
            path
            for part in manifest.parts
            if part.directory not in self.synced
            for path in (self.directory / part.directory / file.name for file in part.files or ())
            # What is not here, tasks on other machines have put into the store.
            if not self.place.store or path.exists()
        )
        durable.sync(unsynced, self.directory, folders)
        if self.remote and manifest.complete:
            self.remote.publish(manifest)
        self._write(manifest)
        self.handed_out.clear()
        self.manifest = manifest
        if manifest.complete:
            if self.beside:
                durable.remove(self.directory / PENDING)
            self.stored, self.broken, self.beside = manifest, None, False
            self.sweep()

    def show_again(self) -> None:
        """Recreate the folders for other programs. Raises: StoreBroken where a file is missing."""
        assert self.stored
        assert self.stored.complete
        self.commit(self.stored)

    def entry(self, directory: Path, older: tuple[Part, ...] = ()) -> TableEntry:
        """The entry of a table in run.json: a new directory and older parts. Removes other files
        than Parquet from the directory.
        """
        files = sorted(directory.glob("*.parquet"))
        return self.entry_of(directory, tuple(map(describe_file, files)), older)

    def entry_of(
        self,
        directory: Path,
        files: tuple[StoredFile, ...],
        older: tuple[Part, ...],
        schema: str | None = None,
    ) -> TableEntry:
        """The entry of a table whose files their writer has described; removes all others from the
        directory. `schema` is for staged tables.
        """
        if directory.is_dir():
            for path in {*directory.iterdir()} - {directory / file.name for file in files}:
                durable.unlink(path)
        rows = sum(file.rows for file in files) + sum(part.rows for part in older)
        return TableEntry(str(directory.relative_to(self.directory)), rows, older, files, schema)

    def cut(self, name: str, parts: Sequence[Part], cut: Cut | None) -> tuple[Part, ...]:
        """The parts of a table with the rows that the cut leaves: files that have others are
        written again without them.
        """
        if cut is None:
            return tuple(parts)
        fresh = self.fresh_directory
        shorter = [
            one for part in parts for one in cut_part(self.directory, name, part, cut, fresh)
        ]
        for part in shorter:  # tasks read what is new before the commit
            if self.directory / part.directory in self.handed_out:
                self.place.share(
                    *(self.directory / part.directory / of.name for of in part.files or ())
                )
        return tuple(part for part in shorter if part.rows)

    def merge(
        self, name: str, parts: Sequence[Part], change: RowChange | None = None
    ) -> tuple[Part, ...]:
        """The parts of a table with the last of them written again as one, where they have become
        many of a size. A row is written again as often as the table has grown eightfold. A `change`
        gets the rows of these parts, those of the newest first.
        """
        first = first_to_merge([part.rows for part in parts])
        if first == len(parts):
            return tuple(parts)
        return (
            *parts[:first],
            join_parts(self.directory, name, parts[first:], self.fresh_directory, change),
        )

    def sweep(self) -> None:
        """Remove files that no manifest names, which killed writers left.

        Removes nothing while run.json cannot be read.
        """
        if self.broken is not None:
            return
        change = self.pending()
        if change is None:
            durable.remove(self.directory / PENDING)
        for half in self.directory.glob("*.json.new"):
            durable.unlink(half)
        if self.stored and self.stored.complete:
            views.show(self.directory, self.stored)
        manifests = [m for m in (self.stored, self.manifest, change) if m]
        in_use = {name for m in manifests for name in (*m.directories, m.view)}
        released = keep_young(self.stored.let_go) if self.stored else {}
        if released:
            _touch(self.directory / LET_GO, max(released.values()))
        else:
            (self.directory / LET_GO).unlink(missing_ok=True)
        directories = {f"{self.directory}/{name}" for name in in_use | {*released}}
        self._remove_all_but(directories | {*map(str, self.handed_out)})

    def _remove_all_but(self, in_use: set[str]) -> None:
        """Remove other directories of tables and views, and empty ones; there may be thousands."""
        for view in _folders(self.directory / VIEWS):
            if view not in in_use:
                views.withdraw(Path(view))
        tops = (self.directory / DATA, self.directory)  # the latter in an earlier format
        staged = (Path(folder) for top in tops for folder in _folders(top / "staged"))
        tables = [*(top / table.name for top in tops for table in TABLES), *staged]
        for directory in (folder for table in tables for folder in _folders(table)):
            if directory not in in_use:
                durable.remove_tree(Path(directory))
        data, links = self.directory / DATA, self.directory.glob("*")
        into_view = tuple(map(str, filter(views.is_own_link, links)))
        lowest = [str(table) for table in tables if not str(table).startswith(into_view)]
        for path in map(Path, [*lowest, *_folders(data), *_folders(self.directory)]):
            if path.is_dir() and not any(path.iterdir()):
                durable.remove_tree(path)

    def _write(self, manifest: Manifest) -> None:
        """Write the manifest as pending.json or as run.json."""
        self.synced |= manifest.directories
        if self.beside and not manifest.complete:
            write_manifest(self.directory, manifest, PENDING)
            return
        write_manifest(self.directory, manifest)
        self.stored = manifest


def _folders(directory: Path) -> list[str]:
    """The folders in a directory, without links; none where there is no directory."""
    with suppress(FileNotFoundError), os.scandir(str(directory)) as entries:
        return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def _touch(path: Path, at: float) -> None:
    """Create a file whose time of change is `at`, in seconds since 1970."""
    path.touch()
    os.utime(path, (at, at))


@contextmanager
def writing(workspace: Path, name: str, *, collects: bool = False) -> Iterator[RunWriter]:
    """The run's writer, for the length of the block; a collector's if it `collects`. Raises:
    RunLocked.

    Nothing of the run is there before its writer begins it. Raises UseError too where the
    workspace cannot be written, and where the run's directory, or something in it, is a link.
    If run.json cannot be read, the writer has the error in `broken`.
    """
    directory = directory_of(workspace, name)
    with lock_run(directory), claiming(directory) as remote:
        stored = broken = None
        try:
            stored = manifest_in(directory)
        except FileNotFoundError:
            pass
        except StoreBroken as error:
            broken = error
        writer = RunWriter(directory, stored, broken, collects=collects, remote=remote)
        with as_errors_of_ours(directory):
            writer.sweep()
        yield writer


def remove_run(workspace: Path, name: str) -> None:
    """Delete a run from the workspace; what was collected for it stays.

    Raises: UnknownName, RunLocked, RunCollected while it is collected, UseError for a link.
    """
    with removing(workspace, name):
        pass


@contextmanager
def removing(workspace: Path, name: str, *, with_log: bool = False) -> Iterator[None]:
    """Delete a run after the block, in which no other process writes it; it stays where the block
    fails. Its collection is retired by that, or deleted, too (`with_log`). Raises: as `remove_run`.
    """
    directory, of = directory_of(workspace, name), Collected(workspace, name)
    has_log = of.folder.is_dir()
    _check_there(directory, with_log=with_log and has_log)
    with (
        lock_run(directory),
        of.hold(RunCollected) if has_log else nullcontext(),
        claiming(directory) as remote,
    ):
        _check_there(directory, with_log=with_log and has_log)  # yet
        if remote:
            remote.check_not_collected()
        yield
        with as_errors_of_ours(directory):
            if directory.exists() or remote:
                _remove(directory, remote)
            if with_log:
                of.delete()


def _remove(directory: Path, remote: RemoteRun | None) -> None:
    if remote:
        remote.remove()
    if not directory.exists():
        return
    # These first: from here on the run is gone for readers, even after a power cut.
    if views.is_own_link(directory / VIEW):
        durable.unlink(directory / VIEW)
    durable.remove(directory / FILE)
    views.withdraw(directory / VIEWS)
    durable.remove_tree(directory)
    durable.sync_directory(directory.parent)


def _check_there(directory: Path, *, with_log: bool) -> None:
    store = store_of_run(directory)
    if not (exists(store, directory.name) if store else directory.is_dir() or with_log):
        raise no_run(directory.parents[1], directory.name)


def no_run(workspace: Path, name: str) -> UnknownName:
    """The error where there is no such run to remove; it says if its collection is there."""
    see = "vizpub runs list"
    if Collected(workspace, name).is_retired:
        see = f"vizpub runs remove {name} --with-log, which deletes its collection"
    return UnknownName("run", name, run_names(workspace), see)
