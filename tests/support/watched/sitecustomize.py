"""Watches what Python code runs and which files of the project are opened, test by test.

Python imports a module of this name as it starts. Every process that a recorded run of the tests
starts finds it on PYTHONPATH: commands, collectors, workers of Spark. `VIZPUB_WATCHED` names a
folder with two files: `now`, the number of the running test, mapped into the memory of all
processes, and `seen`, to which each of them adds lines of `number<TAB>path`.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = str(Path(__file__).resolve().parents[3]) + os.sep
NOT_OURS = tuple(
    ROOT + name
    for name in (
        *(".venv", ".git", ".long", ".pytest_cache", ".hypothesis"),
        "tests/support/record.py",
    )
)
"""What lies below the root and is none of the project, and what runs around every test."""
LISTED = ("os.listdir", "os.scandir")


class Watcher:
    """What this process touches of the project, written down when it is first seen in a test."""

    def __init__(self, folder: Path) -> None:
        place = folder / "now"
        if not place.exists():
            place.write_bytes(bytes(4))
        with place.open("r+b") as file:
            self.now = memoryview(mmap.mmap(file.fileno(), 4)).cast("I")
        """One number: that of the running test."""
        lines = os.open(folder / "seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        # Tests close the streams of a process, and see which number the next file gets.
        self._lines = fcntl.fcntl(lines, fcntl.F_DUPFD_CLOEXEC, 60)
        os.close(lines)
        self._number = 0
        self._paths: set[str] = set()

    def start(self) -> None:
        """From now on; it cannot be stopped."""
        sys.addaudithook(self._audit)
        trace = self._tracer()
        threading.settrace(trace)
        sys.settrace(trace)

    def _tracer(self) -> Callable[[FrameType, str, Any], None]:
        """What is called with each function; what it needs is at hand, as this is dear.

        A module is known by its globals: to ask for a frame's code would be an event of its own.
        """
        now, touch, number = self.now, self._touch, 0
        seen: set[int] = set()

        def trace(frame: FrameType, _event: str, _argument: Any) -> None:
            nonlocal number
            module = id(frame.f_globals)
            if module in seen and now[0] == number:
                return
            if now[0] != number:
                number = now[0]
                seen.clear()
            seen.add(module)
            touch(str(frame.f_globals.get("__file__")))

        return trace

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            self._touch(os.path.abspath(os.fsdecode(arguments[0])))
        elif event in LISTED and isinstance(arguments[0], (str, bytes, os.PathLike)):
            self._touch(os.path.abspath(os.fsdecode(arguments[0])) + os.sep)

    def _touch(self, path: str) -> None:
        if self.now[0] != self._number:
            self._number = self.now[0]
            self._paths.clear()
        if path not in self._paths:
            self._paths.add(path)
            if path.startswith(ROOT) and not path.startswith(NOT_OURS):
                with suppress(OSError):  # a test of a full disk
                    line = f"{self._number}\t{_without_links(path).removeprefix(ROOT)}\n"
                    os.write(self._lines, line.encode())


@cache
def _without_links(path: str) -> str:
    """A file's own path: the packages in vizpub/ are links. A folder's ends in a slash."""
    return os.path.realpath(path) + os.sep * path.endswith(os.sep)


if folder := os.environ.get("VIZPUB_WATCHED"):
    Watcher(Path(folder)).start()
