"""Workspaces in stores: in a real server of S3, and in HDFS (tests/support/hdfs.py).

The server of S3 is a process of its own, behind a proxy that can make requests fail. moto honours
If-Match and If-None-Match, but checks and writes without a lock between: of two writers at once
both would succeed. So the proxy lets the writes of one object pass one by one.
"""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from uuid import uuid4

import pyarrow as pa
import pytest

from tests.support.broker import free_ports
from tests.support.tables import EMPTY, add
from vizpub.runstore.store import StoredRun
from vizpub.runstore.stores import objects
from vizpub.runstore.stores.place import folder_of, store_of_run
from vizpub.runstore.writer import writing

Fault = Literal["503", "slow-down", "cut", "lost", "half", "expired"]
"""503 and slow-down: the server refuses; cut: the connection ends before the request takes effect;
lost: after it took effect, without an answer; half: within the answer; expired: the server refuses
the token.
"""
Machine = Callable[[str], Path]
"""Gives the folder of a workspace on a machine of that name."""
_SLOW = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
_EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>"
_WAIT_S = 60
BUCKET = "tests"
_HOP = ("connection", "transfer-encoding", "content-length", "server", "date")


@dataclass(kw_only=True)
class Server:
    """A store whose requests can fail."""

    requests: list[str] = field(default_factory=list)
    """Method and path of each request that came."""
    fault: Callable[[str], Fault | None] = lambda _: None
    """What becomes of a request, given by method and path."""

    @property
    def is_s3(self) -> bool:
        return self.top().startswith("s3:")

    def top(self) -> str:
        """The address of all workspaces."""
        raise NotImplementedError

    def let_in(self, patch: pytest.MonkeyPatch) -> None:
        """Let this process be one of its users."""
        raise NotImplementedError

    @contextmanager
    def failing(self, fault: Callable[[str], Fault | None]) -> Iterator[None]:
        """Let requests fail for the length of the block."""
        self.fault = fault
        try:
            yield
        finally:
            self.fault = lambda _: None

    @contextmanager
    def counting(self) -> Iterator[list[str]]:
        """The requests that come in the block."""
        first, seen = len(self.requests), list[str]()
        yield seen
        seen += self.requests[first:]


@dataclass
class S3Server(Server):
    """The server behind its proxy."""

    port: int
    proxy: ThreadingHTTPServer
    writes: defaultdict[str, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.proxy.server_address[1]}"

    def top(self) -> str:
        return f"s3://{BUCKET}"

    def let_in(self, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "a secret of tests")
        patch.setenv("AWS_ENDPOINT_URL", self.endpoint)

    def make_bucket(self, name: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("PUT", f"/{name}")
        assert connection.getresponse().status == 200
        connection.close()


class _Handler(BaseHTTPRequestHandler):
    """Hands a request on, or lets it fail."""

    protocol_version = "HTTP/1.1"
    at: S3Server

    def _hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = f"{self.command} {self.path}"
        self.at.requests.append(request)
        fault = self.at.fault(request)
        if fault == "cut":
            return self._hang_up()
        if fault == "expired":
            return self._answer(400, [], _EXPIRED)
        if fault in ("503", "slow-down"):
            return self._answer(503, [], _SLOW if fault == "slow-down" else b"")
        connection = http.client.HTTPConnection("127.0.0.1", self.at.port, timeout=_WAIT_S)
        alone = self.at.writes[self.path.partition("?")[0]] if self.command == "PUT" else None
        with alone or threading.Lock():
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            content = answer.read()
        connection.close()
        if fault == "lost":
            return self._hang_up()
        return self._answer(answer.status, answer.getheaders(), content, is_half=fault == "half")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _hand_on

    def _answer(
        self, status: int, headers: list[tuple[str, str]], body: bytes, *, is_half: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
        length = dict(headers).get("Content-Length") if self.command == "HEAD" else len(body)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_half else body)
        if is_half:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(2)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed has hung up."""


@contextmanager
def serving() -> Iterator[S3Server]:
    """A server, for the length of the block."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    class Handler(_Handler):
        """Of this server alone."""

    proxy = _Proxy(("127.0.0.1", 0), Handler)
    Handler.at = server = S3Server(port, proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        _wait_for(port)
        yield server
    finally:
        proxy.shutdown()
        proxy.server_close()
        process.kill()
        process.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + _WAIT_S
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/")
            connection.getresponse().read()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@pytest.fixture(scope="session")
def one_server() -> Iterator[S3Server]:
    with serving() as server:
        server.make_bucket(BUCKET)
        yield server


@pytest.fixture(params=["s3", pytest.param("hdfs", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Each store in turn, unless the test has chosen one by `in_s3` or `in_hdfs`."""
    fixtures = {"s3": "one_server", "hdfs": "one_cluster"}
    server: Server = request.getfixturevalue(fixtures[request.param])
    server.let_in(monkeypatch)
    monkeypatch.setattr(objects, "_PAUSES_S", (0.01,) * 12)
    return server


in_s3 = pytest.mark.parametrize("server", ["s3"], indirect=True)
in_hdfs = pytest.mark.parametrize("server", ["hdfs"], indirect=True)


@pytest.fixture
def url(server: Server) -> str:
    """An empty workspace."""
    return f"{server.top()}/{uuid4().hex}/ws"


@pytest.fixture
def machine(server: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The folder of the workspace on a machine of that name, which all later calls are on."""

    def go_to(name: str) -> Path:
        monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / name))
        return folder_of(url)

    return go_to


@pytest.fixture
def workspace(machine: Machine) -> Path:
    return machine("here")


def object_of(request: str) -> str:
    """'PUT /bucket/ws/runs/lab/run.json' → 'PUT run.json': what a request is for."""
    method, _, path = request.partition(" ")
    return f"{method} {re.sub(r'[?].*', '', path).rpartition('/')[2]}"


def ingest_links(workspace: Path, rows: pa.Table, name: str = "monday") -> None:
    """A run with such links, or another one in its place."""
    with writing(workspace, name) as writer:
        writer.begin(replace(EMPTY, name=name))
        add(writer, "versions", "links", rows, state="complete")


def check_objects(run: StoredRun) -> None:
    """The store has the files that run.json names, and of others only what a commit let go."""
    store, manifest = store_of_run(run.directory), run.manifest
    assert store
    top = f"runs/{run.name}"
    named = {
        f"{top}/{part.directory}/{file.name}"
        for part in manifest.parts
        for file in part.files or ()
    }
    kept = tuple(f"{top}/{name}" for name in manifest.let_go)
    there = {one.name for one in store.walk(f"{top}/data")}
    assert sorted(name for name in there if not name.startswith(kept)) == sorted(named)
    assert [one.name for one in store.walk("") if not one.name.startswith("runs/")] == []
