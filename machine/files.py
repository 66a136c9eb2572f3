"""Atomic replacement of files, their sizes, and why they cannot be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EFBIG
from pathlib import Path
from stat import S_ISREG
from typing import Any

from vizpub.model.errors import FULL, DiskFull, UseError, cause_of

_MOST = 1 << 26
"""Characters of a text that a user gives."""
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""The byte order mark that some editors put before a text."""


def bytes_below(folder: Path) -> int:
    """Size of all files below the folder, each once, whatever names it has; one that is removed
    meanwhile counts nothing.
    """
    sizes = {}
    for path in folder.rglob("*"):
        with suppress(OSError):
            told = path.lstat()
            if S_ISREG(told.st_mode):
                sizes[told.st_dev, told.st_ino] = told.st_size
    return sum(sizes.values())


def made_folder(folder: Path) -> Path:
    """The folder, which is created if it is not there. Raises: UseError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UseError(f"cannot create {folder}: {cause_of(error)}") from error
    return folder


def text_of(path: Path) -> str:
    """The text of a file that a user gives: UTF-8, with a byte order mark or without.

    Raises: OSError, also where it is very large or endless; UnicodeDecodeError.
    """
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        raise OSError(EFBIG, f"it has more than {_MOST:,} characters", str(path))
    return text


def toml_of(path: Path) -> dict[str, Any]:
    """The content of a TOML file that a user gives. Raises: OSError, ValueError."""
    import tomllib

    try:
        return tomllib.loads(text_of(path))
    except RecursionError:
        raise ValueError("too many brackets are inside each other") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new path in the same directory and with the same suffix, to write to. It replaces `path`
    when the block succeeds, and is removed when the block fails.

    Readers see the old or the new file, never a part. Nothing is synced: a power cut may leave the
    file empty. What must survive one uses vizpub.runstore.durable. Raises: OSError.
    """
    new = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield new
        new.replace(path)
    finally:
        with suppress(OSError):
            new.unlink()


@contextmanager
def as_errors_of_ours(directory: Path) -> Iterator[None]:
    """Errors of the file system as DiskFull and UseError."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(str(directory)) from error
        # Of a tree that is removed only the name of the file is told.
        path = error.filename if os.sep in str(error.filename) else directory
        raise UseError(f"cannot write {path}: {error.strerror}") from error
