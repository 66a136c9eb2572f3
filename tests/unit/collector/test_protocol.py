"""Connections whose requests do not end in time. Slow heads: `test_web`."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from collector import protocol
from tests.support.collecting import collector_in, serving


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
    monkeypatch.setattr(protocol, "BODY_S", 2)
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
    monkeypatch.setattr(protocol, "HEADERS_S", 2)
    with serve() as served, socket.create_connection(("127.0.0.1", served.port), 20) as raw:
        for _ in range(2):
            raw.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n")
            assert raw.recv(1000)
            raw.sendall(b"1")
        until_its_end(raw)
