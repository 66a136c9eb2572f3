"""One file of the input: its checksum, whether it can be read as lines, and whose it is.

Runs in threads or in Spark tasks; see vizpub.ingest.inputs.inventory.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from vizpub.ingest.inputs.files import UNREADABLE, located
from vizpub.ingest.sources.base import LOOK_AT, Source, or_none
from vizpub.reports.compressed import PACKED, Content, Readable, packing_of

_HEAD = 1 << 16
"""Bytes of a file's content that are decoded at first: most files have many lines in them."""
_ONE_AT_A_TIME = Lock()
"""Held while the long lines of a file are decoded, which may take much memory."""
_TAR_HEADER = 512
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class LookedAt:
    """One file."""

    path: str
    size: int
    sha256: str
    damage: str | None
    """Why its beginning cannot be read in full."""
    unfit: str | None
    """Why the file is not offered to any source, or what it differs in from one of a source."""
    recognised: list[str]
    """`source:encoding` of each source that recognised it."""


def look_at(path: str, sources: Sequence[Source], limit: int) -> LookedAt:
    """Hash the file, and ask the sources; a line is looked at up to `limit` bytes."""
    try:
        filesystem, inside = located(path)
        with filesystem.open_input_stream(inside, compression=None) as stream:
            hashed = _Hashed(stream)
            content = Content(hashed)
            chunks = iter(content)
            head = _head(chunks)
            unfit = _unfit(path, hashed) or _container(head)
            recognised = [] if unfit else _recognised(path, bytes(head[:_HEAD]), sources)
            if not unfit and not recognised and len(head) >= _HEAD:
                with _ONE_AT_A_TIME:
                    recognised = _recognised(path, _first_lines(head, chunks, limit), sources)
            if not unfit and not recognised:
                unfit = _near_miss(path, bytes(head[:_HEAD]), sources)
            hashed.drain()
    except OSError as error:
        why = f"{UNREADABLE}: {os.strerror(error.errno) if error.errno else error}"
        return LookedAt(path, 0, "", None, why, [])
    sha256 = hashed.digest.hexdigest()
    return LookedAt(path, hashed.size, sha256, content.damage, unfit, recognised)


def _recognised(path: str, head: bytes, sources: Sequence[Source]) -> list[str]:
    answers = ((source.name, or_none(source.recognises, path, head)) for source in sources)
    return [f"{name}:{encoding}" for name, encoding in answers if encoding]


def _near_miss(path: str, head: bytes, sources: Sequence[Source]) -> str | None:
    """Why no source takes a file that is almost one of its own."""
    reasons = (or_none(lambda one: one.near_miss(path, head), source) for source in sources)
    return next(filter(None, reasons), None)


def _head(chunks: Iterator[bytes]) -> bytearray:
    """The first 64 KiB of the content, and the rest of their last chunk."""
    head = bytearray()
    while len(head) < _HEAD and (chunk := next(chunks, None)) is not None:
        head += chunk
    return head


def _first_lines(head: bytearray, chunks: Iterator[bytes], limit: int) -> bytes:
    """The head with all lines that sources look at, as far as lines of `limit` bytes are read."""
    breaks = head.count(b"\n")
    while breaks < LOOK_AT and len(head) <= limit and (chunk := next(chunks, None)) is not None:
        head += chunk
        breaks += chunk.count(b"\n")
    return bytes(head)


def _unfit(path: str, hashed: _Hashed) -> str | None:
    if hashed.size == 0:
        return "empty"
    # The name decides whether a file is read by ranges of bytes, so a wrong one would give garbage.
    for kind, (magic, suffixes) in PACKED.items():
        packed, named = hashed.start.startswith(magic), packing_of(path) == kind
        if packed and not named:
            return f"{kind} content, but a name without {suffixes[0]}: rename it"
        if named and not packed:
            return f"named {suffixes[0]}, but no {kind} content: rename it"
    return None


def _container(head: bytearray) -> str | None:
    """Why content that holds files is none; its lines would be those of several, and the first of
    each would be lost with the header of its file.
    """
    kind = "zip" if head.startswith(_ZIP) else "tar" if _is_tar(head[:_TAR_HEADER]) else None
    return kind and f"is a {kind} archive: unpack it"


def _is_tar(block: bytearray) -> bool:
    """Whether a block is the header of a file in an archive: it has a checksum."""
    try:
        return bool(tarfile.TarInfo.frombuf(bytes(block), "utf-8", "replace"))
    except tarfile.HeaderError:
        return False


class _Hashed:
    """A stream that is counted and hashed as it is read."""

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
