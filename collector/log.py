"""The log of a collection: what was admitted, in the order in which it was.

A record is its length (4 bytes), the CRC-32 of the rest (4 bytes), its kind (a byte) and its
content. Records follow each other in *segments*, files that are named by the *position* of their
first byte in the whole log. A segment begins with the state at that point (`STATE`), so what lies
before is not needed to go on. A segment that is done is sealed: compressed, never written again.

Only what is synced is acknowledged. All that waits is written and synced together, so a record
waits for at most one sync of others and its own. After a failed sync nothing is known about the
file: it is cut to what was synced before, and never written again; what follows goes to a new one.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from model.errors import StoreBroken
from runstore import durable

REPORT, HEADER, CLOSE, END, STATE, READ, COMMAND = b"R", b"H", b"C", b"E", b"S", b"F", b"T"
MESSAGE = b"M"
"""Kinds: a report (its interval in 4 bytes, then its line), the run's header as it is known, the
closing of all intervals up to one (4 bytes), the end of the run, the state, how far files were
read, a command to a peer or its answer (JSON), and a message of Kafka: the length of its head (4
bytes), its head (JSON: topic, partition, offset), and the records that were made of its lines.
Under one CRC, so a message is in the log with all of its lines and its offset, or not at all."""

SEGMENT = 8 * 2**20
"""Bytes after which a segment is sealed."""
_HEAD = struct.Struct(">II")
_NUMBER = struct.Struct(">I")
_PLAIN, _SEALED = ".log", ".log.gz"


class LogFailed(Exception):
    """What was to be written is not on disk; the same may be tried again."""


@dataclass(frozen=True)
class Record:
    """A record of the log."""

    kind: bytes
    content: bytes
    """Of a message: its head."""
    start: int
    """The position before it; before the message that it came with, where one did."""
    end: int
    """The position behind it, or behind that message."""

    @property
    def interval(self) -> int:
        """Of a report or a closing."""
        return int(_NUMBER.unpack_from(self.content)[0])

    @property
    def line(self) -> bytes:
        """Of a report."""
        return self.content[_NUMBER.size :]


def packed(kind: bytes, content: bytes) -> bytes:
    """A record as it is written."""
    body = kind + content
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def report(interval: int, line: bytes) -> bytes:
    """The record of a report."""
    return packed(REPORT, _NUMBER.pack(interval) + line)


def close(interval: int) -> bytes:
    """The record that closes all intervals up to this one."""
    return packed(CLOSE, _NUMBER.pack(interval))


def message(head: bytes, records: bytes) -> bytes:
    """The record of a message of Kafka, with the records of its lines in it."""
    return packed(MESSAGE, _NUMBER.pack(len(head)) + head + records)


def segments(directory: Path) -> list[tuple[int, Path]]:
    """The segments with their positions, in order. A sealed one counts before its plain file."""
    found = {
        int(path.name.split(".")[0]): path
        for suffix in (_PLAIN, _SEALED)
        for path in directory.glob(f"*{suffix}")
        if path.name.split(".")[0].isdecimal()
    }
    return sorted(found.items())


def read(directory: Path, since: int = 0, until: int | None = None) -> Iterator[Record]:
    """The records from one position to another; null = to the last whole record. Those of a message
    come before the message.

    Raises: StoreBroken where `until` lies behind what can be read: what was acknowledged is lost.
    """
    at = since
    found = segments(directory)
    for place, (start, path) in enumerate(found):
        if place + 1 < len(found) and found[place + 1][0] <= since:
            continue
        if until is not None and start >= until:
            break
        if place and start > at:
            raise _lost(directory, at, start)
        # Behind a failed sync there may be what was never acknowledged.
        ends = [*(begin for begin, _ in found[place + 1 : place + 2]), until]
        end = min((one for one in ends if one is not None), default=None)
        for record in _whole(_content(path), start, max(since - start, 0)):
            if end is not None and record.end > end:
                break
            at = record.end
            yield record
    if until is not None and at < until:
        raise _lost(directory, at, until)


def _lost(directory: Path, at: int, until: int) -> StoreBroken:
    why = f"the log cannot be read from {at:,} on, and was acknowledged up to {until:,}"
    return StoreBroken(str(directory), why, "put back what is missing, or collect another run")


def _content(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:  # it was sealed since it was listed
        return gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StoreBroken(str(path), f"cannot be read: {error}") from error


def _whole(content: bytes, start: int, offset: int) -> Iterator[Record]:
    """The records up to the first that is not whole."""
    while offset + _HEAD.size < len(content):
        size, crc = _HEAD.unpack_from(content, offset)
        body = content[offset + _HEAD.size : offset + _HEAD.size + size]
        if not size or len(body) < size or zlib.crc32(body) != crc:
            return
        before, offset = start + offset, offset + _HEAD.size + size
        kind, own = body[:1], body[1:]
        if kind == MESSAGE:
            head = _NUMBER.size + int(_NUMBER.unpack_from(own)[0])
            for inner in _whole(own[head:], 0, 0):
                yield Record(inner.kind, inner.content, before, start + offset)
            own = own[_NUMBER.size : head]
        yield Record(kind, own, before, start + offset)


class Log:
    """The only writer of a log, inside an event loop.

    `state` gives the content of the record with which a segment begins.
    """

    def __init__(self, directory: Path, state: Callable[[], bytes], segment: int = SEGMENT) -> None:
        self._directory, self._state, self._segment = directory, state, segment
        self._pool = ThreadPoolExecutor(1, "log")
        self._handle: int | None = None
        self._start = self.end = _cut_torn(directory)
        """`end` is the position up to which all is synced."""
        self._waiting = bytearray()
        self._then: list[tuple[int, Callable[[int], None]]] = []
        self._told: asyncio.Future[None] | None = None
        self._busy: asyncio.Task[None] | None = None
        self.failures = 0
        self.failing: str | None = None
        """Why the last write failed, where it did."""

    @property
    def queued(self) -> int:
        """Bytes that wait for a sync."""
        return len(self._waiting)

    @property
    def size(self) -> int:
        """Bytes of the log that are still kept, uncompressed."""
        first = next(iter(segments(self._directory)), None)
        return self.end - first[0] if first else 0

    async def put(self, records: bytes, then: Callable[[int], None]) -> None:
        """Append records, and wait until they are synced. `then` is called with the position behind
        them, in the order of the log, before anything that follows is written.

        Raises: LogFailed; nothing is called then.
        """
        if self._told is None:
            self._told = asyncio.get_running_loop().create_future()
        told = self._told
        self._waiting += records
        self._then.append((len(self._waiting), then))
        if self._busy is None or self._busy.done():
            self._busy = asyncio.create_task(self._write())
        await asyncio.shield(told)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and self._told:
            content, told, then = bytes(self._waiting), self._told, self._then
            self._waiting, self._told, self._then = bytearray(), None, []
            opening = b"" if self._is_open else packed(STATE, self._state())
            try:
                await loop.run_in_executor(self._pool, self._append, opening, content)
                before = self.end - len(content)
                for behind, call in then:
                    call(before + behind)
                self.failing = None
                told.set_result(None)
            except OSError as error:
                self.failures += 1
                self.failing = error.strerror or str(error)
                told.set_exception(LogFailed(self.failing))
                told.exception()  # whoever put it may be gone

    @property
    def _is_open(self) -> bool:
        return self._handle is not None and self.end - self._start < self._segment

    def _append(self, opening: bytes, content: bytes) -> None:
        try:
            if opening:
                self._open()
            assert self._handle is not None
            _write_all(self._handle, opening + content)
            sync(self._handle)
        except OSError:
            self._give_up()
            raise
        self.end += len(opening) + len(content)

    def _open(self) -> None:
        """Begin a segment; the one before it is sealed."""
        if self._handle is not None:
            before, self._handle = self._handle, None
            os.close(before)
            seal(self._directory / f"{self._start:020}{_PLAIN}")
        self._start = self.end
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._handle = os.open(self._directory / f"{self._start:020}{_PLAIN}", flags, 0o600)
        durable.sync_directory(self._directory)

    def _give_up(self) -> None:
        """Nothing more is written to this segment, if there is one: the next one has a state."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        with suppress(OSError):
            os.ftruncate(handle, self.end - self._start)
        with suppress(OSError):
            os.close(handle)
        if self.end == self._start:
            with suppress(OSError):
                (self._directory / f"{self._start:020}{_PLAIN}").unlink()

    def drop(self, until: int) -> None:
        """Remove the segments that end at or before a position; the last one stays."""
        found = segments(self._directory)
        for (_, path), (following, _) in pairwise(found):
            if following <= until:
                path.unlink()

    async def aclose(self) -> None:
        """Write what waits, and end."""
        if self._busy:
            await self._busy
        self._pool.shutdown()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def sync(handle: int) -> None:
    """Make what was written durable."""
    os.fdatasync(handle)


def seal(path: Path) -> None:
    """Compress a segment that is done."""
    fresh = path.with_name(f".{path.name}.gz")
    fresh.write_bytes(gzip.compress(path.read_bytes(), 1, mtime=0))
    durable.sync_file(fresh)
    durable.rename(fresh, path.with_name(f"{path.name}.gz"))
    durable.sync_directory(path.parent)
    path.unlink()


def _cut_torn(directory: Path) -> int:
    """Cut what a kill left of a record, and what is left of a seal. Returns where the log ends."""
    for half in directory.glob(f".*{_SEALED}"):
        half.unlink()
    found = segments(directory)
    for _, path in found:  # a kill between the two steps of a seal leaves both
        if path.suffix == ".gz":
            path.with_name(path.name.removesuffix(".gz")).unlink(missing_ok=True)
    if not found:
        return 0
    start, path = found[-1]
    end = max((record.end for record in _whole(_content(path), start, 0)), default=start)
    if path.suffix != ".gz":
        if end == start:
            path.unlink()
        else:
            os.truncate(path, end - start)
            durable.sync_file(path)
        durable.sync_directory(directory)
    return end


def _write_all(handle: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
