"""Inspection of one input file: its checksum, its damage, and the sources that recognise it.

Runs in threads or in Spark tasks; see vizpub.ingest.inputs.inventory.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from vizpub.ingest.inputs.files import UNREADABLE, locate
from vizpub.ingest.sources.base import LOOK_AT, Source, or_none
from vizpub.reports.compressed import Content, Readable, packing_fault

_HEAD = 1 << 16
"""Bytes of a file's content that are decoded at first: most files have many lines in them."""
_ONE_AT_A_TIME = Lock()
"""Held while the long lines of a file are decoded, which may take much memory."""
_TAR_HEADER = 512
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class InspectedFile:
    """The result of inspecting one file."""

    path: str
    size: int
    sha256: str
    damage: str | None
    """Why its beginning cannot be read in full."""
    unfit: str | None
    """Why the file is not offered to any source, or what it differs in from one of a source."""
    recognised: list[str]
    """`source:encoding` of each source that recognised it."""


def inspect_file(path: str, sources: Sequence[Source], limit: int) -> InspectedFile:
    """Hash the file, and ask each source whether it recognises it; lines are read up to `limit`
    bytes.
    """
    try:
        filesystem, inside = locate(path)
        with filesystem.open_input_stream(inside, compression=None) as stream:
            hashed = _HashingStream(stream)
            content = Content(hashed)
            chunks = iter(content)
            head = _head(chunks)
            unfit = _unfit(path, hashed) or _container(head)
            recognised = [] if unfit else _ask_sources(path, bytes(head[:_HEAD]), sources)
            if not unfit and not recognised and len(head) >= _HEAD:
                with _ONE_AT_A_TIME:
                    recognised = _ask_sources(path, _first_lines(head, chunks, limit), sources)
            if not unfit and not recognised:
                beginning = bytes(head[:_HEAD])
                reasons = (or_none(source.near_miss, path, beginning) for source in sources)
                unfit = next(filter(None, reasons), None)
            hashed.drain()
    except OSError as error:
        why = f"{UNREADABLE}: {os.strerror(error.errno) if error.errno else error}"
        return InspectedFile(path, 0, "", None, why, [])
    sha256 = hashed.digest.hexdigest()
    return InspectedFile(path, hashed.size, sha256, content.damage, unfit, recognised)


def _ask_sources(path: str, head: bytes, sources: Sequence[Source]) -> list[str]:
    answers = ((source.name, or_none(source.recognises, path, head)) for source in sources)
    return [f"{name}:{encoding}" for name, encoding in answers if encoding]


def _head(chunks: Iterator[bytes]) -> bytearray:
    """Return the first 64 KiB of the content, and the rest of their last chunk."""
    head = bytearray()
    while len(head) < _HEAD and (chunk := next(chunks, None)) is not None:
        head += chunk
    return head


def _first_lines(head: bytearray, chunks: Iterator[bytes], limit: int) -> bytes:
    """Return the head with all lines that sources look at, or with at least `limit` bytes."""
    breaks = head.count(b"\n")
    while breaks < LOOK_AT and len(head) <= limit and (chunk := next(chunks, None)) is not None:
        head += chunk
        breaks += chunk.count(b"\n")
    return bytes(head)


def _unfit(path: str, hashed: _HashingStream) -> str | None:
    if hashed.size == 0:
        return "empty"
    # The name decides whether a file is read by ranges of bytes, so a wrong one would give garbage.
    return packing_fault(path, hashed.start)


def _container(head: bytearray) -> str | None:
    """Return the reason why an archive is refused; null for other content.

    Its lines would be those of several files, and the first of each would be lost with the header
    of its file.
    """
    kind = "zip" if head.startswith(_ZIP) else "tar" if _is_tar(head[:_TAR_HEADER]) else None
    return kind and f"is a {kind} archive: unpack it"


def _is_tar(block: bytearray) -> bool:
    """Return True if a block is the header of a file in a tar archive: it has a checksum."""
    try:
        return bool(tarfile.TarInfo.frombuf(bytes(block), "utf-8", "replace"))
    except tarfile.HeaderError:
        return False


class _HashingStream:
    """A stream that counts and hashes the bytes as they are read."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.size = 0
        self.start = b""

    def read(self, size: int, /) -> bytes:
        """Read like any binary stream."""
        data = self._stream.read(size)
        self.digest.update(data)
        self.start = self.start or data[:4]
        self.size += len(data)
        return data

    def drain(self) -> None:
        """Read the rest of the stream."""
        while self.read(_HEAD):
            pass
