"""What answers and is no Neo4j of ours, each as little of it as says what it is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.support.words import tells
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.driver_errors import NO_NEO4J, STOPPED, WEB_SERVER, stopped_error
from vizpub.model.errors import Neo4jUnavailable

Listen = Callable[[Callable[[socket.socket], None]], str]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Lets a function answer who connects; the address of it."""
    sockets = []

    def start(answer: Callable[[socket.socket], None]) -> str:
        sockets.append(listening := socket.create_server(("127.0.0.1", 0)))

        def serve() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    with peer, suppress(OSError):
                        answer(peer)

        threading.Thread(target=serve, daemon=True).start()
        return f"bolt://127.0.0.1:{listening.getsockname()[1]}"

    yield start
    for listening in sockets:
        listening.close()


def of_version(version: bytes, agent: str) -> Callable[[socket.socket], None]:
    """Speaks Bolt of a version, tells who it is, and says of all that is asked that it is done."""
    name = b"\xd0" + bytes([len(agent)]) + agent.encode()
    hello = b"\xa2\x86server" + name + b"\x8dconnection_id\x81x"
    done = b"\xa1\x86fields\x90"

    def answer(peer: socket.socket) -> None:
        peer.recv(20, socket.MSG_WAITALL)
        peer.sendall(version)
        if version == bytes(4):
            return
        while size := int.from_bytes(peer.recv(2, socket.MSG_WAITALL), "big"):
            is_hello = peer.recv(size + 2, socket.MSG_WAITALL)[1] == 1
            told = b"\xb1\x70" + (hello if is_hello else done)
            peer.sendall(len(told).to_bytes(2, "big") + told + b"\0\0")

    return answer


@pytest.mark.parametrize(
    ("version", "agent", "why"),
    [
        (b"\0\0\4\4", "Neo4j/4.4.41", r"Neo4j 4\.4\.41, .*Neo4j 5\.26"),
        (b"\0\0\4\5", "Neo4j/5.25.1", r"Neo4j 5\.25\.1, .*Neo4j 5\.26"),
        (b"\0\0\4\4", "Neo4j/5.2.0 compatible - Memgraph", r"Memgraph, .*Neo4j 5\.26"),
        (bytes(4), "Neo4j/3.3.9", NO_NEO4J),
    ],
)
def test_server_of_an_unsupported_version_is_refused(
    listen: Listen, version: bytes, agent: str, why: str
) -> None:
    with pytest.raises(Neo4jUnavailable, match=why) as error:
        connect(Connection(listen(of_version(version, agent)), "neo4j", "s3cret"), timeout_s=5)
    tells(error.value.hint, "NEO4J_URI", "vizpub neo4j start")
    assert "s3cret" not in str(error.value)


def test_web_server_at_the_bolt_address_is_refused(listen: Listen) -> None:
    uri = listen(lambda peer: peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(Neo4jUnavailable, match=WEB_SERVER):
        connect(Connection(uri, "neo4j", "x"), timeout_s=5)


@pytest.mark.parametrize("code", ["TransactionLogError", "TransactionStartFailed"])
def test_stopped_database_error_names_a_full_disk_as_cause(code: str) -> None:
    told = stopped_error("bolt://db", f"Neo.DatabaseError.Transaction.{code}")
    assert told
    tells(told.why, STOPPED)
    assert stopped_error("bolt://db", "Neo.ClientError.Transaction.TransactionTimedOut") is None
