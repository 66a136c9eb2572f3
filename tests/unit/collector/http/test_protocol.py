"""Connections whose requests do not end in time. Slow heads: `test_web`."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.collecting import Served, collector_in, serving
from vizpub.collector.http import protocol


@pytest.fixture
def serve(tmp_path: Path) -> Any:
    return lambda options=None: serving(collector_in(tmp_path, options))


def until_its_end(raw: socket.socket) -> None:
    """Raises: TimeoutError where the connection stays."""
    with suppress(ConnectionResetError):  # what was sent last is not read
        while raw.recv(1000):
            pass


def test_body_that_nobody_reads_ends_the_connection(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "BODY_S", 0.5)
    heads = (
        "GET /healthz HTTP/1.1\r\nhost: localhost",
        "POST /v1/runs/other/reports HTTP/1.1\r\nhost: x",
    )
    with serve() as served, ExitStack() as connections:
        raws = []
        for head in heads:
            raw = socket.create_connection(("127.0.0.1", served.port), 20)
            raws.append(connections.enter_context(raw))
            raw.sendall(f"{head}\r\ncontent-length: 9\r\n\r\n".encode())
        for raw in raws:
            assert raw.recv(1000)
            raw.sendall(b"1")  # it was uvicorn's wait for the next request that this ended
        for raw in raws:
            until_its_end(raw)


def test_connection_waits_for_a_request_after_a_body_that_nobody_read(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n"
    with serve() as served, socket.create_connection(("127.0.0.1", served.port), 20) as raw:
        for wait_s in (protocol.HEADERS_S, 0.1):
            raw.sendall(asked)
            assert raw.recv(1000)
            monkeypatch.setattr(protocol, "HEADERS_S", wait_s)  # it is read where the body ends
            raw.sendall(b"1")
        until_its_end(raw)


def test_answers_on_a_kept_connection_wait_for_no_acknowledgement(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket that listens without naming TCP gets no TCP_NODELAY from asyncio."""
    really, found = protocol.PatientProtocol.connection_made, list[int]()

    def made(self: protocol.PatientProtocol, transport: asyncio.Transport) -> None:
        really(self, transport)
        door = transport.get_extra_info("socket")
        found.append(door.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(protocol.PatientProtocol, "connection_made", made)
    with serve() as served:
        assert served.ask("GET", "/healthz")[0] == 200
    assert [bool(one) for one in found] == [True]


GET = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"POST /v1/runs/lab/reports HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
CHUNKED += b"content-type: application/x-ndjson\r\n\r\n"


def answers(served: Served, content: Iterable[bytes]) -> bytes:
    """To what is sent, until the connection ends. Raises: TimeoutError where it stays."""
    found = b""
    with socket.create_connection(("127.0.0.1", served.port), 20) as raw:
        with suppress(ConnectionError):
            for part in content:
                raw.sendall(part)
        with suppress(ConnectionError):
            while part := raw.recv(1 << 16):
                found += part
    return found


def test_pipeline_is_answered_up_to_its_bound(serve: Any) -> None:
    with serve() as served:
        last = GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        found = answers(served, [GET * (protocol.PIPELINE - 1) + last])
        assert found.count(b"HTTP/1.1 200") == protocol.PIPELINE
        found = answers(served, [GET * 100_000])
        assert found.count(b"HTTP/1.1 200") <= protocol.PIPELINE + 1


@pytest.mark.parametrize(
    "parts",
    [
        [b"GET /", b"x" * 2**16] * 8,
        [GET[:-2], b"a: b\r\n" * 2**16],
        [GET[:-2] + b"a: ", *[b"b" * 2**16] * 64],
        [CHUNKED + b"0\r\n", *[b"a: b\r\n" * 2**14] * 8],
        [CHUNKED + b"0\r\na: ", *[b"b" * 2**16] * 64],
        [CHUNKED + b"1;", *[b"b" * 2**16] * 64],
    ],
    ids=["target", "headers", "header", "trailers", "trailer", "extension"],
)
def test_request_with_too_much_beside_its_body_ends_the_connection(
    serve: Any, parts: list[bytes]
) -> None:
    with serve() as served:
        assert b" 200 " not in answers(served, parts)
        assert served.ask("GET", "/healthz")[0] == 200


def open_ones(served: Served, parts: list[bytes], count: int) -> int:
    """How many connections stay open that have sent these parts of a request."""
    with ExitStack() as stack:
        raws = []
        for _ in range(count):
            raw = socket.create_connection(("127.0.0.1", served.port), 20)
            raws.append(stack.enter_context(raw))
            with suppress(ConnectionError):
                for part in parts:
                    raw.sendall(part)
                    assert served.ask("GET", "/healthz")[0] == 200  # others are served meanwhile
        stay = 0
        for raw in raws:
            raw.setblocking(False)
            with suppress(ConnectionError):
                try:
                    stay += bool(raw.recv(1 << 16))
                except BlockingIOError:
                    stay += 1
        return stay


@pytest.mark.parametrize(
    "parts",
    [
        [GET[:-2], (b"a: " + b"b" * 995 + b"\r\n") * 40],
        [GET[:-2], b"a: b\r\n" * 150],
        [GET[:-2] + b"a: " + b"b" * 40_000],
    ],
    ids=["headers", "small headers", "header"],
)
def test_heads_of_all_requests_share_their_room(
    serve: Any, monkeypatch: pytest.MonkeyPatch, parts: list[bytes]
) -> None:
    """Each of these takes some 40 kB, and stays within all other bounds."""
    monkeypatch.setattr(protocol, "HEADS", 2**19)
    with serve() as served:
        assert open_ones(served, parts, 8) == 8
        assert open_ones(served, parts, 40) < 14
        assert open_ones(served, parts, 8) == 8  # what is let go is free again


def test_answered_requests_hold_nothing(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADS", 2**17)
    kept = GET[:-2] + (b"a: " + b"b" * 995 + b"\r\n") * 30 + b"\r\n"
    with serve() as served, ExitStack() as stack:
        for _ in range(30):
            raw = socket.create_connection(("127.0.0.1", served.port), 20)
            stack.enter_context(raw).sendall(kept)
            assert raw.recv(1000).startswith(b"HTTP/1.1 200")


def test_body_in_small_chunks_is_taken(serve: Any) -> None:
    body = b'{"format": "vizpub.report/1", "peer": "a", "interval": 0}' + b" " * 50_000
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\nconnection: x\r\n\r\n"
    head = CHUNKED[:-2] + b"connection: close\r\n\r\n"
    with serve() as served:
        assert b" 202 " in answers(served, [head + chunks])


def test_answer_that_nobody_reads_ends_the_connection(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "UNREAD_S", 0.1)
    monkeypatch.setattr("vizpub.collector.http.interface.page", lambda *_: "x" * 2**24)
    really, over = protocol.PatientProtocol.connection_lost, threading.Event()

    def lost(self: protocol.PatientProtocol, exc: Exception | None) -> None:
        really(self, exc)
        over.set()

    monkeypatch.setattr(protocol.PatientProtocol, "connection_lost", lost)
    with serve() as served, socket.create_connection(("127.0.0.1", served.port), 20) as raw:
        raw.sendall(GET.replace(b"/healthz", b"/metrics"))
        assert over.wait(20)


def test_requests_at_once_share_their_room(serve: Any) -> None:
    """Each of these is 130 kB as sent and 30 MB when decompressed."""
    line = b'{"format": "vizpub.report/1", "peer": "a", "interval": 0, "neighbors": []}\n'
    body = gzip.compress(line + (b" " * 1000 + b"\n") * (30 * 2**10), 9)
    with serve() as served, ThreadPoolExecutor(12) as pool:
        codes = set(pool.map(lambda _: served.post(body)[0], range(12)))
        assert codes == {202}
        room = served.web.work
        assert room.most < 3 * 30 * 2**20
        assert (room.used, room.peak <= room.most) == (0, True)
        served.web.sent.most = 100
        assert served.post(body)[0] == 503
        assert served.web.sent.used == 0
