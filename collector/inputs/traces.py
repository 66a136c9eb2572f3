"""Traces of go-libp2p-pubsub while they grow: JSON or protobuf, plain or gzip.

A trace may be compressed without a flush and rotated, as go-libp2p-pubsub's `traced` does: a file
is identified by its inode, whatever its name becomes, and is read as far as it can be decompressed.
"""

from __future__ import annotations

import os
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from vizpub.collector.http.listener import allow_descriptors
from vizpub.ingest.inputs.reader import RecordRefused
from vizpub.ingest.sources.libp2p import json_events, protobuf
from vizpub.ingest.sources.libp2p.events import TraceEvent, make_event
from vizpub.model.errors import InputError, cause_of
from vizpub.reports.compressed import GZIP, MAX_LINE, ZSTD, GzipStream

CUT = "was truncated: it is read again from its beginning"

NO_TRACE = "no trace of go-libp2p-pubsub"

_CHUNK = 1 << 16
_HEAD = 1 << 20
"""Bytes that contain a trace's first event."""
_LENGTH = 8
"""Bytes that contain the length of a record."""
_FILES = 1 << 16
"""Files to follow, if the system allows as many."""
_Decode = Callable[[bytes], tuple[dict[str, Any], Iterable[str]]]


class GrowingTrace:
    """One file, read as far as it goes."""

    def __init__(self, path: Path) -> None:
        """Raises: OSError."""
        self.path = path
        self._file = path.open("rb", buffering=0)
        self._gzip: GzipStream | None = None
        self._head: bytes | None = b""
        """The first bytes, until they show the kind of compression."""
        self._buffer = bytearray()
        self._split: Callable[[bytearray], Iterator[bytes]] | None = None
        self._decode: _Decode = json_events.decode
        self.last_ns = -1
        """The greatest time of an event so far, in Unix time."""
        self.broken: str | None = None
        """The reason why the rest of the file cannot be read."""
        self.refusals: Counter[str] = Counter()
        self.size = 0
        """Bytes that have been read."""

    @property
    def is_behind(self) -> bool:
        """True if there is more to read now."""
        return self.broken is None and os.fstat(self._file.fileno()).st_size > self.size

    @property
    def is_trace(self) -> bool:
        """True if it has an event."""
        return self._split is not None

    @property
    def rest(self) -> int:
        """The bytes of a record that is not whole yet."""
        return len(self._buffer)

    def read(self) -> list[TraceEvent]:
        """Read the next part, and return its events."""
        chunk = self._file.read(_CHUNK)
        self.size += len(chunk)
        events: list[TraceEvent] = []
        try:
            for plain in self._decompress(chunk):
                self._buffer += plain
                if self._split or self._recognise():
                    events.extend(self._events())
        except (zlib.error, protobuf.StreamBroken, InputError) as error:
            self.broken = str(error)
        return events

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _decompress(self, chunk: bytes) -> Iterator[bytes]:
        """Decompress a chunk if the first bytes of the file show that it is compressed."""
        if self._head is not None:
            self._head += chunk
            if len(self._head) < len(ZSTD):
                return
            chunk, self._head = self._head, None
            if chunk.startswith(ZSTD):
                raise InputError("zstandard cannot be followed: decompress it")
            if chunk.startswith(GZIP):
                self._gzip = GzipStream()
        yield from self._gzip.decompress(chunk) if self._gzip else (chunk,)

    def _recognise(self) -> bool:
        line = bytes(self._buffer.lstrip().partition(b"\n")[0])
        if json_events.is_event(line):
            self._split = _take_lines
        else:
            with suppress(protobuf.StreamBroken):
                span = protobuf.span_of(self._buffer)
                content = bytes(self._buffer[span.start : span.stop]) if span else b""
                if span and len(content) == len(span) and protobuf.is_event(content):
                    self._split, self._decode = _take_records, protobuf.decode
            if self._split is None and len(self._buffer) > _HEAD:
                raise InputError(NO_TRACE)
        return self._split is not None

    def _events(self) -> Iterator[TraceEvent]:
        assert self._split
        for record in self._split(self._buffer):
            if record.strip() or self._split is _take_records:
                try:
                    event = make_event(self._decode(record)[0])
                except RecordRefused as why:
                    self.refusals[str(why)] += 1
                else:
                    if event:  # else one of an unknown type
                        self.last_ns = max(self.last_ns, event.time)
                        yield event


