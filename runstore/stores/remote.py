"""Writing runs in a store: what is made here goes there, and one write makes it the run.

    runs/lab/run.json                       the run: what it names exists, for readers
    runs/lab/data/links/019abcdef01-5e7a…/  immutable files; the name begins with the claim's epoch
    runs/lab/claim.json                     who writes (vizpub.runstore.stores.claim)
    runs/lab/log.jsonl                      the log; nothing depends on it

A writer reads run.json, writes new files, and replaces run.json only if it is still what was read.
A new run has a run.json first, in state 'ingesting', so that there is something to replace. Only
who has replaced run.json removes files that it does not name: whoever else has written some, can
commit them no more. Files of later claims stay: their writers have read the new run.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from vizpub.machine.files import bytes_below
from vizpub.model.errors import RunCollected, RunLocked, ServiceError, StoreBroken
from vizpub.runstore import durable
from vizpub.runstore.journal import FILE as JOURNAL
from vizpub.runstore.leftovers import DATA, keep_young, list_files
from vizpub.runstore.manifest import FILE, Manifest, manifest_text, read_manifest
from vizpub.runstore.stores.claim import (
    COLLECTOR,
    Claim,
    claimed,
    collector_elsewhere,
    owner_of,
)
from vizpub.runstore.stores.objects import AT_ONCE, Changed, Listed, Objects
from vizpub.runstore.stores.place import store_of_run

_FRESH = re.compile(r"([0-9a-f]{11})-[0-9a-f]{8}")


@dataclass
class RemoteRun:
    """A run in a store, of whose writers this process holds the claim."""

    store: Objects
    directory: Path
    """The run's directory on this machine."""
    claim: Claim
    version: str | None = None
    """The version of run.json that a commit replaces; null = there is none."""
    complete: bool = False
    """True if run.json there is of a complete run, or cannot be read."""
    _unswept: Manifest | None = None
    """The complete run, until this writer has removed what it does not name."""

    @property
    def _top(self) -> str:
        return f"runs/{self.directory.name}"

    def fresh_name(self) -> str:
        """A name for a directory of new files."""
        return f"{self.claim.content.epoch:011x}-{uuid4().hex[:8]}"

    def read(self) -> None:
        """Let the directory here have the run of the store; what was begun here stays, if the
        store has no complete run.
        """
        found = self.store.find(f"{self._top}/{FILE}")
        self.version = found.version if found else None
        manifest = None
        if found:
            try:
                manifest = read_manifest(self.directory, text=found.content)
                self.complete = manifest.complete
                self._unswept = manifest if manifest.complete else None
            except StoreBroken:  # who replaces it, does not need it
                self.complete = True
        if found and self.complete:
            durable.make_directory(self.directory)
            durable.write(self.directory / FILE, found.content.decode("utf-8", "replace"))
            if log := self.store.find(f"{self._top}/{JOURNAL}"):
                (self.directory / JOURNAL).write_bytes(log.content)
        elif _is_outdated(self.directory, manifest):
            durable.remove(self.directory / FILE)
            if found and manifest and manifest.collection:  # its name is taken
                durable.make_directory(self.directory)
                durable.write(self.directory / FILE, found.content.decode())

    def reserve(self, manifest: Manifest) -> None:
        """Let other machines see that the name is taken, in place of what was not complete.

        Raises: RunLocked, ServiceError.
        """
        self.claim.renew()
        self._commit(manifest)

    def publish(self, manifest: Manifest) -> None:
        """Write the files of a complete run that the store has not, then commit it.

        Raises: RunLocked if another writer has taken the claim, or has committed; ServiceError.
        """
        self.claim.renew()
        if not self.complete:
            collection = manifest.collection
            state = "collecting" if collection else "ingesting"
            self._commit(
                Manifest(manifest.name, manifest.source, (), {}, state=state, collection=collection)
            )
        there = {listed.name: listed for listed in self._files()}
        wanted = {
            f"{self._top}/{part.directory}/{file.name}": (
                self.directory / part.directory / file.name,
                file.size,
            )
            for part in manifest.parts
            for file in part.files or ()
        }
        missing = {
            name: path
            for name, (path, size) in wanted.items()
            if name not in there or there[name].size != size
        }
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self.store.put, missing.keys(), missing.values()))
        self._commit(manifest)
        self.complete, self._unswept = True, None
        with suppress(RunLocked, ServiceError):  # the run is there, and the next writer removes it
            self._delete(self._leftovers(manifest, there.values()))

    def sweep(self) -> None:
        """Remove what a commit has let go and what a writer has left that was killed behind its
        own, unless this one has committed. It takes a commit, too: an earlier writer can make its
        own until then.
        """
        with suppress(RunLocked, ServiceError):
            if self._unswept and (left := self._leftovers(self._unswept, self._files())):
                self._commit(self._unswept)
                self._delete(left)

    def write_log(self) -> None:
        """Write the log of the run, if the run is there."""
        if self.complete and (self.directory / JOURNAL).is_file():
            with suppress(ServiceError):  # nothing depends on it
                self.store.put(f"{self._top}/{JOURNAL}", self.directory / JOURNAL)

    def check_not_collected(self) -> None:
        """Raises: RunCollected while another machine collects the run; ServiceError."""
        name = self.directory.name
        if collector := collector_elsewhere(self.store, name, self.directory):
            raise RunCollected(name, collector)

    def remove(self) -> None:
        """Remove the run: from the first write on it is incomplete, and at last it is gone.

        Raises: RunLocked, ServiceError.
        """
        self.claim.renew()
        if self.version is not None:
            self._commit(Manifest(self.directory.name, "", (), {}))
        self.complete, self._unswept = False, None
        last = {f"{self._top}/{FILE}", self.claim.name}
        names = [listed.name for listed in self.store.walk(self._top)]
        self._delete(name for name in names if name not in last)
        self.claim.renew()
        self.store.delete([f"{self._top}/{FILE}"])
        self.version = None

    def forget_claim(self) -> None:
        """Remove the claim, where there is nothing to claim."""
        with suppress(RunLocked, ServiceError):
            self.claim.renew()
            self.store.delete([self.claim.name])

    def _commit(self, manifest: Manifest) -> None:
        text = manifest_text(manifest, uuid4().hex).encode()
        try:
            self.version = self.store.put_if(f"{self._top}/{FILE}", text, self.version)
        except Changed as error:
            owner = owner_of(self.store.find(self.claim.name))
            raise RunLocked(self.directory.name, owner) from error

    def _files(self) -> Iterator[Listed]:
        """All objects of the run but those by which writers know each other, and the log."""
        known = {f"{self._top}/{name}" for name in (FILE, JOURNAL, COLLECTOR)} | {self.claim.name}
        return (one for one in self.store.walk(self._top) if one.name not in known)

    def _leftovers(self, manifest: Manifest, there: Iterable[Listed]) -> list[str]:
        """The files of this writer and of earlier ones that no reader of a run can need."""
        kept = list_files(manifest) | {*keep_young(manifest.let_go)}
        return [
            listed.name
            for listed in there
            if listed.name.startswith(f"{self._top}/{DATA}/")  # all else is not ours
            and _epoch(listed, self._top) <= self.claim.content.epoch
            and kept.isdisjoint(_path(listed, self._top))
        ]

    def _delete(self, names: Iterable[str]) -> None:
        if names := [*names]:
            self.claim.renew()
            self.store.delete(names)


