"""Reads packed files once, part by part, in turns with other files.

The content at some position of a packed file is known only when all before it is decompressed. So
the state of decompression is kept, but no file stays open: there may be more files than a process
can open.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO

from vizpub.reports.compressed import Content, LongLine, Readable, lines

MOST_LINE = 2**20
_PART = 1 << 16
"""Bytes of content, or some more, to decompress before they are taken."""
_BLOCK = 1 << 14
_AGAIN = 4
"""A growing file is decompressed again after so many times the duration of the last time: so a file
that grows in small steps takes a fifth of a thread, and not more with each step.
"""


def is_packed(path: Path) -> bool:
    """Return True if a file has to be decompressed."""
    return path.suffix in (".gz", ".zst")


class FileTail:
    """The content of a file from some byte on."""

    missing = 0
    """The bytes by which the content ends before that byte."""
    damage: str | None = None
    """The reason why it cannot be decompressed to its end. An incomplete file has none."""

    def __init__(self, file: Readable, start: int) -> None:
        self._file, self._start = file, start

    def __iter__(self) -> Iterator[bytes]:
        content, skip = Content(self._file), self._start
        for chunk in content:
            if rest := chunk[skip:]:
                yield rest
            skip = max(skip - len(chunk), 0)
        self.missing = skip
        if content.damage and content.damage.startswith("damaged gzip"):
            self.damage = content.damage


class PlainFileTail(FileTail):
    """The content of a plain file from some byte on."""

    def __init__(self, file: BinaryIO, start: int) -> None:
        super().__init__(file, start)
        self.missing = max(start - file.seek(0, SEEK_END), 0)
        file.seek(start)

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._file.read(_PART):
            yield chunk


class PackedLines:
    """The lines of a packed file from some byte of its content on."""

    def __init__(self, path: Path, start: int) -> None:
        status = path.stat()
        self._path, self._identity = path, (status.st_dev, status.st_ino)
        self._file = _ReopenedFile(path)
        self._rest = FileTail(self._file, start)
        self._lines = lines(self._rest, MOST_LINE)
        self._seconds = 0.0
        self._end = start
        self.waiting: deque[tuple[bytes, int]] = deque()
        """Lines that are not taken yet, each with the bytes of the content up to its end."""
        self.taken = start
        """The bytes of the content up to the end of the last taken line."""
        self.is_over = False
        """True if no line follows the waiting ones, unless the file changes."""
        self.again = 0.0
        """The time from which on it may be read again, by the monotonic clock."""

    def is_of(self, status: os.stat_result) -> bool:
        """Return True if the file with this status is the one that is being read."""
        return self._identity == (status.st_dev, status.st_ino)

    @property
    def missing(self) -> int:
        """The bytes by which the content ends before the start."""
        return self._rest.missing

    @property
    def damage(self) -> str | None:
        """The reason why the content cannot be decompressed to its end, or null."""
        return self._rest.damage

    @property
    def size(self) -> int:
        """The bytes of the file that have been read; those behind damage count, too."""
        return self._path.stat().st_size if self.damage else self._file.at

    def read(self) -> None:
        """Read more lines into `waiting`. Call it in a thread: it takes long. Raises: OSError."""
        began, size = time.monotonic(), 0
        for line, is_whole in self._lines:
            if not is_whole:
                break
            length = (line.size if isinstance(line, LongLine) else len(line)) + 1
            size, self._end = size + length, self._end + length
            self.waiting.append((line, self._end))
            if size > _PART:
                break
        else:
            is_whole = False
        self._seconds += time.monotonic() - began
        if not is_whole:
            self.is_over, self.again = True, time.monotonic() + _AGAIN * self._seconds

    def is_read(self) -> bool:
        """Return True if all lines of the file are taken."""
        return self.is_over and not self.waiting

    def take(self) -> None:
        """Remove the first waiting line."""
        self.taken = self.waiting.popleft()[1]

    def close(self) -> None:
        """Stop a thread that reads."""
        self._file.is_closed = True


class _ReopenedFile:
    """A file that is open only while something of it is read."""

    is_closed = False

    def __init__(self, path: Path) -> None:
        self._path, self.at = path, 0

    def read(self, size: int, /) -> bytes:
        if self.is_closed:
            raise OSError("it is not read any more")  # ends `PackedLines.read` in its thread
        with self._path.open("rb") as file:
            file.seek(self.at)
            content = file.read(min(size, _BLOCK))
        self.at += len(content)
        return content
