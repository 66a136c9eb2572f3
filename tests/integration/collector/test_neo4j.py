"""A collected run in Neo4j: it grows with the run, and is caught up after Neo4j was away."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.collector.test_batches import START, reports_of
from tests.support.collected import PATIENCE_S, QUICK, ROOT, Collecting, last_of, running, until
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.model.errors import UnknownName
from vizpub.reports.client import Reporter

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.neo4j, pytest.mark.timeout(1800)]


class Relay:
    """A port that leads to Neo4j while it is open, and refuses connections while it is not."""

    def __init__(self, to: Connection) -> None:
        url = urlsplit(to.uri)
        self._to = (url.hostname or "localhost", url.port or 7687)
        with socket.create_server(("127.0.0.1", 0)) as door:
            self.port: int = door.getsockname()[1]
        self.environment = {
            "NEO4J_URI": f"bolt://127.0.0.1:{self.port}",
            "NEO4J_USERNAME": to.username,
            "NEO4J_PASSWORD": to.password,
            "NEO4J_DATABASE": to.database,
        }

    @contextmanager
    def open(self) -> Iterator[None]:
        with socket.create_server(("127.0.0.1", self.port)) as door:
            thread = threading.Thread(target=self._serve, args=(door,))
            thread.start()
            try:
                yield
            finally:
                door.shutdown(socket.SHUT_RDWR)
                thread.join()

    def _serve(self, door: socket.socket) -> None:
        with suppress(OSError):
            while True:
                here, _ = door.accept()
                there = socket.create_connection(self._to)
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=_copy, args=pair, daemon=True).start()


def _copy(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError), source, to:
        while content := source.recv(1 << 16):
            to.sendall(content)


@pytest.mark.long
def test_neo4j_that_was_away_is_caught_up(neo4j_server: Connection, tmp_path: Path) -> None:
    seed = 31
    print("seed", seed)
    told, relay = reports_of(seed, 3), Relay(neo4j_server)
    case = Collecting(tmp_path, ("--no-token",), relay.environment)
    with running(case), Reporter(case.url, pace=QUICK) as reporter:

        def post(number: int) -> None:
            for record in told[number]:
                reporter.line(json.dumps(record).encode())
            assert reporter.flush(PATIENCE_S)
            until(lambda: last_of(case.place) == START + number)

        def progress(name: str) -> object:
            return case.answering().get()["progress"][name]

        post(0)
        until(lambda: progress("load_error") is not None)
        post(1)  # reports are taken and appended without it
        with relay.open():
            until(lambda: progress("in_neo4j") == START + 1)
            assert progress("load_error") is None
        post(2)
        until(lambda: progress("load_error") is not None)
        with relay.open():
            until(lambda: progress("in_neo4j") == START + 2)
            case.stop()
            vizpub = case.command()[: case.command().index("live")]
            environment = {**os.environ, **relay.environment}
            subprocess.run(
                [*vizpub, "neo4j", "verify", "lab"], cwd=ROOT, env=environment, check=True
            )


@pytest.fixture(autouse=True)
def removed(neo4j_server: Connection) -> Iterator[None]:
    yield
    with connect(neo4j_server) as driver, suppress(UnknownName):
        remove_run(driver, neo4j_server.database, "lab")
