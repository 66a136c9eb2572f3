"""Class data sharing: what Java made of the classes that Spark loads, kept for the next start.

Half of a small run's processor time goes into loading, checking and linking some 15,000 classes;
Java can map them from an archive instead. The first session of a kind writes down what it loads.
When its Java has ended, another process makes the archive of it, at a low priority and with
nobody waiting. Whatever goes wrong, the next session starts as the first did.

As a script: `class_data.py FOLDER LIST PID JAVA…`, with the Java process that writes the list.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

_WORTH = 12_000
"""Classes of a session that ran a job, at least; an ingest loads 19,000."""
_KEPT = 3
"""Kinds of sessions whose archives are kept, at some 200 MB each."""
_ROOM_BYTES = 1_000_000_000
_MAKING_S = 1800
_POLL_S = 0.2
_ARCHIVES = "classes-*.jsa"
"""With its size in bytes."""
_LISTS = "*.classes"
_CRASH = "crash.log"
_QUIET = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
"""An archive that does not fit is passed over in silence."""


@dataclass(frozen=True)
class ClassData:
    """The archive of one kind of session, in a folder named by all that it depends on."""

    folder: Path
    java: tuple[str, ...]
    """The Java command with its flags, without a main class."""

    def flags(self) -> list[str]:
        """What Java is told: to use the archive, or to list what it should hold, or nothing."""
        if archive := find_archive(self.folder):
            with suppress(OSError):
                os.utime(self.folder)  # see _sweep
            # Of a damaged one it may die, and would say so in a file where the user works.
            crash = f"-XX:ErrorFile={self.folder / _CRASH}"
            return [f"-XX:SharedArchiveFile={archive}", crash, *_QUIET]
        try:
            number, listed = mkstemp(_LISTS[1:], dir=self.folder)
        except OSError:
            return []
        os.close(number)
        return [f"-XX:DumpLoadedClassList={listed}"]

    def make_after(self, process: subprocess.Popen[bytes], flags: Sequence[str]) -> None:
        """Once this process and that one of those flags are over, have the archive made."""
        for flag in flags:
            name, _, listed = flag.partition("=")
            if name == "-XX:DumpLoadedClassList":
                atexit.register(self._begin_making, process.pid, listed)

    def forget(self) -> None:
        """Take the archive away: Java did not start with it."""
        with suppress(OSError):
            for path in (*self.folder.glob(_ARCHIVES), *self.folder.glob(_CRASH)):
                path.unlink()

    def _begin_making(self, pid: int, listed: str) -> None:
        # -P: what lies beside this file is no package of the script's.
        script = [sys.executable, "-P", __file__, str(self.folder), listed, str(pid)]
        with suppress(OSError):
            making = subprocess.Popen(
                [*script, *self.java],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            making.returncode = 0  # nobody waits for it, and Popen is not to warn of that


def find_archive(folder: Path) -> Path | None:
    """The archive that Java maps, if it is whole: of one cut short Java may die."""
    for path in folder.glob(_ARCHIVES):
        with suppress(OSError):
            if path.name == _named_by_size(path):
                return path
    return None


def _named_by_size(path: Path) -> str:
    return _ARCHIVES.replace("*", str(path.stat().st_size))


def make(folder: Path, listed: Path, java: Sequence[str]) -> None:
    """Make a folder's archive of a list of classes, unless it is there or being made."""
    from filelock import FileLock, Timeout

    new = folder / "classes.new"
    with suppress(OSError, subprocess.SubprocessError, Timeout), FileLock(folder / ".lock", 0):
        try:
            if not find_archive(folder) and _is_worth(listed):
                _dump(new, listed, java)
                new.replace(folder / _named_by_size(new))
                _sweep(folder.parent)
        finally:
            # Lists of processes that were killed go too; one that is written still is lost.
            for path in (new, *folder.glob(_LISTS)):
                path.unlink(missing_ok=True)


def _is_worth(listed: Path) -> bool:
    with listed.open("rb") as lines:
        return sum(1 for _ in lines) >= _WORTH and _has_room(listed.parent)


def _has_room(folder: Path) -> bool:
    return shutil.disk_usage(folder).free >= _ROOM_BYTES


def _dump(new: Path, listed: Path, java: Sequence[str]) -> None:
    """An archive that is whole, on the disk, and taken by that Java."""
    new.unlink(missing_ok=True)
    of_file = f"-XX:SharedArchiveFile={new}"
    _run([*java, "-Xshare:dump", f"-XX:SharedClassListFile={listed}", of_file])
    _run([*java, "-Xshare:on", of_file, "-version"])
    with new.open("rb") as file:
        os.fsync(file.fileno())


def _run(command: Sequence[str]) -> None:
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_MAKING_S,
        check=True,
    )


def _sweep(kinds: Path) -> None:
    """Remove the kinds that were used least lately; a Java that maps one goes on with it."""
    newest = sorted(kinds.iterdir(), key=lambda kind: kind.stat().st_mtime, reverse=True)
    for kind in newest[_KEPT:]:
        shutil.rmtree(kind, ignore_errors=True)


def _wait_for(pid: int) -> None:
    import psutil

    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_POLL_S)


if __name__ == "__main__":
    os.nice(10)
    _wait_for(int(sys.argv[3]))
    make(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[4:])
