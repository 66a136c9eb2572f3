"""The records of a collection's log, and the segments that contain them.

A record is its length (4 bytes), the CRC-32 of the rest (4 bytes), its kind (a byte) and its
content. Records follow each other in *segments*, files that are named by the *position* of their
first byte in the whole log. A segment begins with the state at that point (`STATE`), so a restart
needs nothing before it. A finished segment is sealed: compressed, and never written again.

`PROOF` says that all before it is synced. It is written after the sync, so records before a proof
may have been acknowledged: a power cut cannot have torn them (`vizpub.collector.log.damage`).
"""

from __future__ import annotations

import json
import re
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from vizpub.model.errors import StoreBroken
from vizpub.runstore import durable

REPORT, HEADER, CLOSE, END, STATE, READ, COMMAND = b"R", b"H", b"C", b"E", b"S", b"F", b"T"
MESSAGE, PROOF = b"M", b"P"
"""Kinds: a report (its interval in 4 bytes, then its line), the run's header so far, the closing of
all intervals up to one (4 bytes; in the first closing the run's first interval follows), the end of
the run, the state, the positions up to which files were read, a command to a peer or its answer
(JSON), and a message of Kafka: the length of its head (4 bytes), its head (JSON: topic, partition,
offset), and the records of its lines. They have one CRC, so a message is in the log with all of its
lines and its offset, or not at all. `PROOF` has the position up to which all is synced (8 bytes);
`read_records` skips it."""

_HEAD = struct.Struct(">II")
NUMBER = struct.Struct(">I")
_POSITION = struct.Struct(">Q")
_GZIP_HEAD, _GZIP_TAIL = 10, struct.Struct("<II")
PLAIN, SEALED = ".log", ".log.gz"
_GAPS = "gaps.json"
ADVICE = "restore the missing file or bytes, or continue without them: --past-damage"
_MOVE = "the collector did not write this: move it away, and restore the segment if it is missing"
_BEGINNING = re.compile(rb"(?=[\x00-\x07].{7}[RHCESFTMP])", re.DOTALL)
"""The possible beginnings of a record. No line of a report has such a byte, and a record has less
than 128 MB, so the search for the next record tries few places."""
_MOST = 2**27
_SIP = 256
"""Compressed bytes that are decompressed at once; a damaged part leaves those before it whole."""


@dataclass(frozen=True)
class Record:
    """A record of the log."""

    kind: bytes
    content: bytes
    """The content; of a message only its head."""
    start: int
    """The position before it, or before the message that contains it."""
    end: int
    """The position behind it, or behind that message."""

    @property
    def interval(self) -> int:
        """The interval of a report or a closing."""
        return int(NUMBER.unpack_from(self.content)[0])

    @property
    def first(self) -> int | None:
        """The run's first interval, of the first closing; null otherwise."""
        content = self.content[NUMBER.size :]
        return int(NUMBER.unpack(content)[0]) if content else None

    @property
    def line(self) -> bytes:
        """The line of a report."""
        return self.content[NUMBER.size :]


def encode_record(kind: bytes, content: bytes) -> bytes:
    """Return a record as it is written."""
    body = kind + content
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def report(interval: int, line: bytes) -> bytes:
    """Return the record of a report."""
    return encode_record(REPORT, NUMBER.pack(interval) + line)


def closing(interval: int, first: int | None = None) -> bytes:
    """Return the record that closes all intervals up to one. `first`: the run's first interval."""
    return encode_record(
        CLOSE, NUMBER.pack(interval) + (b"" if first is None else NUMBER.pack(first))
    )


def message(head: bytes, records: bytes) -> bytes:
    """Return the record of a message of Kafka, with the records of its lines in it."""
    return encode_record(MESSAGE, NUMBER.pack(len(head)) + head + records)


def proof(position: int) -> bytes:
    """Return the record that says up to which position all is synced."""
    return encode_record(PROOF, _POSITION.pack(position))


def segments(directory: Path) -> list[tuple[int, Path]]:
    """List the segments with their positions, in order. A sealed one counts before its plain file.

    Raises: LogDamaged if something that is not a file has the name of one.
    """
    paths = [
        path
        for suffix in (PLAIN, SEALED)
        for path in directory.glob(f"*{suffix}")
        if path.name.split(".")[0].isdecimal()
    ]
    for path in paths:
        with suppress(FileNotFoundError):  # it was sealed, or dropped, since it was listed
            if not stat.S_ISREG(path.stat().st_mode):
                raise LogDamaged(str(path), "it has the name of a segment but is not a file", _MOVE)
    return sorted({int(path.name.split(".")[0]): path for path in paths}.items())


