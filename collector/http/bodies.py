"""Reads bodies of requests, within limits while they arrive and while they are decompressed."""

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
"""Bytes that are decompressed in the event loop: for so few a thread costs more."""
_SIP = 1 << 12
_CODINGS = ("", "identity", "gzip", "x-gzip", "zstd")
"""The accepted codings of a body: at most one, applied once."""


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
    """Lines of any length: a kilobyte can be a million empty ones, and each takes time."""
    seconds: float = 30.0
    """From the headers to the end."""


async def read_body(
    request: Request, limits: BodyLimits, count: Callable[[int], None] = lambda _: None
) -> bytes:
    """Read a body as it is sent. `count` gets the bytes of each part, and may raise.

    Raises: HTTPException 400 if it ends early, 408 if it is slow, 413 if it is too large, 415 if
    its coding is not accepted.
    """
    coding = ", ".join(request.headers.getlist("content-encoding")).strip().lower()
    if coding not in _CODINGS:
        raise HTTPException(415, f"content-encoding {coding} is not accepted: send gzip or zstd")
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > limits.sent:
        raise _too_large(limits.sent, "bytes sent")
    body = bytearray()
    try:
        async with asyncio.timeout(limits.seconds):
            async for chunk in request.stream():
                count(len(chunk))
                body += chunk
                if len(body) > limits.sent:
                    raise _too_large(limits.sent, "bytes sent")
    except TimeoutError:
        raise HTTPException(408, f"the body took more than {limits.seconds:g} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the connection ended before the body") from None
    return bytes(body)


async def lines_in(body: bytes, limits: BodyLimits) -> list[bytes]:
    """Return the lines of a body, plain or compressed, which its first bytes decide.

    Raises: as `lines_of`.
    """
    if len(body) > _SMALL and is_packed(body):
        return await asyncio.to_thread(lines_of, body, limits)
    return lines_of(body, limits)


def is_packed(body: bytes) -> bool:
    """Return True if a body is compressed."""
    return body.startswith((GZIP, ZSTD))


class _Sips(BytesIO):
    """Reads little at once: a kilobyte of a bomb is a megabyte of content."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read at most `_SIP` bytes."""
        return super().read(_SIP if size is None or size < 0 else min(size, _SIP))


def lines_of(body: bytes, limits: BodyLimits) -> list[bytes]:
    """Return the lines of a whole body.

    Raises: HTTPException 400 if it is damaged, 413 if its content is too large.
    """
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
