"""HTTP with bounds: uvicorn itself has a deadline only between two requests, and bounds only
bodies.

A body that the application reads has an earlier deadline there, with an answer
(`vizpub.collector.http.bodies`). The deadline here is for bodies that nobody reads, of requests
that are refused or need none.
"""

from __future__ import annotations

import asyncio
import socket
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_S = 30.0
"""From the connection, or the first byte after a request, to the end of the headers."""
BODY_S = 40.0
"""From there to the end of the body."""
UNREAD_S = 30.0
"""The longest time in which the reader of an answer takes none of it."""
HEAD = 1 << 16
"""Bytes of a request outside of its body: its head, trailers, and sizes of chunks."""
_PER_BYTE = 8
"""Additional such bytes for each byte of the body: chunks may be small."""
_CHUNK = 1 << 18
"""Bytes that may come at once: some may belong to the next request."""
HEADS = 64 * 2**20
"""Bytes in memory of the heads of all connections' requests, until they are answered."""
_OF_REQUEST, _OF_HEADER = 1 << 12, 1 << 8
"""Bytes that each takes in addition to its text."""
PIPELINE = 16
"""Requests of a connection that wait for the answer to an earlier one."""


class _TooMuch(Exception):
    """A request or a connection exceeds a bound."""


class PatientProtocol(HttpToolsProtocol):
    """Closes a connection that does not send a whole head or body in time."""

    _deadline: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None
    """The deadline of the client that reads an answer."""
    _came = _of_body = _in_head = 0
    """Bytes of this request, of its body, and of its headers and trailers."""
    _is_head = True
    _is_whole = True
    """False while a part of a request is still to come."""
    _held = _last = 0
    """Bytes of the heads of its requests, and of the last data."""
    _holding: ClassVar[set[PatientProtocol]] = set()
    """The connections that hold some."""
    _sum: ClassVar[int] = 0
    """The bytes that all connections hold."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        # Without it an answer waits for the acknowledgement of the previous one, 40 ms.
        if (door := transport.get_extra_info("socket")) is not None:
            door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait(HEADERS_S)

    def data_received(self, data: bytes) -> None:
        """Feed the parser. It holds all but bodies until they are whole, whatever their size."""
        self._came += len(data)
        self._last = len(data)
        self._count_held(len(data))
        super().data_received(data)
        if PatientProtocol._sum > HEADS:
            largest = max(self._holding, key=lambda one: one._held)
            largest.pipeline.clear()
            largest._count_held(-largest._held)
            if largest.transport:
                largest.transport.abort()
        if self._came > HEAD + (1 + _PER_BYTE) * self._of_body + _CHUNK:
            self.pipeline.clear()
            if self.transport and not self.transport.is_closing():
                self.transport.close()

    def _count_held(self, size: int) -> None:
        previous, self._held = self._held, max(self._held + size, 0)
        PatientProtocol._sum += self._held - previous
        (self._holding.add if self._held else self._holding.discard)(self)

    def on_message_begin(self) -> None:
        """Begin a request, with its first byte: uvicorn's own deadline is over."""
        super().on_message_begin()
        self._came = self._of_body = self._in_head = 0
        self._is_head, self._is_whole = True, False
        self._wait(HEADERS_S)

    def on_url(self, url: bytes) -> None:
        """Take a part of the first line."""
        super().on_url(url)
        if len(self.url) > HEAD:
            raise _TooMuch

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header of the head, or a trailer behind the body, which nobody reads."""
        self._in_head += len(name) + len(value) + 4
        self._count_held(_OF_HEADER)
        if self._in_head > HEAD:
            raise _TooMuch
        if self._is_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._of_body += len(body)
        self._count_held(-len(body))
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """End the head; the body follows."""
        self._is_head = False
        self._count_held(_OF_REQUEST)
        self._wait(BODY_S)
        if len(self.pipeline) >= PIPELINE:
            raise _TooMuch
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the request."""
        self._end_wait()
        self._is_whole = True
        super().on_message_complete()
        if self.cycle.response_complete:  # uvicorn's own deadline ended at the body's first byte
            self._count_held(-self._held)
            self._wait(HEADERS_S)

    def on_response_complete(self) -> None:
        """Release its head; a part of the next one may have come with it."""
        if not self.pipeline:
            rest = 0 if self._is_whole else min(self._last, self._held)
            self._count_held(rest - self._held)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer, and release all."""
        self._end_wait()
        self.resume_writing()
        self.pipeline.clear()
        self._count_held(-self._held)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for a slow reader: nothing more is sent until it has read."""
        super().pause_writing()
        self._reader = asyncio.get_running_loop().call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue: the reader has read."""
        super().resume_writing()
        if self._reader:
            self._reader.cancel()
            self._reader = None

    def _wait(self, seconds: float) -> None:
        self._end_wait()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.transport.close)

    def _end_wait(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None
