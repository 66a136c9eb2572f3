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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vizpub.machine.jvm.java import Java

_WORTH = 12_000
"""Least classes of a process that did some work: a Spark session that ran a job, a Neo4j server."""
_KEPT = 3
"""Kinds of one program whose archives are kept, at some 150 to 200 MB each."""
_LONGEST = 4_000
"""Characters of a line in its own list that Java can read again."""
_ROOM_BYTES = 1_000_000_000
_MAKING_S = 1800
_POLL_S = 0.2
_ARCHIVES = "classes-*.jsa"
"""With its size in bytes."""
_LISTS = "*.classes"
_LIST = "-XX:DumpLoadedClassList="
_ARCHIVE = "-XX:SharedArchiveFile="
_CAREFUL = ("-XX:+VerifySharedSpaces", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
"""Flags to ignore a damaged or unsuitable archive silently. Its checksums take 0.1 s."""
_JAVA_READS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")


@dataclass(frozen=True)
class ClassData:
    """The archive of one kind of process, in a folder named after what it depends on."""

    folder: Path
    java: tuple[str, ...]
    """The Java command with its flags and class path, without a main class."""

    def flags(self) -> list[str]:
        """Return Java flags to use the archive, or to list classes for it; or nothing."""
        if flags := self.mapping_flags():
            return flags
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            number, listed = mkstemp(_LISTS[1:], dir=self.folder)
        except OSError:
            return []
        os.close(number)
        return [f"{_LIST}{listed}"]

    def mapping_flags(self) -> list[str]:
        """Return Java flags to use the archive; empty if there is none."""
        if archive := find_archive(self.folder):
            with suppress(OSError):
                os.utime(self.folder)  # see `make`
            return [f"{_ARCHIVE}{archive}", *_CAREFUL]
        return []

    def make_after(self, pid: int, words: Sequence[str], *, at_exit: bool = False) -> None:
        """Have the archive made from the list of that command once its process has ended.

        `at_exit`: and once this process has ended, too.
        """
        for word in words:
            if word.startswith(_LIST):
                begin = partial(self._begin_making, pid, word.removeprefix(_LIST))
                atexit.register(begin) if at_exit else begin()

    def forget(self) -> None:
        """Remove the archive, because Java did not start with it."""
        with suppress(OSError):
            for path in self.folder.glob(_ARCHIVES):
                path.unlink()

    def _begin_making(self, pid: int, listed: str) -> None:
        # -P: the script must not import the modules beside it as top-level ones.
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
            making.returncode = 0  # nobody waits for it; without this, Popen would warn


def is_listed(words: Iterable[str]) -> bool:
    """Return True if a command writes a list of its classes."""
    return any(word.startswith(_LIST) for word in words)


def kind_of(java: Java, words: Iterable[str], jars: Iterable[Path]) -> str:
    """Return a digest of all that a command, and the classes that it loads, depend on."""
    facts = [str(java.executable), java.version, *words]
    facts += (os.environ.get(name, "") for name in _JAVA_READS)
    # Like Java: jars in their order, the same as long as they are not touched.
    for path in (*(java.home / "lib").iterdir(), *jars):
        if path.is_file():
            status = path.stat()
            facts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def find_archive(folder: Path) -> Path | None:
    """Return the archive that Java maps, if it is whole: a truncated one may crash Java."""
    for path in folder.glob(_ARCHIVES):
        with suppress(OSError):
            if path.name == _name_with_size(path):
                return path
    return None


def _name_with_size(path: Path) -> str:
    return _ARCHIVES.replace("*", str(path.stat().st_size))


def make(folder: Path, listed: Path, java: Sequence[str]) -> None:
    """Make a folder's archive from a list of classes, unless it exists or is being made. Then
    remove the archives used least recently; a running Java keeps the one that it has mapped.
    """
    from filelock import FileLock, Timeout

    new = folder / "classes.new"
    with suppress(OSError, subprocess.SubprocessError, Timeout), FileLock(folder / ".lock", 0):
        try:
            with listed.open("rb") as lines:
                is_worth = sum(1 for _ in lines) >= _WORTH
            has_room = shutil.disk_usage(folder).free >= _ROOM_BYTES
            if is_worth and has_room and not find_archive(folder):
                _dump(new, listed, java)
                new.replace(folder / _name_with_size(new))
                _remove_unused(folder.parent)
        finally:
            # Also removes lists of killed processes, and those that are still being written.
            for path in (new, *folder.glob(_LISTS)):
                path.unlink(missing_ok=True)


def _remove_unused(kinds: Path) -> None:
    """Remove the kinds that were last used before the newest archives were."""
    used = {kind: kind.stat().st_mtime for kind in kinds.iterdir()}
    of_archives = sorted(used[kind] for kind in used if find_archive(kind))
    for kind, time_used in used.items():
        if time_used < of_archives[-_KEPT:][0]:
            shutil.rmtree(kind, ignore_errors=True)


def _dump(new: Path, listed: Path, java: Sequence[str]) -> None:
    """Write an archive that is whole, synced, and accepted by that Java."""
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


if __name__ == "__main__":
    import psutil

    os.nice(5)
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(sys.argv[3]))
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_POLL_S)
    make(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[4:])
