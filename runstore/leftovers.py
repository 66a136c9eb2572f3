"""Removes files of killed commands from a workspace, unless a running process owns them.

Incomplete runs stay: the same command resumes them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from vizpub.machine.locks import (
    OF_IMPORTS,
    OF_SPARK,
    OF_STDIN,
    LockHeld,
    holding,
    lock_of,
    sweep_folders,
    with_locks,
)
from vizpub.model.errors import ServiceError, UseError

if TYPE_CHECKING:
    from vizpub.runstore.manifest import Manifest

SCRATCH = ".spark"
"""The folder of Spark's temporary files and of the running session."""
DATA = "data"
"""In a run, the directory of the files that run.json names, with one for each table."""
COLLECTED = "collected"
"""The folder of what is collected for runs, beside these."""
DELETED = ".{}.deleted"
"""In it, a collection that is being deleted."""
IMPORTED = ".{}.imported"
"""In it, a collection that is being imported, until its run is committed."""
IMPORTING = "importing"
"""The file that says that the run in a directory is being imported, and there was none before."""
LET_GO = "let-go"
"""The file that says that a run has files that only readers of an earlier run.json need, and since
when."""
KEPT_SECONDS = 600
"""Readers of a run have so long to read what a commit lets go."""
_RUN_JSON = "run.json"
_BEGINNING = {f"{_RUN_JSON}.new"}
"""The possible files in the directory of a run that did not begin."""


def sweep(workspace: Path) -> None:
    """Remove Spark's temporary files, kept standard input, the files of an import into Neo4j,
    directories of runs that did not begin, and locks, each if its process has ended; and what is
    left of collections that were deleted. What cannot be removed stays.
    """
    sweep_folders(workspace / SCRATCH, OF_SPARK)
    sweep_folders(workspace / SCRATCH, OF_STDIN)
    sweep_folders(workspace / "neo4j", OF_IMPORTS)
    for deleted in (workspace / COLLECTED).glob(DELETED.format("*")):
        rmtree(deleted, ignore_errors=True)
    _sweep_let_go(workspace)
    _finish_imports(workspace)
    for directory in with_locks(workspace / "runs", "[!.]*"):
        # We may not look into another user's run: Path.exists would raise, os.path.exists does not.
        if os.path.exists(lock_of(directory)) or not os.path.exists(directory / _RUN_JSON):
            with suppress(LockHeld, OSError), holding(lock_of(directory)):
                names = {*os.listdir(directory)}
                is_begun = names <= _BEGINNING or (IMPORTING in names and _RUN_JSON not in names)
                if is_begun and not directory.is_symlink():
                    rmtree(directory)


def _finish_imports(workspace: Path) -> None:
    """Let collections appear whose runs were imported before a kill, and remove others."""
    for path in (workspace / COLLECTED).glob(IMPORTED.format("*")):
        from vizpub.runstore.collection import Collected, finish_import  # few need it

        with suppress(UseError, ServiceError, LockHeld, OSError):
            of = Collected(workspace, path.name[1:].removesuffix(IMPORTED.format("")[1:]))
            with holding(lock_of(workspace / "runs" / of.run)):
                finish_import(of)


def _sweep_let_go(workspace: Path) -> None:
    """Remove what the writers of runs let go, once no reader can need it."""
    for mark in workspace.glob(f"runs/*/{LET_GO}"):
        from vizpub.runstore.writer import writing  # imports pyarrow, and few need it

        with suppress(UseError, ServiceError, OSError):
            is_free = not os.path.exists(lock_of(mark.parent))  # its writer sees to it, too
            if is_free and not is_young(mark.stat().st_mtime):
                with writing(workspace, mark.parent.name):
                    pass


def list_files(manifest: Manifest) -> set[str]:
    """List the files that a manifest names, relative to the run's directory."""
    parts = manifest.parts
    return {f"{part.directory}/{file.name}" for part in parts for file in part.files or ()}


def let_go(stored: Manifest, manifest: Manifest) -> dict[str, float]:
    """Return what a manifest lets go that takes the place of the stored one, and when: directories,
    and files of directories that it still names.
    """
    files, directories = list_files(manifest), manifest.directories
    cut = {file for file in list_files(stored) - files if file.rpartition("/")[0] in directories}
    in_use = {*stored.directories, *filter(None, [stored.view]), *cut}
    everything = keep_young({**stored.let_go, **dict.fromkeys(in_use, time.time())})
    named = directories | files
    return {name: at for name, at in everything.items() if name not in named}


def keep_young(let_go: dict[str, float]) -> dict[str, float]:
    """Return the part of what was let go that readers may still need."""
    return {name: at for name, at in let_go.items() if is_young(at)}


def is_young(at: float) -> bool:
    """Return True if readers may still need what was let go then, in seconds since 1970."""
    # A time far ahead is of a clock that was set back, and tells nothing.
    return abs(time.time() - at) < KEPT_SECONDS
