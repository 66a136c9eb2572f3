"""Serves the reports of peers to a collector that asks for them. Standard library only.

    with ReportServer(port=8700) as server:
        server.report({"peer": "17", "interval": 42, "neighbors": ["3"]})

The collector (`vizpub live collect RUN --pull http://127.0.0.1:8700`) asks `GET
/report?since=CURSOR`. The answer has lines of the report contract; its header `vizpub-cursor` has
the next cursor. A cursor is opaque; without one, or with an unknown one, as after a restart of the
peer, all that is held is sent. Reports are held until the memory is full, for a collector that lost
its cursor.

Commands to peers come by `POST /commands`; the program gets them from `server.commands()`.
"""

from __future__ import annotations

import gzip
import secrets
import ssl
from collections import deque
from collections.abc import Mapping
from email.message import Message
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from socket import AF_INET, AF_INET6
from threading import Lock, Thread
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from .commands import CommandInbox
from .encoding import LineEncoder
from .endpoint import is_loopback, names_this_machine
from .records import Record

READABLE = "others could read the reports"
NO_COMMANDS = "these peers obey no commands"

CURSOR, MORE = "vizpub-cursor", "vizpub-more"
"""Headers of an answer: the next cursor, and 1 if there is more already."""
REPORT_PATH, COMMANDS_PATH = "/report", "/commands"
"""Paths below the URL of a target."""
_JSON = "application/json"
_MOST = 4 * 2**20
"""Bytes of an answer, before it is compressed; at least a line."""
_OF_LINE = 64
"""Bytes of memory that a line takes in addition to its content."""
_MOST_COMMANDS = 2**20
"""Bytes of a request with commands."""
_TIMEOUT_S = 30.0
"""The longest silence of a connection."""


class _Part(NamedTuple):
    lines: list[bytes]
    cursor: str
    more: bool


