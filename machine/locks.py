"""Exclusive locks by the kernel, which end with the process in every case.

The content of a lock file is only a hint for users about the holder, so an empty or torn file, or
one of another machine, does no harm.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

OF_SPARK = "work"
"""The kind of folders of Spark's temporary files."""
OF_STDIN = "stdin"
"""The kind of folders of standard input."""
OF_IMPORTS = "staging"
"""The kind of folders of files to import into Neo4j."""
SWEPT_S = 0.5
"""How long a holder waits for a lock: a sweep takes it for a moment, to see whether it is held."""
_AGAIN_S = 0.01
_HINT = 200
"""Most bytes of a lock file that are read."""


@dataclass
class Held(Exception):
    """Another process has the lock."""

    owner: str
    """The holder as text, from the lock file."""


def lock_of(path: Path) -> Path:
    """The lock of a file or folder: beside it, as it may be removed by who holds the lock."""
    return path.with_name(f".{path.name}.lock")


@contextmanager
def holding(path: Path, wait_s: float = 0.0) -> Iterator[None]:
    """The lock of that file, for the length of the block; afterwards the file is gone.

    Raises: Held where another process, or this one, has it, after `wait_s`; OSError where the file
    cannot be made, or its file system has no locks.
    """
    handle = _locked(path, time.monotonic() + wait_s)
    try:
        with suppress(OSError):  # a full disk has room for no hint
            os.truncate(handle, 0)
            os.write(handle, f"{os.getpid()} {os.uname().nodename}\n".encode())
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # while it is ours: see _locked
        os.close(handle)


@contextmanager
def own_folder(parent: Path, kind: str) -> Iterator[Path]:
    """A new folder in `parent` for the length of the block, for this user alone; its name begins
    with the kind. What ended processes left of that kind is removed first.
    """
    parent.mkdir(parents=True, exist_ok=True)
    sweep_folders(parent, kind)
    folder = parent / f"{kind}-{os.urandom(6).hex()}"
    with holding(lock_of(folder), SWEPT_S):
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            rmtree(folder, ignore_errors=True)


def sweep_folders(parent: Path, kind: str) -> None:
    """Remove folders made by `own_folder` whose process has ended."""
    for folder in with_locks(parent, f"{kind}-*"):
        with suppress(Held, OSError), holding(lock_of(folder)):
            rmtree(folder, ignore_errors=True)


def with_locks(parent: Path, pattern: str) -> list[Path]:
    """Paths in `parent` that match a pattern, including those of which only a lock is left."""
    locks = (path.name[1:].removesuffix(".lock") for path in parent.glob(f".{pattern}.lock"))
    there = (path.name for path in parent.glob(pattern) if not path.name.startswith("."))
    return [parent / name for name in sorted({*locks, *there})]


def _locked(path: Path, until: float) -> int:
    """The open lock file of that name, locked. Raises: Held after that time."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, handle):
                return handle
        except BlockingIOError:
            owner = _owner(handle)
            os.close(handle)
            if time.monotonic() >= until:
                raise Held(owner) from None
            time.sleep(_AGAIN_S)
            continue
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder removed it when it was done: another file has the name


def _is_at(path: Path, handle: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(handle))
    return False


def _owner(handle: int) -> str:
    match os.pread(handle, _HINT, 0).decode("utf-8", "replace").split():
        case [process, host] if process.isdecimal() and host.isprintable():
            return f"process {process} on {host}"
    return "another process"
