"""The body of a request, with limits that hold while it arrives and while it is decompressed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from vizpub.reports.compressed import GZIP, ZSTD, Content, lines

_SMALL = 1 << 16
"""Bytes that are decompressed in the event loop: a thread costs more."""
_SIP = 1 << 12
_CODINGS = ("", "identity", "gzip", "x-gzip", "zstd")
"""What a request may say of its body; one coding, once."""


@dataclass(frozen=True)
class BodyLimits:
    """Upper bounds of one request."""

    sent: int = 8 * 2**20
    """Bytes as they are sent."""
    content: int = 32 * 2**20
    """Bytes when decompressed."""
    line: int = 2**20
    """Bytes of a line."""
    lines: int = 250_000
    """Of any length: a kilobyte can be a million empty ones, and each is looked at."""
    seconds: float = 30.0
    """From its headers to its end."""


async def read_body(
    request: Request, limits: BodyLimits, count: Callable[[int], None] = lambda _: None
) -> bytes:
    """Read a body as it is sent. `count` gets the bytes of each part, and may raise.

    Raises: HTTPException 400 where it is damaged, 408 where it is slow, 413 where it is too large,
    415 where it is said to be coded in a way that is not taken.
    """
    coding = ", ".join(request.headers.getlist("content-encoding")).strip().lower()
    if coding not in _CODINGS:
        raise HTTPException(415, f"content-encoding {coding} is not taken: send gzip or zstd")
    try:
        async with asyncio.timeout(limits.seconds):
            return await _receive(request, limits.sent, count)
    except TimeoutError:
        raise HTTPException(408, f"the body took more than {limits.seconds:g} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the connection ended before the body") from None


async def lines_in(body: bytes, limits: BodyLimits) -> list[bytes]:
    """Return the lines of a body, plain or compressed: its first bytes decide.

    Raises: HTTPException 400 or 413, as `read_body`.
    """
    if len(body) > _SMALL and is_packed(body):
        return await asyncio.to_thread(lines_of, body, limits)
    return lines_of(body, limits)


def is_packed(body: bytes) -> bool:
    """Return True if a body is compressed."""
    return body.startswith((GZIP, ZSTD))


async def _receive(request: Request, most: int, count: Callable[[int], None]) -> bytes:
    announced = request.headers.get("content-length", "0")
    body = bytearray()
    if announced.isdecimal() and int(announced) > most:
        raise _too_large(most, "bytes sent")
    async for chunk in request.stream():
        count(len(chunk))
        body += chunk
        if len(body) > most:
            raise _too_large(most, "bytes sent")
    return bytes(body)


class _Sips(BytesIO):
    """Reads little at once: a kilobyte of a bomb is a megabyte of content."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read at most `_SIP` bytes."""
        return super().read(_SIP if size is None or size < 0 else min(size, _SIP))


def lines_of(body: bytes, limits: BodyLimits) -> list[bytes]:
    """Return the lines of a whole body. Raises: HTTPException 400 or 413, as `read_body`."""
    content = Content(_Sips(body) if is_packed(body) else BytesIO(body))
    parts = islice(lines(_check_size(content, limits.content), limits.line), limits.lines + 1)
    result = [line for line, _ in parts]
    if len(result) > limits.lines:
        raise _too_large(limits.lines, "lines")
    if content.damage:
        raise HTTPException(400, f"the body is damaged ({content.damage}): send it again")
    return result


def _check_size(content: Content, most: int) -> Iterator[bytes]:
    size = 0
    for chunk in content:
        size += len(chunk)
        if size > most:
            raise _too_large(most, "bytes decompressed")
        yield chunk


def _too_large(most: int, of_what: str) -> HTTPException:
    return HTTPException(413, f"more than {most:,} {of_what}: send the lines in several requests")
