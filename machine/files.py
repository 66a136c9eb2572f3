"""Reading, sizes and atomic replacement of files, and the errors of writing them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EFBIG
from pathlib import Path
from secrets import token_hex
from stat import S_ISREG
from typing import Any

from vizpub.model.errors import FULL, DiskFull, UseError, cause_of

_MOST = 1 << 26
"""Most characters of a user's file."""


def bytes_below(folder: Path) -> int:
    """Return the size of all files below the folder; a file with several names counts once, one
    that is removed meanwhile not at all.
    """
    sizes = {}
    for path in folder.rglob("*"):
        with suppress(OSError):
            status = path.lstat()
            if S_ISREG(status.st_mode):
                sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def make_folder(folder: Path) -> Path:
    """Create a folder and its parents if they are missing, and return it. Raises: UseError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UseError(f"cannot create {folder}: {cause_of(error)}") from error
    return folder


def text_of(path: Path) -> str:
    """Read a user's text file: UTF-8, with or without a byte order mark.

    Raises: OSError, also if it is very large or endless; UnicodeDecodeError.
    """
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        raise OSError(EFBIG, f"it has more than {_MOST:,} characters", str(path))
    return text


def toml_of(path: Path) -> dict[str, Any]:
    """Read a user's TOML file. Raises: OSError, ValueError."""
    import tomllib

    try:
        return tomllib.loads(text_of(path))
    except RecursionError:
        raise ValueError("too many brackets are inside each other") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new path with the same directory and suffix, to write to. It replaces `path` if the
    block succeeds, and is removed if the block fails.

    Readers see the old or the new file, never a part. Nothing is synced: a power cut may leave the
    file empty. Files that must survive one use vizpub.runstore.durable. Raises: OSError.
    """
    # Threads write the same file, and so do containers, in each of which a process has number 1.
    new = path.with_name(f".{path.stem}.{token_hex(8)}.part{path.suffix}")
    try:
        yield new
        new.replace(path)
    finally:
        with suppress(OSError):
            new.unlink()


def remove_parts(folder: Path) -> None:
    """Remove what killed processes left in a folder while they replaced files. Raises: OSError."""
    for part in folder.glob(".*.part.*"):
        part.unlink(missing_ok=True)


@contextmanager
def as_errors_of_ours(directory: Path) -> Iterator[None]:
    """Raise errors of the file system as DiskFull and UseError."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(str(directory)) from error
        # The removal of a tree gives only the name of the file.
        path = error.filename if os.sep in str(error.filename) else directory
        raise not_writable(path, error) from error


def not_writable(path: Path | str, error: OSError) -> UseError:
    """Return what to raise for a file that cannot be written, with the reason and what to do."""
    reason = cause_of(error)
    if isinstance(error, IsADirectoryError):
        reason = "it is a folder; give the name of a file"
    elif isinstance(error, FileNotFoundError):
        reason = f"there is no folder {Path(path).parent}"
    return UseError(f"cannot write {path}: {reason}")


def text_argument(text: str, suffix: str) -> str:
    """A query from standard input (-), from a file that exists or has the suffix, or the text.

    Raises: UseError if it cannot be read.
    """
    try:
        if text == "-":
            # The locale may have stdin read bytes that are no UTF-8 as half characters.
            given = sys.stdin.buffer.read().decode("utf-8-sig")
            if not given.strip():
                raise UseError("standard input has no query: it is empty, or closed")
            return given
        if text.endswith(suffix) or os.path.isfile(text):
            return text_of(Path(text))
    except (OSError, UnicodeDecodeError) as error:
        source = "standard input" if text == "-" else text
        raise UseError(f"{source} cannot be read: {cause_of(error)}") from error
    return text
