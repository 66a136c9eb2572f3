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

from vizpub.collector.http.interface import Web
from vizpub.collector.inputs.packed import MOST_LINE, PackedLines, PlainRest, Rest, is_packed
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
class _Read:
    interval: int
    """Of the report, or of the one before in its file."""
    path: str
    end: int
    """Bytes of the file's content up to the end of the line."""
    line: bytes


class Folder:
    """Follows the files below a folder."""

    def __init__(
        self,
        folder: Path,
        intake: Intake,
        say: Callable[[str], None],
        web: Web,
        on_trace: Callable[[], None],
    ) -> None:
        """`web` says whether reports are taken now; `on_trace` is called where there are traces."""
        self._folder, self._intake, self._say = folder.absolute(), intake, say
        self._own = intake.place.folder.parent.absolute()
        self._has_room, self._on_trace = web.has_room, on_trace
        self._sizes: dict[str, int] = {}
        """Of files that are read to their end."""
        self._packed: dict[str, PackedLines] = {}
        """Packed files, as far as they are read."""
        self._unread: dict[Path, str] = {}
        """Why files could not be read."""
        self._cut: set[str] = set()
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
        found: list[_Read] = []
        self._ahead.clear()
        for path in self._files():
            try:
                found += await self._packed_part(path) if is_packed(path) else self._part(path)
                self._unread.pop(path, None)
            except OSError as error:  # gone meanwhile, or another user's
                self._skip(path, error.strerror or str(error))
            await asyncio.sleep(0)
        found.sort(key=lambda one: one.interval)
        self._tell_waiting(is_read=bool(found))
        read = dict.fromkeys(self._cut, 0)
        if not found and not read:
            return 0
        for one in found:
            read[one.path] = max(one.end, read.get(one.path, 0))
        try:
            done = await self._intake.take([one.line for one in found], read, may_end=True)
        except LogFailed:  # the collector says so
            self._packed.clear()  # they are further than the log
            self._sizes = {name: size for name, size in self._sizes.items() if name not in read}
            return 0
        self._cut.clear()
        for why in done.why[:_SHOWN]:
            one = found[why["line"] - 1]
            self._say(f"{one.path}: the line before byte {one.end:,} is refused: {why['reason']}")
        return len(read)

    def _files(self) -> list[Path]:
        found: list[Path] = []
        with suppress(OSError):  # a folder in it is gone meanwhile
            found = sorted(path for path in self._folder.rglob("*") if path.name[0] != ".")
        if any(path.name.endswith(_TRACES) for path in found):
            self._on_trace()
        # Batches are files of reports, too: each would be read into the next one.
        of_reports = (path for path in found if path.name.endswith(_ENDINGS))
        return [path for path in of_reports if not path.is_relative_to(self._own)]

    def _skip(self, path: Path, why: str) -> None:
        if self._unread.get(path) != why:
            self._say(f"{path} cannot be read: {why}")
        self._unread[path] = why

    def _tell_waiting(self, *, is_read: bool) -> None:
        """That others are read first is usual. When there is nothing else to read, it is told."""
        now = time.monotonic()
        if is_read or not self._ahead:
            self._patience = None
        elif self._patience is None:
            self._patience = now + _PATIENCE_S
        elif now >= self._patience:
            path, why = next(iter(self._ahead.items()))
            self._say(f"{path} waits: {why}")
            self._patience = math.inf

    def _part(self, path: Path) -> list[_Read]:
        """The next complete lines of a file, up to one that must wait."""
        name = str(path)
        if not path.is_file() or self._sizes.get(name) == (size := path.stat().st_size):
            return []
        start = end = self._intake.read.get(name, 0)
        if not start and _is_trace(path):
            self._on_trace()
            self._sizes[name] = size
            return []
        found: list[_Read] = []
        with path.open("rb") as file:
            rest = PlainRest(file, start)
            for line, is_whole in lines(rest, MOST_LINE):
                if not is_whole:
                    break
                if end - start > _CHUNK:
                    return found
                end += (line.size if isinstance(line, LongLine) else len(line)) + 1
                try:
                    interval = self._intake.waits(line)
                except InputError as why:
                    self._ahead[path] = str(why)
                    return found
                last = found[-1].interval if found else 0
                found.append(_Read(last if interval is None else interval, name, end, line))
        if rest.missing:
            return self._begin_anew(path, start)
        if not found:
            self._sizes[name] = size
        return found

    async def _packed_part(self, path: Path) -> list[_Read]:
        """As `_part`, of a file that is decompressed in a thread."""
        name, start = str(path), self._intake.read.get(str(path), 0)
        if (packed := await self._packed_lines(path, start)) is None:
            return []
        found: list[_Read] = []
        while packed.taken - start <= _CHUNK:
            if not packed.waiting and not packed.is_over:
                await asyncio.to_thread(packed.read)
            if not packed.waiting:
                break
            line, end = packed.waiting[0]
            try:
                interval = self._intake.waits(line)
            except InputError as why:
                self._ahead[path] = str(why)
                return found
            packed.take()
            last = found[-1].interval if found else 0
            found.append(_Read(last if interval is None else interval, name, end, line))
        if packed.is_read() and packed.missing:
            return self._begin_anew(path, start)
        if packed.is_read():
            self._sizes[name] = packed.size
            if packed.damage:
                self._skip(path, packed.damage)
        return found

    async def _packed_lines(self, path: Path, start: int) -> PackedLines | None:
        """The lines of a packed file from there on; null where nothing new can be in it yet."""
        name = str(path)
        if not path.is_file() or self._sizes.get(name) == (now := path.stat()).st_size:
            return None
        known = self._packed.get(name)
        if known and known.is_of(now):
            if known.taken == start and not known.is_read():
                return known
            if now.st_size > known.size and time.monotonic() < known.again:
                return None
        if not start and await asyncio.to_thread(_is_trace, path):
            self._on_trace()
            self._sizes[name] = now.st_size
            return None
        self._packed[name] = PackedLines(path, start)
        return self._packed[name]

    def _begin_anew(self, path: Path, start: int) -> list[_Read]:
        """Read a file from its beginning that ends before what was read of it."""
        self._say(f"{path} ends before byte {start:,}: {CUT}")
        self._cut.add(str(path))
        self._packed.pop(str(path), None)
        return []


def _is_trace(path: Path) -> bool:
    """Whether the first line is one of a trace."""
    with path.open("rb") as file:
        line, is_whole = next(lines(Rest(file, 0), MOST_LINE), (b"", False))
        return is_whole and all(field in line for field in _OF_EVENT)