@contextmanager
def claiming(directory: Path) -> Iterator[RemoteRun | None]:
    """The run in the store whose directory here this is, claimed for the length of the block; null
    if it is in no store. Raises: RunLocked, ServiceError.
    """
    store = store_of_run(directory)
    if store is None:
        yield None
        return
    with claimed(store, directory.name, directory) as claim:
        run = RemoteRun(store, directory, claim)
        run.read()
        try:
            yield run
            run.write_log()
            run.sweep()
        finally:
            if run.version is None:
                run.forget_claim()


@contextmanager
def collecting(directory: Path) -> Iterator[None]:
    """Let other machines know, for the length of the block, that this process collects the run
    whose directory here this is; but a store that is away stops no collector. Raises: RunLocked.
    """
    store = store_of_run(directory)
    with ExitStack() as claims:
        with suppress(ServiceError):
            if store:
                claims.enter_context(claimed(store, directory.name, directory, COLLECTOR))
        yield


def exists(store: Objects, run: str) -> bool:
    """Return True if the store has something of a run."""
    return next(store.walk(f"runs/{run}"), None) is not None


def changed_s(directory: Path) -> float:
    """When run.json was written, in seconds since 1970. Raises: OSError, ServiceError."""
    store = store_of_run(directory)
    if store is None:
        return (directory / FILE).stat().st_mtime
    names = store.walk(f"runs/{directory.name}")
    return max((one.changed_s for one in names if one.name.endswith(f"/{FILE}")), default=0.0)


def size_of(directory: Path) -> int:
    """The bytes of all files of a run. Raises: ServiceError."""
    store = store_of_run(directory)
    if store is None:
        return bytes_below(directory)
    return sum(listed.size for listed in store.walk(f"runs/{directory.name}"))


def _is_outdated(directory: Path, manifest: Manifest | None) -> bool:
    """Return True if the run here is not the incomplete one of the store (null = it has none): it
    was removed, or its name was taken, by another machine.
    """
    collection = manifest.collection if manifest else ""
    try:
        here = read_manifest(directory)
        return here.complete or here.collection != collection
    except FileNotFoundError:
        return bool(collection)
    except StoreBroken:
        return True


def _path(listed: Listed, top: str) -> tuple[str, str]:
    """The directory of a file and its path, as run.json names them."""
    path = listed.name.removeprefix(f"{top}/")
    return path.rpartition("/")[0], path


def _epoch(listed: Listed, top: str) -> int:
    """The epoch of the claim that wrote a file; 0 for files that were copied with their names."""
    match = _FRESH.fullmatch(_path(listed, top)[0].rpartition("/")[2])
    return int(match[1], 16) if match else 0
