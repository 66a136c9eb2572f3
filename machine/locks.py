"""Exclusive locks of the kernel, which always end with the process.

The content of a lock file only tells users who holds it, so an empty or torn file, or one of
another machine, does no harm.
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

from vizpub.model.progress import announce_wait

OF_SPARK = "work"
"""The kind of folders of Spark's temporary files."""
OF_STDIN = "stdin"
"""The kind of folders of standard input."""
OF_IMPORTS = "staging"
"""The kind of folders of files to import into Neo4j."""
SWEPT_S = 0.5
"""The time to wait for a lock: a sweep takes it for a moment, to see whether it is held."""
_AGAIN_S = 0.01
_HINT = 200
"""Most bytes of a lock file that are read."""


@dataclass
class LockHeld(Exception):
    """Another process has the lock."""

    owner: str
    """The holder as text, from the lock file."""


def lock_of(path: Path) -> Path:
    """Return the lock of a file or folder: beside it, as the holder may remove the folder."""
    return path.with_name(f".{path.name}.lock")


@contextmanager
def holding(path: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock of that file during the block, and remove the file.

    Raises: LockHeld if another process, or this one, still holds it after `wait_s`; OSError if the
    file cannot be created, or its file system has no locks.
    """
    handle = _open_locked(path, time.monotonic() + wait_s)
    try:
        with suppress(OSError):  # a full disk has room for no hint
            os.truncate(handle, 0)
            os.write(handle, f"{os.getpid()} {os.uname().nodename}\n".encode())
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # while it is ours: see _open_locked
        os.close(handle)


@contextmanager
def hold_file_lock(path: Path, use: str) -> Iterator[None]:
    """Hold a lock that all processes wait for; `use` names what another one does meanwhile.

    Raises: OSError.
    """
    from filelock import FileLock

    lock = FileLock(path)
    with announce_wait(f"another process that {use}"):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def own_folder(parent: Path, kind: str) -> Iterator[Path]:
    """Yield a new folder in `parent` that exists during the block, for this user alone; its name
    begins with the kind. Folders of that kind whose processes have ended are removed first.
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
        with suppress(LockHeld, OSError), holding(lock_of(folder)):
            rmtree(folder, ignore_errors=True)


def find_holder(lock: Path) -> str:
    """Return the process that holds a lock; empty if none does. Raises: OSError where this user
    may not know.
    """
    if os.path.lexists(lock):  # a lock that nobody takes is not created
        try:
            with holding(lock):
                pass
        except LockHeld as error:
            return error.owner
    return ""


def with_locks(parent: Path, pattern: str) -> list[Path]:
    """Return the paths in `parent` that match a pattern, also those with only a lock left."""
    locks = (path.name[1:].removesuffix(".lock") for path in parent.glob(f".{pattern}.lock"))
    names = (path.name for path in parent.glob(pattern) if not path.name.startswith("."))
    return [parent / name for name in sorted({*locks, *names})]


def _open_locked(path: Path, until: float) -> int:
    """Open a lock file, and lock it. Raises: LockHeld after a time; OSError."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(path.lstat(), os.fstat(handle)):
                    return handle
        except BlockingIOError:
            owner = _owner(handle)
            os.close(handle)
            if time.monotonic() >= until:
                raise LockHeld(owner) from None
            time.sleep(_AGAIN_S)
            continue
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder has removed it: the name is free, or another file's


def _owner(handle: int) -> str:
    match os.pread(handle, _HINT, 0).decode("utf-8", "replace").split():
        case [process, host] if process.isdecimal() and host.isprintable():
            return f"process {process} on {host}"
    return "another process"
