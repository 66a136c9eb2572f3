"""Reads files of reports in a folder, complete ones and those that are still being written.

The log has the position in each file together with the lines up to it, so nothing is read twice. A
file that is too far ahead of others waits, while HTTP would refuse its report. So the files of many
peers, each with its whole history, are read side by side.

`vizpub.collector.inputs.watched` reads traces of gossipsub.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.inputs.packed import (
    MOST_LINE,
    FileTail,
    PackedLines,
    PlainFileTail,
    is_packed,
)
from vizpub.collector.intake import Intake
from vizpub.collector.log.log import LogFailed
from vizpub.model.errors import InputError, cause_of
from vizpub.reports.compressed import LongLine, lines

CUT = "it was truncated, and is read again from its beginning"

_LOOK_S = 0.5
_CHUNK = 256 * 2**10
"""Bytes to read of a file in a turn."""
_ENDINGS = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz", ".ndjson.zst", ".jsonl.zst")
_TRACES = (".pb", ".pb.gz", ".json", ".json.gz")
_OF_EVENT = (b'"type"', b'"peerID"', b'"timestamp"')
"""Texts in every line of a trace. The decoder of traces imports Spark, so it is not used here."""
_SHOWN = 3
_PATIENCE_S = 15.0
"""The time that files may wait for reports of others before a message says so."""


@dataclass(frozen=True)
class _FileLine:
    interval: int
    """The interval of the report; for another line that of the report before it in the file."""
    path: str
    end: int
    """The bytes of the file's content up to the end of the line."""
    line: bytes


