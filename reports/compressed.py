"""Reads files that may be compressed, up to the point where they are damaged.

Standard library only, except zstandard, which needs pyarrow.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from typing import Protocol
from urllib.parse import unquote

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""The first bytes of compressed files."""
PACKED = {"gzip": (GZIP, (".gz",)), "zstandard": (ZSTD, (".zst", ".zstd"))}
"""The first bytes of packed files and the endings of their names, by kind of compression."""

MAX_LINE = 64 * 2**20
"""Most bytes of a line by default."""
KEPT = 4096
"""Bytes to keep of a longer line."""
_BLOCK = 1 << 16
_GZIP_WINDOW = 31  # the largest window, with gzip's header and trailer


def without_query(path: str) -> str:
    """Return a path, or a URI up to its query. In the name of a local file a `?` is a letter."""
    return path.partition("?")[0] if "://" in path else path


def plain_path(path: str) -> str:
    """Return a path, or a URI without its query and quoting, so that names in it can be found."""
    return unquote(without_query(path)) if "://" in path else path


def packing_of(path: str) -> str | None:
    """Return the kind of compression by a file's name. Inspecting it also checks its content."""
    name = without_query(path)
    return next((kind for kind, (_, ends) in PACKED.items() if name.endswith(ends)), None)


def packing_fault(path: str, start: bytes) -> str | None:
    """Return why a file's name does not fit its first bytes; null if it does."""
    for kind, (magic, suffixes) in PACKED.items():
        is_packed, is_named = start.startswith(magic), packing_of(path) == kind
        if is_packed and not is_named:
            return f"{kind} content, but a name without {suffixes[0]}: rename it"
        if is_named and not is_packed:
            return f"named {suffixes[0]}, but no {kind} content: rename it"
    return None


class Readable(Protocol):
    """A binary stream that can be read."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; none at the end."""


class Content:
    """Iterates over the content of a binary stream in chunks, and decompresses it if needed.

    A stream that is cut or damaged yields everything that can be read and ends; `damage` is then
    the reason, as text for users; it is null for an undamaged stream. The first bytes decide about
    the compression, never the name.
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
        """Keep the beginning of a line, of which only a part may be given."""
        line = super().__new__(cls, beginning[:KEPT] + b"\xff")
        line.size = size
        return line

    @property
    def problem(self) -> str:
        """The reason to refuse it."""
        return f"a line of {self.size:,} bytes is too long"


def lines(content: Iterable[bytes], limit: int = MAX_LINE) -> Iterator[tuple[bytes, bool]]:
    r"""Yield lines without their `\n`, each with True if it had one: only the last may have none.

    A line of more than `limit` bytes is cut and returned as a `LongLine`.
    """
    for block, ended in line_blocks(content, limit):
        for line in split_block(block, limit):
            yield line, ended


def line_blocks(content: Iterable[bytes], limit: int = MAX_LINE) -> Iterator[tuple[bytes, bool]]:
    r"""Yield lines that follow each other, joined by `\n`: `split_block` has them one by one. Each
    block comes with True if a `\n` followed it.
    """
    held, size = bytearray(), 0
    for chunk in content:
        rest, ended, others = chunk.partition(b"\n")
        held += rest[: limit - len(held)]
        size += len(rest)
        if ended:
            yield _cut(bytes(held), size, limit), True
            block, ended, last = others.rpartition(b"\n")
            if ended:
                yield block, True
            held, size = bytearray(last[:limit]), len(last)
    if size:
        yield _cut(bytes(held), size, limit), False


def split_block(block: bytes, limit: int = MAX_LINE) -> list[bytes]:
    """Split a block into its lines; those of more than `limit` bytes are cut."""
    if isinstance(block, LongLine):
        return [block]
    return [_cut(line, len(line), limit) for line in block.split(b"\n")]


def _cut(text: bytes, size: int, limit: int) -> bytes:
    return text if size <= limit else LongLine(text, size)


class GzipStream:
    """Decompresses gzip, one member after the other, as its parts arrive."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def is_whole(self) -> bool:
        """True if the last member has ended."""
        return self._member.eof

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of the next part. Raises: zlib.error behind the undamaged content."""
        while data:
            if self._member.eof:  # padding is allowed between members and after the last
                data = data.lstrip(b"\0")
                if not data:
                    return
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            member = self._member.copy()
            try:
                content = self._member.decompress(data)
            except zlib.error:
                # zlib drops all of the data, so the copy gets it byte by byte.
                intact = bytearray()
                with suppress(zlib.error):
                    for byte in data:
                        intact += member.decompress(bytes((byte,)))
                yield bytes(intact)
                raise
            yield content
            data = self._member.unused_data


def _gunzip(blocks: Iterable[bytes]) -> Generator[bytes, None, str | None]:
    stream = GzipStream()
    for block in blocks:
        try:
            yield from stream.decompress(block)
        except zlib.error as error:
            return f"damaged gzip: {error}"
    return None if stream.is_whole else "truncated gzip"


def _unzstd(blocks: Iterable[bytes]) -> Generator[bytes, None, str | None]:
    import pyarrow as pa

    stream = pa.CompressedInputStream(pa.PythonFile(_Reader(blocks), mode="r"), "zstd")
    while True:
        content = bytearray(_BLOCK)
        try:
            size = stream.readinto(content)
        except OSError as error:
            # It does not say how much it wrote before the damage: the rest are still zeros.
            yield bytes(content.rstrip(b"\0"))
            return f"damaged zstandard: {error}"
        if not size:
            return None
        yield bytes(memoryview(content)[:size])


class _Reader:
    """The file interface that pyarrow needs for reading."""

    closed = False

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes; none at the end."""
        self._rest = self._rest or next(self._blocks, b"")
        content, self._rest = self._rest[:size], self._rest[size:]
        return content

    def close(self) -> None:
        """Do nothing: the caller closes the stream."""
