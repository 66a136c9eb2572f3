"""Packed files that are read once, part by part, though others go on between two parts.

What a packed file has at some place shows only when all before it is decompressed. So the state of
its decompression is kept, and no file stays open: there may be more files than a process may open.
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
"""Bytes of content that are decompressed before anything of them is taken, or some more."""
_BLOCK = 1 << 14
_AGAIN = 4
"""A file that grows is decompressed anew, after so many times what it took before: growing in small
steps, it takes a fifth of a thread, not more from step to step.
"""


def is_packed(path: Path) -> bool:
    """Return True if a file has to be decompressed."""
    return path.suffix in (".gz", ".zst")


class FileTail:
    """The content of a file from some byte on."""

    missing = 0
    """Bytes by which the content ends before that byte."""
    damage: str | None = None
    """Why it cannot be decompressed to its end. One that is not whole yet has none."""

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
    """The same of a file that is not packed."""

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
        self._file = _Reopened(path)
        self._rest = FileTail(self._file, start)
        self._lines = lines(self._rest, MOST_LINE)
        self._seconds = 0.0
        self._end = start
        self.waiting: deque[tuple[bytes, int]] = deque()
        """Lines that are not taken yet, each with the bytes of the content up to its end."""
        self.taken = start
        """Bytes of the content up to the end of the last line that is taken."""
        self.is_over = False
        """No line comes behind those that wait, as long as the file stays as it is."""
        self.again = 0.0
        """From when on it may be read anew, by the steady clock."""

    def is_of(self, status: os.stat_result) -> bool:
        """Return True if the file with this status is the one that is read here."""
        return self._identity == (status.st_dev, status.st_ino)

    @property
    def missing(self) -> int:
        """Bytes by which the content ends before the start."""
        return self._rest.missing

    @property
    def damage(self) -> str | None:
        """The reason why the content cannot be decompressed to its end, or null."""
        return self._rest.damage

    @property
    def size(self) -> int:
        """Bytes of the file, as far as it was read; what is behind damage counts."""
        return self._path.stat().st_size if self.damage else self._file.at

    def read(self) -> None:
        """Read more lines into `waiting`. It takes long: call it in a thread. Raises: OSError."""
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
        """Remove the first line that waits."""
        self.taken = self.waiting.popleft()[1]

    def close(self) -> None:
        """Make a thread that reads stop."""
        self._file.is_closed = True


class _Reopened:
    """A file that is open only while something of it is read."""

    is_closed = False

    def __init__(self, path: Path) -> None:
        self._path, self.at = path, 0

    def read(self, size: int, /) -> bytes:
        if self.is_closed:
            raise OSError("it is read no more")
        with self._path.open("rb") as file:
            file.seek(self.at)
            content = file.read(min(size, _BLOCK))
        self.at += len(content)
        return content
