"""HTTP with deadlines for headers and body; uvicorn has one only between two requests.

A body that the application reads has an earlier deadline there, and an answer (`collector.bodies`).
This one is for bodies that nobody reads: of requests that are refused, or need none.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_S = 30.0
"""From the connection, or the first byte after a request, to the end of the headers."""
BODY_S = 40.0
"""From there to the end of the body."""


class PatientProtocol(HttpToolsProtocol):
    """Closes a connection that does not send a whole head, or a whole body, in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._wait(HEADERS_S)

    def on_message_begin(self) -> None:
        """The first byte of a request: uvicorn's own wait is over."""
        super().on_message_begin()
        self._wait(HEADERS_S)

    def on_headers_complete(self) -> None:
        """In time; the body follows."""
        self._wait(BODY_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """In time."""
        self._end_wait()
        super().on_message_complete()
        if self.cycle.response_complete:  # uvicorn's own wait was over with the body's first byte
            self._wait(HEADERS_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for."""
        self._end_wait()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._end_wait()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._late)

    def _end_wait(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        if self.transport:
            self.transport.close()
