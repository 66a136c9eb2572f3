"""Loads where the connection is cut after a commit reached the server, and before its answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.integration.graph.conftest import Graph, random_history
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.verify.verify import verify_run

pytestmark = pytest.mark.neo4j

COMMIT = b"\x00\x02\xb0\x12\x00\x00"
"""The message in Bolt: its length, a structure without fields, its tag, the end."""


class Cutting:
    """A relay to a server. Each connection ends with its n-th commit, which the server gets."""

    def __init__(self, to: tuple[str, int], commits: int) -> None:
        self._to, self._commits, self.cuts = to, commits, 0

    @contextmanager
    def open(self) -> Iterator[int]:
        """Its port."""
        with socket.create_server(("127.0.0.1", 0)) as door:
            threading.Thread(target=self._serve, args=(door,), daemon=True).start()
            yield door.getsockname()[1]
            door.shutdown(socket.SHUT_RDWR)

    def _serve(self, door: socket.socket) -> None:
        with suppress(OSError):
            while True:
                here, _ = door.accept()
                there = socket.create_connection(self._to)
                for work, ends in ((self._requests, (here, there)), (_copy, (there, here))):
                    threading.Thread(target=work, args=ends, daemon=True).start()

    def _requests(self, here: socket.socket, there: socket.socket) -> None:
        seen = 0
        with here, there, suppress(OSError):
            while data := here.recv(65536):
                seen += data.count(COMMIT)
                if seen >= self._commits:
                    self.cuts += 1
                    here.shutdown(socket.SHUT_RDWR)
                    there.sendall(data)
                    there.shutdown(socket.SHUT_WR)
                    return
                there.sendall(data)


def _copy(there: socket.socket, here: socket.socket) -> None:
    with suppress(OSError):
        while data := there.recv(65536):
            here.sendall(data)


@pytest.mark.long
def test_load_goes_on_where_the_answer_to_a_commit_is_lost(
    graph: Graph, neo4j_server: Connection
) -> None:
    history = random_history(21, name="cut-off")
    graph.remove("cut-off")
    url = urlsplit(neo4j_server.uri)
    cutting = Cutting((url.hostname or "localhost", url.port or 7687), commits=3)
    graph.load(random_history(22, name="warm"))  # its constraints and indexes are there
    with cutting.open() as port:
        there = Connection(
            f"bolt://127.0.0.1:{port}",
            neo4j_server.username,
            neo4j_server.password,
            neo4j_server.database,
        )
        with connect(there) as driver:
            loaded = load_run(driver, graph.database, history.facts, history.tables)
    print(cutting.cuts, "commits without an answer")
    assert cutting.cuts > 3
    assert loaded.links == len(history.rows["links"])
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []
    for run in ("cut-off", "warm"):
        graph.remove(run)