class FolderInput:
    """Follows the files below a folder."""

    def __init__(
        self,
        folder: Path,
        intake: Intake,
        say: Callable[[str], None],
        web: HttpInterface,
        on_trace: Callable[[], None],
    ) -> None:
        """Begin. `web` decides if reports are accepted now; `on_trace` is called for traces."""
        self._folder, self._intake, self._say = folder.absolute(), intake, say
        self._collections = intake.place.folder.parent.absolute()
        self._has_room, self._on_trace = web.has_room, on_trace
        self._sizes: dict[str, int] = {}
        """The sizes of files that have been read to their ends."""
        self._packed: dict[str, PackedLines] = {}
        """The packed files that are being read."""
        self._unread: dict[Path, str] = {}
        """Files that could not be read, with the reasons."""
        self._truncated: set[str] = set()
        """Files that end before the position up to which they were read."""
        self._ahead: dict[Path, str] = {}
        """Files that wait, with the reasons."""
        self._patience: float | None = None
        """The time at which a message says that all wait; null = something was read."""

    async def follow(self) -> None:
        """Read until the run has ended."""
        try:
            while not self._intake.ended:
                if not await self.turn():
                    await asyncio.sleep(_LOOK_S)
            await asyncio.Event().wait()  # a collector stops when one of its inputs ends
        finally:
            for packed in self._packed.values():
                packed.close()

    async def turn(self) -> int:
        """Take the next part of every file, by interval. Returns the number of files."""
        if not self._has_room():
            return 0
        file_lines: list[_FileLine] = []
        self._ahead.clear()
        for path in self._files():
            try:
                file_lines += (
                    await self._read_packed(path) if is_packed(path) else self._read_plain(path)
                )
                self._unread.pop(path, None)
            except OSError as error:  # it was removed meanwhile, or is another user's
                self._skip(path, cause_of(error))
            await asyncio.sleep(0)
        file_lines.sort(key=lambda one: one.interval)
        self._tell_waiting(is_read=bool(file_lines))
        positions = dict.fromkeys(self._truncated, 0)
        if not file_lines and not positions:
            return 0
        for one in file_lines:
            positions[one.path] = max(one.end, positions.get(one.path, 0))
        try:
            acceptance = await self._intake.take(
                [one.line for one in file_lines], positions, may_end=True
            )
        except LogFailed:  # the collector reports it
            self._packed.clear()  # they were read further than the log
            self._sizes = {
                name: size for name, size in self._sizes.items() if name not in positions
            }
            return 0
        self._truncated.clear()
        for why in acceptance.refusals[:_SHOWN]:
            one = file_lines[why["line"] - 1]
            self._say(f"{one.path}: the line before byte {one.end:,} is refused: {why['reason']}")
        return len(positions)

    def _files(self) -> list[Path]:
        paths: list[Path] = []
        with suppress(OSError):  # a folder in it was removed meanwhile
            paths = sorted(path for path in self._folder.rglob("*") if path.name[0] != ".")
        if any(path.name.endswith(_TRACES) for path in paths):
            self._on_trace()
        # Batches are files of reports, too, and each would be read into the next one.
        of_reports = (path for path in paths if path.name.endswith(_ENDINGS))
        return [path for path in of_reports if not path.is_relative_to(self._collections)]

    def _skip(self, path: Path, why: str) -> None:
        if self._unread.get(path) != why:
            self._say(f"{path} cannot be read: {why}")
        self._unread[path] = why

    def _tell_waiting(self, *, is_read: bool) -> None:
        """Say that a file waits if no file could be read for some time."""
        now = time.monotonic()
        if is_read or not self._ahead:
            self._patience = None
        elif self._patience is None:
            self._patience = now + _PATIENCE_S
        elif now >= self._patience:
            path, why = next(iter(self._ahead.items()))
            self._say(f"{path} waits: {why}")
            self._patience = math.inf

    def _read_plain(self, path: Path) -> list[_FileLine]:
        """Read the next complete lines of a file, up to one that must wait."""
        name = str(path)
        if not path.is_file() or self._sizes.get(name) == (size := path.stat().st_size):
            return []
        start = end = self._intake.positions.get(name, 0)
        if not start and _is_trace(path):
            self._on_trace()
            self._sizes[name] = size
            return []
        file_lines: list[_FileLine] = []
        with path.open("rb") as file:
            rest = PlainFileTail(file, start)
            for line, is_whole in lines(rest, MOST_LINE):
                if not is_whole:
                    break
                if end - start > _CHUNK:
                    return file_lines
                end += (line.size if isinstance(line, LongLine) else len(line)) + 1
                if not self._add_line(file_lines, path, end, line):
                    return file_lines
        if rest.missing:
            return self._restart(path, start)
        if not file_lines:
            self._sizes[name] = size
        return file_lines

    async def _read_packed(self, path: Path) -> list[_FileLine]:
        """Read a packed file like `_read_plain`, and decompress it in a thread."""
        name, start = str(path), self._intake.positions.get(str(path), 0)
        if (packed := await self._packed_lines(path, start)) is None:
            return []
        file_lines: list[_FileLine] = []
        while packed.taken - start <= _CHUNK:
            if not packed.waiting and not packed.is_over:
                await asyncio.to_thread(packed.read)
            if not packed.waiting:
                break
            line, end = packed.waiting[0]
            if not self._add_line(file_lines, path, end, line):
                return file_lines
            packed.take()
        if packed.is_read():
            if packed.missing:
                return self._restart(path, start)
            self._sizes[name] = packed.size
            if packed.damage:
                self._skip(path, packed.damage)
        return file_lines

    def _add_line(self, file_lines: list[_FileLine], path: Path, end: int, line: bytes) -> bool:
        """Add the next line of a file. Returns False if it must wait."""
        try:
            interval = self._intake.check_horizon(line)
        except InputError as why:
            self._ahead[path] = str(why)
            return False
        if interval is None:
            interval = file_lines[-1].interval if file_lines else 0
        file_lines.append(_FileLine(interval, str(path), end, line))
        return True

    async def _packed_lines(self, path: Path, start: int) -> PackedLines | None:
        """Return the lines of a packed file from a byte on; null if there are none yet."""
        name = str(path)
        if not path.is_file() or self._sizes.get(name) == (status := path.stat()).st_size:
            return None
        packed = self._packed.get(name)
        if packed and packed.is_of(status):
            if packed.taken == start and not packed.is_read():
                return packed
            if status.st_size > packed.size and time.monotonic() < packed.again:
                return None
        if not start and await asyncio.to_thread(_is_trace, path):
            self._on_trace()
            self._sizes[name] = status.st_size
            return None
        self._packed[name] = PackedLines(path, start)
        return self._packed[name]

    def _restart(self, path: Path, start: int) -> list[_FileLine]:
        """Read a file again from its beginning, because it ends before the position in the log."""
        self._say(f"{path} ends before byte {start:,}: {CUT}")
        self._truncated.add(str(path))
        self._packed.pop(str(path), None)
        return []


def _is_trace(path: Path) -> bool:
    """Return True if the first line is one of a trace."""
    with path.open("rb") as file:
        line, is_whole = next(lines(FileTail(file, 0), MOST_LINE), (b"", False))
        return is_whole and all(field in line for field in _OF_EVENT)
