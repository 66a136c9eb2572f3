"""Copies of runs in other workspaces: folders, stores, either way."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from vizpub.machine.files import as_errors_of_ours, remove_parts, replacing
from vizpub.model.errors import FULL, StoreBroken, UseError
from vizpub.runstore import durable
from vizpub.runstore.integrity import OTHER_BYTES, damages, files_of
from vizpub.runstore.journal import FILE as JOURNAL
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.stores.copies import crc_of
from vizpub.runstore.stores.place import name_of, store_of_run
from vizpub.runstore.writer import RunWriter, writing


def copy_run(
    run: StoredRun, workspace: Path, name: str | None = None, *, replaces: bool = False
) -> StoredRun:
    """Copy a complete run to another workspace, under its own name or another. The copy appears
    when all of it is there and has the checksums of run.json; after a kill, what a store has
    already is not sent again, and what came from one is not fetched again.

    Raises: UseError if there is another run of that name; StoreBroken for a damaged run; RunLocked,
    RunCollected, ServiceError, DiskFull.
    """
    name = name or run.name
    with writing(workspace, name) as writer:
        if writer.directory == run.directory:
            raise UseError(f"a copy of run '{name}' in its own workspace needs another name (--as)")
        stored = writer.stored
        is_same = stored and stored.complete and stored.directories == run.manifest.directories
        if is_same and not replaces:
            return open_run(workspace, name)
        if (stored or writer.broken) and not replaces:
            there = name_of(workspace)
            raise UseError(f"{there} has another run '{name}'; give a name (--as), or --replace")
        writer.check_owner("")
        with as_errors_of_ours(writer.directory):
            _copy_files(run, writer)
            bring_log(run)
            copied = replace(
                run.manifest, name=name, collection="", view="", let_go={}, boundaries=()
            )
            wrong = damages(writer.directory, copied, compared=True)
            if damage := next(filter(None, wrong), None):
                raise StoreBroken(f"{writer.directory}/{damage.file}", damage.why)
            writer.commit(copied)
            if (journal := run.directory / JOURNAL).is_file():
                with suppress(OSError):  # the copy is whole without it
                    shutil.copyfile(journal, writer.directory / JOURNAL)
    return open_run(workspace, name)


def _copy_files(run: StoredRun, writer: RunWriter) -> None:
    """Give the directory of a run the files of another, in directories of the same names: no other
    run has one of such a name. Those with a checksum have its bytes then.
    """
    for part in run.manifest.parts:
        to = writer.directory / part.directory
        writer.handed_out.add(to)
        durable.make_directory(to)
        if not writer.remote:  # a store's copies have readers that fetch others
            remove_parts(to)
        crcs = {file.name: file.crc for file in part.files or ()}
        for path in files_of(run.directory, part, part.directory):
            if not _has_bytes(to / path.name, crc := crcs.get(path.name)):
                writer.synced.discard(part.directory)
                _copy_file(path, to / path.name, crc, as_link=writer.remote is not None)


def _has_bytes(path: Path, crc: int | None) -> bool:
    return path.is_file() and crc is not None and crc_of(path) == crc


def _copy_file(path: Path, to: Path, crc: int | None, *, as_link: bool) -> None:
    """Copy a file; what is there stays until the new one has these bytes. Raises: StoreBroken."""
    with replacing(to) as new:
        try:
            # On its way to a store; else the copies must not share their bytes.
            durable.link(path, new) if as_link else shutil.copyfile(path, new)
        except OSError as error:
            if not as_link or error.errno in FULL:
                raise
            shutil.copyfile(path, new)  # to another file system
        if crc is not None and not _has_bytes(new, crc):
            raise StoreBroken(str(path), OTHER_BYTES)


def bring_all(run: StoredRun) -> None:
    """Let all files of a run that is in a store be here. Raises: StoreBroken, ServiceError."""
    if store_of_run(run.directory):
        for part in run.manifest.parts:
            files_of(run.directory, part, part.directory)


def drop_all(run: StoredRun) -> None:
    """Remove the copies of the files of a run that is in a store: who reads it, fetches them."""
    if store_of_run(run.directory):
        for part in run.manifest.parts:
            for file in part.files or ():
                (run.directory / part.directory / file.name).unlink(missing_ok=True)


def bring_log(run: StoredRun) -> None:
    """Let the log of a run that is in a store be here, if it has one. Raises: ServiceError."""
    store = store_of_run(run.directory)
    if store and (log := store.find(f"runs/{run.name}/{JOURNAL}")):
        run.directory.mkdir(parents=True, exist_ok=True)
        with replacing(run.directory / JOURNAL) as new:
            new.write_bytes(log.content)