def _take_lines(buffer: bytearray) -> Iterator[bytes]:
    """Take the whole lines out of the buffer."""
    end = buffer.rfind(b"\n") + 1
    if not end and len(buffer) > MAX_LINE:
        raise InputError(f"a line of more than {MAX_LINE:,} bytes")
    content = bytes(buffer[:end])
    del buffer[:end]
    yield from (line.removeprefix(BOM_UTF8) for line in content.splitlines())


def _take_records(buffer: bytearray) -> Iterator[bytes]:
    """Take the whole records out of the buffer."""
    content, start = bytes(buffer), 0
    try:
        while span := protobuf.span_of(bytearray(content[start : start + _LENGTH])):
            if len(span) > MAX_LINE:
                raise InputError(f"a record of more than {MAX_LINE:,} bytes")
            if start + span.stop > len(content):
                return
            yield content[start + span.start : start + span.stop]
            start += span.stop
    finally:
        del buffer[:start]


class Traces:
    """The traces in some files and folders, also those that come later."""

    def __init__(self, places: Iterable[Path], say: Callable[[str], None]) -> None:
        """Begin. Raises: InputError if a place does not exist."""
        self._places, self._say = tuple(places), say
        self._files: dict[tuple[int, int], GrowingTrace] = {}
        self._reported: set[Path] = set()
        allow_descriptors(_FILES)  # each stays open: it may be renamed
        if missing := [place for place in self._places if not place.exists()]:
            raise InputError(f"{missing[0]} does not exist")

    def look(self) -> None:
        """Find the files that exist now. Raises: InputError if one cannot be read."""
        for place in self._places:
            paths = sorted(place.rglob("*")) if place.is_dir() else [place]
            for path in paths:
                self._open_or_keep(path)

    def _open_or_keep(self, path: Path) -> None:
        try:
            status = path.stat()
            key = status.st_dev, status.st_ino
            if path.name.startswith(".") or not path.is_file():
                return
            if trace := self._files.get(key):
                if status.st_size >= trace.size:
                    return
                self._say(f"{path} {CUT}")
                trace.close()
            self._files[key] = GrowingTrace(path)
        except OSError as error:
            if path.exists():
                raise InputError(f"{path} cannot be read: {cause_of(error)}") from error

    def read(self) -> list[TraceEvent] | None:
        """Return the next events of the files that are the furthest behind; null = none now.

        Raises: InputError if a named file is no trace.
        """
        behind = [file for file in self._files.values() if file.is_behind]
        if not behind:
            return None
        low = min(file.last_ns for file in behind)
        events: list[TraceEvent] = []
        for file in behind:
            if file.last_ns <= low:
                events += file.read()
                if file.broken is None or file.path in self._reported:
                    continue
                if not file.is_trace and file.path in self._places:
                    raise InputError(f"{file.path}: {file.broken}")
                self._reported.add(file.path)
                if file.is_trace:
                    self._say(f"{file.path}: the rest cannot be read: {file.broken}")
        return events

    @property
    def behind_ns(self) -> int | None:
        """The time (Unix, ns) before which all events have been read; null if all files have been
        read to their ends.
        """
        return min((f.last_ns for f in self._files.values() if f.is_behind), default=None)

    @property
    def last_ns(self) -> int:
        """The greatest time of an event (Unix, ns); -1 = there is none."""
        return max((f.last_ns for f in self._files.values()), default=-1)

    def rest(self) -> list[str]:
        """Return a message for each file that does not end with a whole record."""
        return [
            f"{file.path} ends inside a record"
            for file in self._files.values()
            if file.rest and file.is_trace
        ]

    @property
    def refusals(self) -> Counter[str]:
        """The number of refused records, by reason."""
        return sum((file.refusals for file in self._files.values()), Counter())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
