"""What is collected for a run, as far as it owns the run's name: `<workspace>/collected/<run>/`.

A collector takes the name before it takes a report: with a run.json that has no interval yet, and
the identity of its collection. Until the collection has ended, the run is made of its reports only:
while a collector runs, by that; while it is paused, by `vizpub runs settle`, too. A collection
whose run is gone is *retired*. It may be all that is left of what was measured, so it stays until
somebody says otherwise.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from vizpub.machine.files import as_errors_of_ours
from vizpub.machine.locks import SWEPT_S, LockHeld, find_holder, holding
from vizpub.model.errors import RunCollected, RunLocked, StoreBroken, UseError
from vizpub.model.run import check_run_name
from vizpub.runstore import durable
from vizpub.runstore.leftovers import COLLECTED, DELETED, IMPORTED
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.store import current_manifest
from vizpub.runstore.stores.place import store_of

RETIRED = "is retired: its run was removed or replaced, or never came to be"

IDENTITY = "identity"
"""The file with the identity of a collection."""
_OF_FOLDER = (IDENTITY, "options.json")


@dataclass(frozen=True)
class Collected:
    """The folder of a collection."""

    workspace: Path
    run: str

    def __post_init__(self) -> None:
        """Raises: UseError for an invalid name."""
        check_run_name(self.run)

    @property
    def folder(self) -> Path:
        """All of it."""
        return self.workspace / COLLECTED / self.run

    @property
    def log(self) -> Path:
        """The segments of the log."""
        return self.folder / "log"

    @property
    def batches(self) -> Path:
        """The files that the run is made from."""
        return self.folder / "batches"

    @property
    def is_empty(self) -> bool:
        """True if nothing was ever reported to it. Raises: UseError."""
        with as_errors_of_ours(self.folder):
            return not any(map(_visible_entries, (self.log, self.batches)))

    @property
    def identity(self) -> str:
        """Of this collection alone; empty where it has taken no name yet. Raises: OSError."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return self._identity.read_text("ascii")
        return ""

    @property
    def imported(self) -> Path:
        """The folder of a collection that is being imported, until its run is."""
        return self.folder.with_name(IMPORTED.format(self.run))

    @property
    def _identity(self) -> Path:
        return self.folder / IDENTITY

    def identify(self) -> str:
        """A new identity: what a process before this one still does, counts no more."""
        durable.write(self._identity, uuid4().hex)
        return self.identity

    def owns(self, run: Manifest | None) -> bool:
        """Return True if it began this run of its name."""
        if run is None or not run.collection:
            return False
        try:
            return run.collection == self.identity
        except PermissionError:  # of another user's, who knows better
            return True

    @property
    def is_retired(self) -> bool:
        """True if its run is gone, and it has reports to rebuild it from. Raises: UseError."""
        try:
            return not (self.is_empty or self.owns(current_manifest(self._run)))
        except FileNotFoundError:
            return not self.is_empty
        except StoreBroken:  # what it says is not known
            return False

    @property
    def has_ended(self) -> bool:
        """True if its run has ended."""
        with suppress(FileNotFoundError, StoreBroken):
            run = current_manifest(self._run)
            return run.ended and self.owns(run)
        return False

    @property
    def _run(self) -> Path:
        return self.workspace / "runs" / self.run

    @property
    def _lock(self) -> Path:
        return self.folder / ".collect.lock"

    @contextmanager
    def hold(self, otherwise: type[RunLocked | RunCollected] = RunLocked) -> Iterator[None]:
        """No other process collects, for the length of the block. Raises: `otherwise`, UseError."""
        with ExitStack() as lock:
            try:
                with as_errors_of_ours(self.folder):  # perhaps somebody only looks: see collector
                    lock.enter_context(holding(self._lock, SWEPT_S))
            except LockHeld as error:
                raise otherwise(self.run, error.owner) from error
            yield

    def open_files(self, stack: ExitStack) -> dict[Path, BinaryIO | None]:
        """Return its files as they are at one moment, though a collector may run. Batches and files
        of the log are open, as it removes them; the log has all that is not in these batches.
        """
        others = [path for path in _plain_files(self.folder) if path.name in _OF_FOLDER]
        others += _plain_files(self.folder / "tokens")
        while True:
            batches, opened = _plain_files(self.batches), ExitStack()
            with suppress(FileNotFoundError):  # of one that was sealed or removed: look again
                held = {
                    path: opened.enter_context(path.open("rb"))
                    for path in (*batches, *_plain_files(self.log))
                }
                if _plain_files(self.batches) == batches:
                    stack.push(opened)
                    return dict.fromkeys(others) | held
            opened.close()

    def collector(self) -> str:
        """The process that collects; empty where none does. Raises: UseError where this user may
        not know.
        """
        with as_errors_of_ours(self.folder):
            return find_holder(self._lock)

    def delete(self) -> None:
        """All of it at once, for whoever looks for it. Raises: OSError."""
        if self.folder.is_dir():
            gone = self.folder.with_name(DELETED.format(self.run))
            shutil.rmtree(gone, ignore_errors=True)  # of a deletion that was killed
            durable.rename(self.folder, gone)
            durable.sync_directory(gone.parent)
            shutil.rmtree(gone, ignore_errors=True)


def _plain_files(folder: Path) -> list[Path]:
    """The files in a folder, without hidden ones and links; none if there is no folder."""
    names = folder.glob("[!.]*")
    return sorted(path for path in names if path.is_file() and not path.is_symlink())


def finish_import(of: Collected) -> None:
    """Let an imported collection appear if its run was committed, and remove it otherwise; the
    run's lock is held.

    Raises: OSError.
    """
    with suppress(FileNotFoundError, NotADirectoryError, StoreBroken):
        identity = (of.imported / IDENTITY).read_text("ascii")
        if identity == current_manifest(of.workspace / "runs" / of.run).collection:
            durable.rename(of.imported, of.folder)
            durable.sync_directory(of.folder.parent)
    shutil.rmtree(of.imported, ignore_errors=True)


def check_owner(of: Collected, run: Manifest | None, collection: str = "") -> None:
    """Raises: RunCollected where a command that is no collector may not rebuild the run, nor add to
    it: it is collected now, or by a collection that has not ended, and is not `collection`.
    """
    if collector := of.collector():
        raise RunCollected(of.run, collector)
    # Where the run is in a store, its collection may be on another machine.
    is_owned = of.owns(run) or (run and run.collection and store_of(of.workspace))
    if run is not None and not run.ended and run.collection != collection and is_owned:
        raise RunCollected(of.run)


def check_name(workspace: Path, name: str) -> None:
    """Raises: RunCollected where a run of this name could not be made now."""
    run = None
    with suppress(FileNotFoundError, StoreBroken):
        run = current_manifest(workspace / "runs" / name)
    check_owner(Collected(workspace, name), run)


def retired_collections(workspace: Path) -> list[Collected]:
    """The collections whose runs are gone, by name; of other users, those that may be seen."""
    collections = []
    for path in sorted(_visible_entries(workspace / COLLECTED)):
        with suppress(UseError, OSError):  # or it has no name of a run
            if (of := Collected(workspace, path.name)).is_retired:
                collections.append(of)
    return collections


def _visible_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, except hidden ones; none if there is no folder."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    return []
