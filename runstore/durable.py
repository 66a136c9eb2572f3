"""Changes to files that survive a power cut.

Written data survives a power cut only after a sync: the content of a file by a sync of the file,
its name by a sync of its directory. Before that a cut may leave a file empty or torn, under its new
name, its old one or none. All changes of the run store on disk use these functions, so tests can
simulate cuts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

_AT_ONCE = 8
"""Files synced concurrently; a disk syncs many in little more time than one."""


def sync(files: Iterable[Path], top: Path, folders: Iterable[Path] = ()) -> None:
    """Sync files below `top`, and all directories from theirs, and from `folders`, up to `top`."""
    files = list(files)
    lowest = {*folders, *(file.parent for file in files)}
    directories = {
        parent
        for folder in lowest
        for parent in (folder, *folder.parents)
        if parent.is_relative_to(top)
    }
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(chain(pool.map(sync_file, files), pool.map(sync_directory, directories)))


def write(path: Path, text: str) -> None:
    """Replace a text file atomically and durably: a power cut leaves the old or the new one."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    sync_file(fresh)
    rename(fresh, path)
    sync_directory(path.parent)


def remove(path: Path) -> None:
    """Remove a file durably, if it exists."""
    if path.exists() or path.is_symlink():
        unlink(path)
        sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents durably."""
    missing = [one for one in (path, *path.parents) if not one.is_dir()]
    path.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        sync_directory(one.parent)


# Single calls of the operating system, which are not durable until they are synced.


def sync_file(path: Path) -> None:
    """Sync the content of a file."""
    _sync(path)


def sync_directory(path: Path) -> None:
    """Sync the names in a directory."""
    _sync(path)


def rename(path: Path, to: Path) -> None:
    """Rename a file within its directory, replacing the target."""
    path.replace(to)


def link(path: Path, to: Path) -> None:
    """Give a file one more name, in a directory that nobody reads yet."""
    to.hardlink_to(path)


def unlink(path: Path) -> None:
    """Remove a name."""
    path.unlink()


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it."""
    shutil.rmtree(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
