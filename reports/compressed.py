"""The content of a file that may be compressed, up to where it is damaged.

Standard library only, except zstandard, which needs pyarrow.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator
from typing import Protocol

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""The first bytes of compressed files."""
PACKED = {"gzip": (GZIP, (".gz",)), "zstandard": (ZSTD, (".zst", ".zstd"))}
"""How the content of packed files begins, and how their names end."""

MAX_LINE = 64 * 2**20
"""Most bytes of a line by default."""
KEPT = 4096
"""Bytes of a longer line that are kept."""
_BLOCK = 1 << 16
_GZIP_WINDOW = 31  # the largest window, with gzip's header and trailer


def without_query(path: str) -> str:
    """A path, or a URI up to its query. In the name of a local file a `?` is a letter."""
    return path.partition("?")[0] if "://" in path else path


def packing_of(path: str) -> str | None:
    """Return the kind of compression of a file, by its name; the
    inventory checks that the content is of that kind.
    """
    name = without_query(path)
    return next((kind for kind, (_, ends) in PACKED.items() if name.endswith(ends)), None)


class Readable(Protocol):
    """A binary stream that can be read."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""


class Content:
    """Iterates over the content of a binary stream in chunks, decompressed where need be.

    A stream that breaks off or does not decompress yields everything that can be read
    and ends; `damage` then says why, as text for users; it is null for an undamaged stream.
    The first bytes decide about the compression, never the name.
    """

    damage: str | None = None

    def __init__(self, stream: Readable) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        head = self._stream.read(_BLOCK)
        blocks = self._blocks(head)
        if head.startswith(GZIP):
            self.damage = yield from _gunzip(blocks)
        elif head.startswith(ZSTD):
            self.damage = yield from _unzstd(blocks)
        else:
            yield from blocks

    def _blocks(self, head: bytes) -> Iterator[bytes]:
        while head:
            yield head
            head = self._stream.read(_BLOCK)


class LongLine(bytes):
    """The beginning of a line that is longer than the limit.

    It ends in a byte that is invalid in UTF-8, so code that does not check its type refuses it.
    """

    size: int
    """Bytes of the whole line."""

    def __new__(cls, beginning: bytes, size: int) -> LongLine:
        """The whole or a part of the line."""
        made = super().__new__(cls, beginning[:KEPT] + b"\xff")
        made.size = size
        return made


def lines(content: Iterable[bytes], limit: int = MAX_LINE) -> Iterator[tuple[bytes, bool]]:
    r"""Lines without their `\n`, each with whether it had one: only the last may have none.

    A line of more than `limit` bytes is cut and returned as a `LongLine`.
    """
    held, size = bytearray(), 0
    for chunk in content:
        *ended, last = chunk.split(b"\n")
        for part in ended:
            if size:
                held += part[: limit - len(held)]
                yield _line(bytes(held), size + len(part), limit), True
                held, size = bytearray(), 0
            else:
                yield _line(part, len(part), limit), True
        size += len(last)
        held += last[: limit - len(held)]
    if size:
        yield _line(bytes(held), size, limit), False


def _line(text: bytes, size: int, limit: int) -> bytes:
    return text if size <= limit else LongLine(text, size)


def _gunzip(blocks: Iterable[bytes]) -> Generator[bytes, None, str | None]:
    member = zlib.decompressobj(_GZIP_WINDOW)
    for block in blocks:
        data = block
        while data:
            if member.eof:  # padding is allowed between members and after the last
                data = data.lstrip(b"\0")
                if not data:
                    break
                member = zlib.decompressobj(_GZIP_WINDOW)
            before = member.copy()
            try:
                content = member.decompress(data)
            except zlib.error as error:
                yield up_to_the_error(before, data)
                return f"damaged gzip: {error}"
            yield content
            data = member.unused_data
    return None if member.eof else "truncated gzip"


def up_to_the_error(member: zlib._Decompress, data: bytes) -> bytes:
    """The content of a member before the error: byte by byte, as zlib drops the whole block."""
    content = bytearray()
    for position in range(len(data)):
        try:
            content += member.decompress(data[position : position + 1])
        except zlib.error:
            break
    return bytes(content)


def _unzstd(blocks: Iterable[bytes]) -> Generator[bytes, None, str | None]:
    import pyarrow as pa

    stream = pa.CompressedInputStream(pa.PythonFile(_Reader(blocks), mode="r"), "zstd")
    while True:
        try:
            content = stream.read(_BLOCK)
        except OSError as error:
            return f"damaged zstandard: {error}"
        if not content:
            return None
        yield content


class _Reader:
    """The file interface that pyarrow needs for reading."""

    closed = False

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; none at the end."""
        self._rest = self._rest or next(self._blocks, b"")
        content, self._rest = self._rest[:size], self._rest[size:]
        return content

    def close(self) -> None:
        """Do nothing: the caller closes the stream."""
