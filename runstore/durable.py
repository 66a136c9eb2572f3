"""Changes to files that survive a power cut.

What a process writes is there for others at once, and stays only when it is synced: the content
of a file with the file, its name with its directory. Until then a cut may leave it empty or torn,
under its new name, its old one or none, whatever was done before and after. All that the run store
changes on a disk goes through the functions here, so what it relies on can be seen and tried.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

_AT_ONCE = 8
"""Files synced at a time: a disk takes many together for little more than one."""


def sync(files: Iterable[Path], top: Path) -> None:
    """Let files below `top` last, whoever wrote them, and their names, up to those in `top`."""
    files = list(files)
    directories = {parent for file in files for parent in _up_to(file.parent, top)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(chain(pool.map(sync_file, files), pool.map(sync_directory, directories)))


def write(path: Path, text: str) -> None:
    """Let a file have this text: whoever reads it, and a cut, find the old one or this, whole."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    sync_file(fresh)
    rename(fresh, path)
    sync_directory(path.parent)


def remove(path: Path) -> None:
    """Remove a file, if it is there, for good."""
    if path.exists() or path.is_symlink():
        unlink(path)
        sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Make a directory and those above it, as far as they are not there."""
    missing = [one for one in (path, *path.parents) if not one.is_dir()]
    path.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        sync_directory(one.parent)


def _up_to(directory: Path, top: Path) -> list[Path]:
    """The directory and those above it, `top` the last."""
    return [one for one in (directory, *directory.parents) if one.is_relative_to(top)]


# What an operating system does at once. Nothing below is there after a cut until it is synced.


def sync_file(path: Path) -> None:
    """Let the content of a file last."""
    _sync(path)


def sync_directory(path: Path) -> None:
    """Let the names in a directory last, as they are now."""
    _sync(path)


def rename(path: Path, to: Path) -> None:
    """Let a file take another's place, in the same directory."""
    path.replace(to)


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
