"""A file of lines that wait to be sent. Standard library only."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

ANOTHER_REPORTER = "another reporter has the spool"

_MOST_LINE = 2**20
"""Bytes of a line that a collector takes."""
_BLOCK = 2**20
"""Bytes that are read at once."""


class Spool:
    """A file of lines, first in, first out. Lines are removed once all of the file is sent: after
    a kill some are sent twice, and none is lost. For several threads of one process.

    Raises: BlockingIOError if another process has the file; OSError.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise BlockingIOError(f"{ANOTHER_REPORTER} {path}") from None
        self._lock = Lock()
        size = os.fstat(self._file).st_size
        tail = max(size - _MOST_LINE, 0)  # a kill may have left half a line
        self._size = tail + os.pread(self._file, _MOST_LINE, tail).rfind(b"\n") + 1
        os.ftruncate(self._file, self._size)
        self._taken = self._sent = 0

    @property
    def is_empty(self) -> bool:
        """True if all reports were taken and sent."""
        return self._sent == self._size

    @property
    def has_more(self) -> bool:
        """True if there are reports to take."""
        return self._taken < self._size

    def add(self, lines: Iterable[bytes]) -> None:
        """Add lines without a sync: a power cut may lose the last ones.

        Raises: OSError, for example on a full disk; then none of them is added.
        """
        rest = memoryview(b"".join(line + b"\n" for line in lines))
        with self._lock:
            end = self._size
            try:
                while rest:
                    count = os.pwrite(self._file, rest, end)
                    rest, end = rest[count:], end + count
            except OSError:
                os.ftruncate(self._file, self._size)
                raise
            self._size = end

    def take(self, count: int) -> list[bytes]:
        """Take the next lines."""
        size = _BLOCK
        with self._lock:
            while True:
                content = os.pread(self._file, min(size, self._size - self._taken), self._taken)
                lines = content.split(b"\n")[:-1][:count]
                if lines or len(content) < size:
                    break
                size *= 2  # a line is longer than that
            self._taken += sum(map(len, lines)) + len(lines)
        return lines

    def put_back(self) -> None:
        """Put back what was taken and not confirmed."""
        with self._lock:
            self._taken = self._sent

    def confirm(self) -> None:
        """Confirm that all that was taken is acknowledged."""
        with self._lock:
            self._sent = self._taken
            if self._sent == self._size:
                os.ftruncate(self._file, 0)
                self._taken = self._sent = self._size = 0

    def close(self) -> None:
        """Close the file, which keeps its lines."""
        os.close(self._file)
