"""Class data sharing: an archive of the classes that a program loads, for a faster next start.

Loading, checking and linking some 15,000 classes takes half of the start of Spark or Neo4j; Java
can map them from an archive instead. The first process of a kind writes a list of its classes.
After its end another process makes the archive in the background, at low priority. If that fails,
the next process starts like the first.

As a script: `class_data.py FOLDER LIST PID JAVA…`, with the Java process that writes the list.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vizpub.machine.jvm.java import Java

_WORTH = 12_000
"""Classes of what did some work, at least: a session of Spark that ran a job, a Neo4j server."""
_KEPT = 3
"""Kinds of one program whose archives are kept, at some 150 to 200 MB each."""
_LONGEST = 4_000
"""Characters of a line that Java reads again of what it wrote itself."""
_ROOM_BYTES = 1_000_000_000
_MAKING_S = 1800
_POLL_S = 0.2
_ARCHIVES = "classes-*.jsa"
"""With its size in bytes."""
_LISTS = "*.classes"
_LIST = "-XX:DumpLoadedClassList="
_ARCHIVE = "-XX:SharedArchiveFile="
_CAREFUL = ("-XX:+VerifySharedSpaces", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
"""An archive that is damaged or does not fit is passed over in silence; by checksums, which takes
0.1 s."""
_JAVA_READS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")


@dataclass(frozen=True)
class ClassData:
    """The archive of one kind of process, in a folder named by all that it depends on."""

    folder: Path
    java: tuple[str, ...]
    """The Java command with its flags and class path, without a main class."""

    def flags(self) -> list[str]:
        """Java flags to use the archive, or to list classes for it; empty if neither can be."""
        return self.mapped() or self._listing()

    def mapped(self) -> list[str]:
        """Java flags to use the archive; empty where there is none."""
        if archive := find_archive(self.folder):
            with suppress(OSError):
                os.utime(self.folder)  # see _sweep
            return [f"{_ARCHIVE}{archive}", *_CAREFUL]
        return []

    def _listing(self) -> list[str]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            number, listed = mkstemp(_LISTS[1:], dir=self.folder)
        except OSError:
            return []
        os.close(number)
        return [f"{_LIST}{listed}"]

    def make_after(self, pid: int, words: Sequence[str], *, at_exit: bool = False) -> None:
        """Once the process of that command is over, have the archive made of what it listed.

        `at_exit`: once this process is over, too.
        """
        for word in words:
            if word.startswith(_LIST):
                begin = partial(self._begin_making, pid, word.removeprefix(_LIST))
                atexit.register(begin) if at_exit else begin()

    def forget(self) -> None:
        """Take the archive away: Java did not start with it."""
        with suppress(OSError):
            for path in self.folder.glob(_ARCHIVES):
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
            making.returncode = 0  # never waited for; without this, Popen would warn


def is_listed(words: Iterable[str]) -> bool:
    """True if the command writes a list of its classes."""
    return any(word.startswith(_LIST) for word in words)


def kind_of(java: Java, words: Iterable[str], jars: Iterable[Path]) -> str:
    """A name for all that a command, and the classes it loads, depend on."""
    facts = "\0".join(_facts(java, words, jars))
    return hashlib.sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _facts(java: Java, words: Iterable[str], jars: Iterable[Path]) -> Iterator[str]:
    yield from (str(java.executable), java.version, *words)
    yield from (os.environ.get(name, "") for name in _JAVA_READS)
    # As Java does: jars in their order, the same as long as they are not touched.
    for path in (*(java.home / "lib").iterdir(), *jars):
        if path.is_file():
            facts = path.stat()
            yield f"{path} {facts.st_size} {facts.st_mtime_ns}"


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
        long = sum(1 for _ in lines) >= _WORTH
    return long and shutil.disk_usage(listed.parent).free >= _ROOM_BYTES


def _dump(new: Path, listed: Path, java: Sequence[str]) -> None:
    """An archive that is whole, on the disk, and taken by that Java."""
    new.unlink(missing_ok=True)
    lines = listed.read_bytes().splitlines(keepends=True)
    listed.write_bytes(b"".join(line for line in lines if len(line) < _LONGEST))
    of_file = f"{_ARCHIVE}{new}"
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
    """Remove the least recently used kinds; a running Java keeps its mapped archive."""
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
