"""The log of a collection: all admitted records, in order.

`vizpub.collector.log.records` defines its records and segments. Only synced records are
acknowledged. All waiting records are written and synced together, so each waits for at most one
sync of others and its own. A proof is written behind synced records, and needs no sync itself: if a
power cut loses it, less is proven, and nothing is lost. After a failed sync nothing is certain of
the file: it is cut to what was synced before, and never written again; later records go to another.
"""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from vizpub.collector.log import damage
from vizpub.collector.log.records import PLAIN, STATE, encode_record, proof, segments
from vizpub.model.errors import cause_of
from vizpub.runstore import durable

SEGMENT = 8 * 2**20
"""Bytes after which a segment is sealed."""


class LogFailed(Exception):
    """The records are not on disk; the same may be tried again."""


class ReportLog:
    """The only writer of a log, inside an event loop.

    `state` returns the content of the record with which a segment begins, `beside` the records that
    follow it: what must be known even if the state is damaged.
    """

    def __init__(
        self,
        directory: Path,
        state: Callable[[], bytes],
        segment: int = SEGMENT,
        beside: Callable[[], bytes] = bytes,
    ) -> None:
        """Raises: StoreBroken if acknowledged records are damaged."""
        self._directory, self._state, self._segment = directory, state, segment
        self._beside = beside
        self._pool = ThreadPoolExecutor(1, "log")
        self._handle: int | None = None
        examined = damage.prepare_log(directory)
        self.torn = examined.torn
        """The segment and the number of bytes that a kill or a power cut left behind the end."""
        self._start = self._synced = self.end = examined.end
        """`end` is the position behind the last record; only a proof may lie behind `_synced`."""
        self._opening = 0
        """Bytes of the state with which this segment begins."""
        self._waiting = bytearray()
        self._callbacks: list[tuple[int, Callable[[int], None]]] = []
        self._future: asyncio.Future[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self.failures = 0
        self.failing: str | None = None
        """The reason why the last write failed; null = it did not."""

    @property
    def queued_bytes(self) -> int:
        """The bytes that wait for a sync."""
        return len(self._waiting)

    @property
    def size(self) -> int:
        """The bytes of the log that are still kept, uncompressed."""
        first = next(iter(segments(self._directory)), None)
        return self.end - first[0] if first else 0

    async def put(self, records: bytes, then: Callable[[int], None]) -> None:
        """Append records, and wait until they are synced. `then` is called with the position behind
        them, in the order of the log, before anything that follows is written.

        Raises: LogFailed; nothing is called then.
        """
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        future = self._future
        self._waiting += records
        self._callbacks.append((len(self._waiting), then))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_waiting())
        await asyncio.shield(future)

    async def _write_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and self._future:
            content, future, callbacks = bytes(self._waiting), self._future, self._callbacks
            self._waiting, self._future, self._callbacks = bytearray(), None, []
            opening, limit = b"", max(self._segment, 4 * self._opening)  # a state may be large
            try:
                if self._handle is None or self.end - self._start - self._opening >= limit:
                    opening = encode_record(STATE, self._state()) + self._beside()
                await loop.run_in_executor(self._pool, self._append_synced, opening, content)
                start = self._synced - len(content)
                for behind, call in callbacks:
                    call(start + behind)
                self.failing = None
                future.set_result(None)
            except Exception as error:  # whatever it is, somebody waits for the outcome
                self.failures += 1
                self.failing = cause_of(error)
                future.set_exception(LogFailed(self.failing))
                future.exception()  # no warning if the task that waited for it is gone

    def _append_synced(self, opening: bytes, content: bytes) -> None:
        try:
            if opening:
                self._begin_segment()
                # The state is synced alone, so a proof is on disk before any records follow.
                self._write_synced(opening)
                self._opening = len(opening)
                self._write_synced(proof(self.end))
            self._write_synced(content)
        except BaseException:
            self._give_up()
            raise
        try:
            self._write_on(proof(self.end))
        except OSError:  # the content is synced, and so acknowledged, without it
            self._give_up()

    def _write_synced(self, content: bytes) -> None:
        self._write_on(content)
        assert self._handle is not None
        sync(self._handle)
        self._synced = self.end

    def _write_on(self, content: bytes) -> None:
        assert self._handle is not None
        _write_all(self._handle, content)
        self.end += len(content)

    def _begin_segment(self) -> None:
        """Seal the segment, and begin another, which proves that all before it is synced."""
        self.end = self._synced
        if self._handle is not None:
            handle, self._handle = self._handle, None
            with suppress(OSError):
                os.ftruncate(handle, self.end - self._start)
            os.close(handle)
            seal(self._segment_at(self._start))
        self._start = self.end
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._handle = os.open(self._segment_at(self._start), flags, 0o600)
        durable.sync_directory(self._directory)

    def _segment_at(self, start: int) -> Path:
        return self._directory / f"{start:020}{PLAIN}"

    def _give_up(self) -> None:
        """Write no more to this segment, if there is one: the next write begins another."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        self.end = self._synced
        with suppress(OSError):
            os.ftruncate(handle, self.end - self._start)
        with suppress(OSError):
            os.close(handle)
        if self.end == self._start:
            with suppress(OSError):
                self._segment_at(self._start).unlink()

    def drop(self, until: int) -> None:
        """Remove the segments that end at or before a position; the last one stays."""
        for (_, path), (end, _) in pairwise(segments(self._directory)):
            if end <= until:
                path.unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Write what waits, and close the log."""
        if self._writer:
            await self._writer
        self._pool.shutdown()
        if self._handle is not None:
            with suppress(OSError):  # of the proof alone: all else is synced
                sync(self._handle)
            os.close(self._handle)
            self._handle = None


def sync(handle: int) -> None:
    """Make the written bytes of a file durable."""
    os.fdatasync(handle)


def seal(path: Path) -> None:
    """Compress a finished segment. Raises: OSError; then the plain one stays."""
    content = path.read_bytes()
    fresh = path.with_name(f".{path.name}.gz")
    fresh.write_bytes(gzip.compress(content, 1, mtime=0))
    durable.sync_file(fresh)
    if not damage.is_same(fresh, content):
        fresh.unlink()
        raise OSError(f"{fresh.name} does not contain what was written to it")
    durable.rename(fresh, path.with_name(f"{path.name}.gz"))
    durable.sync_directory(path.parent)
    path.unlink()


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