class ReportServer:
    """Serves the reports of one or many peers. All methods may be called from any thread.

    Without a token it serves this machine only.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        token: str | None = None,
        memory: int = 32 * 2**20,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Start. `port` 0 = a free one; `token`: the one to require; `memory`: bytes of reports to
        hold; `context` has the certificate to show.

        Raises: ValueError if others could read the reports; OSError if the port is taken.
        """
        if not (is_loopback(host) or (token and context)):
            raise ValueError(f"at {host} {READABLE}: give token and context")
        self._token, self._memory = token, memory
        self._lines, self._lock = LineEncoder(), Lock()
        self._held: deque[bytes] = deque()
        self._size = 0
        self._name = secrets.token_urlsafe(8)
        """The name of this server in its cursors: those of an earlier one are unknown."""
        self._next = self._fetched = 0
        self.inbox = CommandInbox()
        self.dropped = 0
        """The number of reports dropped before they were fetched, because memory was full."""
        self._server = _Server((host, port))
        self._server.reports = self
        if context:
            # The handshake is made by the connection's own thread.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        scheme = "https" if context else "http"
        place = f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{place}:{self._server.server_port}"
        """The address for the collector."""
        self._thread = Thread(target=self._server.serve_forever, name="reports", daemon=True)
        self._thread.start()

    def report(self, record: Record | Mapping[str, Any]) -> None:
        """Hold a record, or a report as a JSON object without `format` and `seq`.

        Raises: TypeError or ValueError if it is not JSON.
        """
        self.line(self._lines.encode(record))

    def line(self, line: bytes) -> None:
        """Report a record that is encoded already, without a line break."""
        with self._lock:
            self._held.append(line)
            self._next += 1
            self._size += len(line) + _OF_LINE
            while self._size > self._memory and len(self._held) > 1:
                self.dropped += self._first >= self._fetched
                self._size -= len(self._held.popleft()) + _OF_LINE

    def commands(self) -> list[dict[str, Any]]:
        """Return the commands to peers, each with its `id`, `peer` and `action` (leave or join),
        without answered or expired ones. None are accepted before the first call.
        """
        return self.inbox.waiting()

    def answer(self, number: int, refusal: str | None = None) -> None:
        """Answer the command of this id: it was obeyed, or the reason why not. The collector
        fetches the answer with its next request.
        """
        self.inbox.answer(number, refusal)

    @property
    def _first(self) -> int:
        """The number of the oldest line that is held."""
        return self._next - len(self._held)

    def part(self, since: str) -> _Part:
        """Return the lines behind a cursor; all that are held for one of another server."""
        name, _, text = since.rpartition("-")
        is_number = text.isascii() and text.isdecimal() and len(text) < 20
        number = int(text) if name == self._name and is_number else 0
        with self._lock:
            if number > self._next:
                number = 0
            self._fetched = max(self._fetched, number)
            start = max(number, self._first)
            lines: list[bytes] = []
            size = 0
            for line in islice(self._held, start - self._first, None):
                size += len(line) + 1
                if lines and size > _MOST:
                    break
                lines.append(line)
            end = start + len(lines)
            return _Part(lines, f"{self._name}-{end}", end < self._next)

    def allows(self, headers: Message) -> bool:
        """Return True if a request may be answered."""
        if self._token is None:
            return names_this_machine(headers.get("host", ""))
        credentials = headers.get("authorization", "")
        return compare_digest(credentials.encode(), f"Bearer {self._token}".encode())

    def close(self) -> None:
        """Stop serving; reports that were not fetched are lost."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    reports: ReportServer

    def __init__(self, at: tuple[str, int]) -> None:
        self.address_family = AF_INET6 if ":" in at[0] else AF_INET
        super().__init__(at, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that fail: the collector asks again."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S
    server: _Server

    def do_GET(self) -> None:
        """Answer `/report?since=CURSOR`."""
        url = urlsplit(self.path)
        if not self._is_allowed(url.path, REPORT_PATH):
            return
        since = parse_qs(url.query).get("since", [""])[0]
        part = self.server.reports.part(since)
        headers = {"content-type": "application/x-ndjson", CURSOR: part.cursor}
        headers[MORE] = str(int(part.more))
        self._answer(200, b"".join(line + b"\n" for line in part.lines), headers)

    def do_POST(self) -> None:
        """Answer `/commands`."""
        inbox = self.server.reports.inbox
        size = self.headers.get("content-length", "")
        if not self._is_allowed(urlsplit(self.path).path, COMMANDS_PATH):
            return
        # A web page cannot send this type to another server without asking, which fails here.
        if self.headers.get_content_type() != _JSON:
            self._refuse(415, f"commands are sent as {_JSON}")
        elif not inbox.obeyed:
            self._refuse(403, NO_COMMANDS)
        elif not size.isdecimal() or int(size) > _MOST_COMMANDS:
            self._refuse(413, f"give the length of the body, at most {_MOST_COMMANDS:,}")
        else:
            try:
                answers = inbox.take(self.rfile.read(int(size)))
            except ValueError as error:
                self._refuse(400, str(error))
            else:
                self._answer(200, answers, {"content-type": _JSON})

    def _is_allowed(self, path: str, right_path: str) -> bool:
        """Return True if a request may be answered, otherwise refuse it."""
        if not self.server.reports.allows(self.headers):
            self._refuse(401, "give the token of these reports")
        elif path != right_path:
            self._refuse(404, f"reports are at {REPORT_PATH}, and commands go to {COMMANDS_PATH}")
        else:
            return True
        return False

    def _refuse(self, code: int, why: str) -> None:
        # The rest of a body is not read.
        headers = {"content-type": "text/plain", "connection": "close"}
        self._answer(code, why.encode() + b"\n", headers)

    def _answer(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        if "gzip" in self.headers.get("accept-encoding", ""):
            body, headers = gzip.compress(body, 1), {**headers, "content-encoding": "gzip"}
        self.send_response(code)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""
