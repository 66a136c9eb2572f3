"""Files of reports in a folder, whole ones and those that are still written.

How far each file is read is in the log, together with what was read: nothing is taken twice. A file
that is read faster than others waits, where HTTP would refuse a report as too far ahead. So the
files of many peers, each with its whole history, enter side by side.

Traces of gossipsub are left to `vizpub.collector.inputs.watched`.
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
from vizpub.model.errors import InputError
from vizpub.reports.compressed import LongLine, lines

CUT = "it was truncated, and is read again from its beginning"

_LOOK_S = 0.5
_CHUNK = 256 * 2**10
"""Bytes of a file that are read in a turn."""
_ENDINGS = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz", ".ndjson.zst", ".jsonl.zst")
_TRACES = (".pb", ".pb.gz", ".json", ".json.gz")
_OF_EVENT = (b'"type"', b'"peerID"', b'"timestamp"')
"""In every line of a trace. What decodes traces imports Spark, so it cannot be asked here."""
_SHOWN = 3
_PATIENCE_S = 15.0
"""That files may wait for reports of others before somebody is told."""


@dataclass(frozen=True)
class _FileLine:
    interval: int
    """Of the report, or of the one before in its file."""
    path: str
    end: int
    """Bytes of the file's content up to the end of the line."""
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
        """`web` says whether reports are taken now; `on_trace` is called where there are traces."""
        self._folder, self._intake, self._say = folder.absolute(), intake, say
        self._collections = intake.place.folder.parent.absolute()
        self._has_room, self._on_trace = web.has_room, on_trace
        self._sizes: dict[str, int] = {}
        """Of files that are read to their end."""
        self._packed: dict[str, PackedLines] = {}
        """Packed files, as far as they are read."""
        self._unread: dict[Path, str] = {}
        """Why files could not be read."""
        self._truncated: set[str] = set()
        """Files that were found to end before what was read of them."""
        self._ahead: dict[Path, str] = {}
        """Why files wait."""
        self._patience: float | None = None
        """Until when all may wait before that is told; null = something was read."""

    async def follow(self) -> None:
        """Take what comes, until the run has ended."""
        try:
            while not self._intake.ended:
                if not await self.turn():
                    await asyncio.sleep(_LOOK_S)
            await asyncio.Event().wait()
        finally:
            for packed in self._packed.values():
                packed.close()

    async def turn(self) -> int:
        """Take the next part of every file, by interval. Returns of how many."""
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
            except OSError as error:  # gone meanwhile, or another user's
                self._skip(path, error.strerror or str(error))
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
        except LogFailed:  # the collector says so
            self._packed.clear()  # they are further than the log
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
        with suppress(OSError):  # a folder in it is gone meanwhile
            paths = sorted(path for path in self._folder.rglob("*") if path.name[0] != ".")
        if any(path.name.endswith(_TRACES) for path in paths):
            self._on_trace()
        # Batches are files of reports, too: each would be read into the next one.
        of_reports = (path for path in paths if path.name.endswith(_ENDINGS))
        return [path for path in of_reports if not path.is_relative_to(self._collections)]

    def _skip(self, path: Path, why: str) -> None:
        if self._unread.get(path) != why:
            self._say(f"{path} cannot be read: {why}")
        self._unread[path] = why

    def _tell_waiting(self, *, is_read: bool) -> None:
        """Say that a file waits, if nothing else could be read for some time."""
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
                try:
                    interval = self._intake.check_horizon(line)
                except InputError as why:
                    self._ahead[path] = str(why)
                    return file_lines
                last = file_lines[-1].interval if file_lines else 0
                file_lines.append(
                    _FileLine(last if interval is None else interval, name, end, line)
                )
        if rest.missing:
            return self._restart(path, start)
        if not file_lines:
            self._sizes[name] = size
        return file_lines

    async def _read_packed(self, path: Path) -> list[_FileLine]:
        """Read a packed file like `_read_plain`, decompressing it in a thread."""
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
            try:
                interval = self._intake.check_horizon(line)
            except InputError as why:
                self._ahead[path] = str(why)
                return file_lines
            packed.take()
            last = file_lines[-1].interval if file_lines else 0
            file_lines.append(_FileLine(last if interval is None else interval, name, end, line))
        if packed.is_read() and packed.missing:
            return self._restart(path, start)
        if packed.is_read():
            self._sizes[name] = packed.size
            if packed.damage:
                self._skip(path, packed.damage)
        return file_lines

    async def _packed_lines(self, path: Path, start: int) -> PackedLines | None:
        """Return the lines of a packed file from a byte on; null if it can have no new ones yet."""
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
        """Read a file from its beginning that ends before what was read of it."""
        self._say(f"{path} ends before byte {start:,}: {CUT}")
        self._truncated.add(str(path))
        self._packed.pop(str(path), None)
        return []


def _is_trace(path: Path) -> bool:
    """Return True if the first line is one of a trace."""
    with path.open("rb") as file:
        line, is_whole = next(lines(FileTail(file, 0), MOST_LINE), (b"", False))
        return is_whole and all(field in line for field in _OF_EVENT)
