"""What answers like a collector, and is none: it never ends, or tells what no collector tells."""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 200 OK\r\n"
_COMMAND = {"id": 1, "peer": "17", "action": "leave", "state": "obeyed", "reason": None}
_DEEP = b"[" * 100_000


def _json(text: bytes) -> Iterator[bytes]:
    yield HEAD + b"content-length: %d\r\n\r\n" % len(text) + text


def _event(kind: str, text: bytes) -> Iterator[bytes]:
    yield HEAD + b"\r\nevent: " + kind.encode() + b"\ndata: " + text + b"\n\n"


def _for_ever(begin: bytes, more: bytes) -> Iterator[bytes]:
    yield begin
    yield from itertools.repeat(more * (1 + (1 << 16) // len(more)))


def _drip(begin: bytes) -> Iterator[bytes]:
    yield begin
    while True:
        time.sleep(0.05)
        yield b" "


ENDLESS: dict[str, Callable[[], Iterator[bytes]]] = {
    "body": lambda: _for_ever(HEAD + b"\r\n", b"x"),
    "line": lambda: _for_ever(HEAD + b"\r\nevent: interval\ndata: ", b"x"),
    "long body": lambda: _for_ever(HEAD + b"content-length: 999999999999999\r\n\r\n", b"x"),
    "first line": lambda: _for_ever(b"HTTP/1.1 200 ", b"x"),
    "headers": lambda: _for_ever(HEAD, b"a: b\r\n"),
    "steps before the answer": lambda: _for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunk": lambda: _for_ever(HEAD + b"transfer-encoding: chunked\r\n\r\nffffffffffff\r\n", b"x"),
    "chunk of no size": lambda: _for_ever(HEAD + b"transfer-encoding: chunked\r\n\r\n-1\r\n", b"x"),
    "trailers": lambda: _for_ever(HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
    "refusal": lambda: _for_ever(b"HTTP/1.1 500 Oh\r\n\r\n", b"x"),
    "drip": lambda: _drip(HEAD + b"\r\n"),
    "drip in the head": lambda: _drip(HEAD + b"a: "),
    "drip in a line": lambda: _drip(HEAD + b"\r\nevent: status\ndata: "),
}
"""They send for ever, much or little."""

WRONG: dict[str, Callable[[], Iterator[bytes]]] = {
    "nothing": lambda: iter([b""]),
    "other words": lambda: iter([b"SSH-2.0-OpenSSH_9\r\n"]),
    "deep": lambda: _json(_DEEP),
    "deep refusal": lambda: iter([b"HTTP/1.1 500 Oh\r\n\r\n" + _DEEP]),
    "digits": lambda: _json(b"9" * 10_000),
    "null": lambda: _json(b"null"),
    "a list": lambda: _json(b"[]"),
    "no members": lambda: _json(b"{}"),
    "text for an id": lambda: _json(json.dumps(_COMMAND | {"id": "1\r\nhost: x"}).encode()),
    "a large id": lambda: _json(json.dumps(_COMMAND | {"id": 10**400}).encode()),
    "another state": lambda: _json(json.dumps(_COMMAND | {"state": ["queued"]}).encode()),
    "no peer": lambda: _json(json.dumps(_COMMAND | {"peer": None}).encode()),
    "no text": lambda: _json(b"\xff\xfe"),
    "deep event": lambda: _event("status", _DEEP),
    "digits in an event": lambda: _event("interval", b'{"interval": %s}' % (b"9" * 10_000)),
    "an event of a list": lambda: _event("status", b"[1]"),
    "an event of no text": lambda: _event("status", b"\xff"),
    "an interval without number": lambda: _event("interval", b"{}"),
    "an interval of text": lambda: _event("interval", b'{"interval": "1\\r\\nhost: x"}'),
    "a huge interval": lambda: _event("interval", b'{"interval": 1e999}'),
    "an event that is ours": lambda: _event("gone", b"{}"),
    "a state of a list": lambda: _event("status", b'{"state": ["ended"], "why": 5}'),
}
"""They end."""


@dataclass
class Badly:
    """One that answers each request in the same way."""

    url: str
    sent: list[int] = field(default_factory=list)
    """Bytes to each who asked."""


@contextmanager
def answering(answer: Callable[[], Iterator[bytes]]) -> Iterator[Badly]:
    """Until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        badly = Badly(f"http://127.0.0.1:{door.getsockname()[1]}/v1/runs/lab")

        def serve() -> None:
            while True:
                connection, _ = door.accept()
                badly.sent.append(0)
                with connection, suppress(OSError):
                    connection.recv(1 << 16)
                    for chunk in answer():
                        connection.sendall(chunk)
                        badly.sent[-1] += len(chunk)

        def work() -> None:
            with suppress(OSError):  # the door is closed
                serve()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield badly
        finally:
            door.shutdown(socket.SHUT_RDWR)
            thread.join(30)
            assert not thread.is_alive()