def read_records(directory: Path, since: int = 0, until: int | None = None) -> Iterator[Record]:
    """Yield the records from one position to another; null = to the last whole record. Those of a
    message come before the message. Damage that the collector has passed is left out.

    Raises: LogDamaged if `until` lies behind what can be read: what was acknowledged is lost.
    """
    gaps = gaps_in(directory)
    at = since
    listed = segments(directory)
    for index, (start, path) in enumerate(listed):
        if index + 1 < len(listed) and listed[index + 1][0] <= at:
            continue
        if until is not None and start >= until:
            break
        if index and start > at:
            raise _lost(directory, at, start)
        # A failed sync or a power cut may leave records that were never acknowledged.
        ends = [*(begin for begin, _ in listed[index + 1 : index + 2]), until]
        end = min((one for one in ends if one is not None), default=None)
        content = content_of(path).plain
        at = max(at, start)
        while True:
            at = gaps.get(at, at)
            for record in _up_to(end, whole_records(content, start, at - start)):
                at = record.end
                if record.kind != PROOF:
                    yield record
            if at not in gaps:
                break
    if until is not None and at < until:
        raise _lost(directory, at, until)


def _up_to(end: int | None, records: Iterator[Record]) -> Iterator[Record]:
    return takewhile(lambda record: end is None or record.end <= end, records)


class LogDamaged(StoreBroken):
    """Acknowledged records cannot be read."""


def _lost(directory: Path, at: int, until: int) -> LogDamaged:
    why = f"the log cannot be read from {at:,} on, and was acknowledged up to {until:,}"
    return LogDamaged(str(directory), why, ADVICE)


@dataclass(frozen=True)
class SegmentContent:
    """The content of a segment."""

    plain: bytes
    """The content; of a damaged sealed segment the part that can be decompressed."""
    size: int
    """The number of bytes that it must have."""
    is_whole: bool = True
    """True unless it is damaged."""


def content_of(path: Path) -> SegmentContent:
    """Read the content of a segment, plain or sealed. Raises: LogDamaged if it cannot be read."""
    try:
        try:
            stored = path.read_bytes()
        except FileNotFoundError:  # it was sealed since it was listed
            path = path.with_name(f"{path.name}.gz")
            stored = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LogDamaged(str(path), f"it cannot be read: {error.strerror}", _MOVE) from error
    if path.suffix != ".gz":
        return SegmentContent(stored, len(stored))
    # A changed bit in the head does not change the content, so only the stream counts.
    stream, content = zlib.decompressobj(-15), bytearray()
    with suppress(zlib.error):
        for at in range(_GZIP_HEAD, len(stored), _SIP):
            content += stream.decompress(stored[at : at + _SIP])
    plain = bytes(content)
    crc, size = _GZIP_TAIL.unpack(stored[-_GZIP_TAIL.size :].rjust(_GZIP_TAIL.size, b"\0"))
    # Nor does one in the CRC itself. In the stream, it can turn a record into a copy of another.
    if (zlib.crc32(plain) ^ crc).bit_count() <= 1 and (len(plain) ^ size).bit_count() <= 1:
        return SegmentContent(plain, len(plain))
    return SegmentContent(plain, max(len(plain) + 1, size if size < _MOST else 0), is_whole=False)


def whole_records(content: bytes, start: int, offset: int) -> Iterator[Record]:
    """Yield the records from an offset up to the first that is not whole."""
    while (end := end_of(content, offset)) is not None:
        body = content[offset + _HEAD.size : end]
        begin, offset = start + offset, end
        kind, fields = body[:1], body[1:]
        if kind == MESSAGE:
            head = NUMBER.size + int(NUMBER.unpack_from(fields)[0])
            for inner in whole_records(fields[head:], 0, 0):
                yield Record(inner.kind, inner.content, begin, start + offset)
            fields = fields[NUMBER.size : head]
        yield Record(kind, fields, begin, start + offset)


def end_of(content: bytes, offset: int) -> int | None:
    """Return the end of the record that begins at an offset, or null if no whole one does."""
    if offset + _HEAD.size >= len(content):
        return None
    size, crc = _HEAD.unpack_from(content, offset)
    end = offset + _HEAD.size + int(size)
    if not size or end > len(content):
        return None
    is_whole = zlib.crc32(memoryview(content)[offset + _HEAD.size : end]) == crc
    return end if is_whole else None


def next_whole(content: bytes, offset: int) -> int | None:
    """Return the offset of the next whole record, or null.

    It tries each byte: lengths may be damaged, too.
    """
    beginnings = (match.start() for match in _BEGINNING.finditer(content, offset))
    return next((at for at in beginnings if end_of(content, at) is not None), None)


def proven_position(content: bytes, start: int, offset: int) -> int | None:
    """Return the greatest position that a whole proof behind an offset vouches for, or null.

    A proof that names another place than its own does not count: it is in the content of a record.
    """
    empty, position, at = proof(0), None, offset
    head = empty[:4]
    while (at := content.find(head, at)) >= 0:
        one = content[at : at + len(empty)]
        if one[8:9] == PROOF and one == proof(start + at):
            position = start + at
        at += 1
    return position


def gaps_in(directory: Path) -> dict[int, int]:
    """Return the damage that the collector has passed, as a map of begins to ends."""
    try:
        gaps = json.loads((directory / _GAPS).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return {int(one["from"]): int(one["to"]) for one in gaps}


def keep_gaps(directory: Path, gaps: dict[int, int]) -> None:
    """Write down the damage that is passed."""
    entries = [{"from": begin, "to": end} for begin, end in sorted(gaps.items())]
    durable.write(directory / _GAPS, json.dumps(entries))
