"""What listens where a Neo4j is looked for, and is none, or is one that fails."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

Talk = Callable[[socket.socket], None]
"""What a server does with a connection."""

_SUCCESS, _FAILURE, _RECORD = b"\x70", b"\x7f", b"\x71"
_MOST = 1 << 16


def text(value: bytes) -> bytes:
    """A text of less than 256 bytes, in PackStream."""
    return b"\xd0" + bytes([len(value)]) + value


def mapping(**values: bytes) -> bytes:
    """A map of packed values, in PackStream."""
    pairs = (text(name.encode()) + value for name, value in values.items())
    return bytes([0xA0 + len(values)]) + b"".join(pairs)


def message(kind: bytes, packed: bytes) -> bytes:
    """A message of Bolt in one chunk."""
    whole = b"\xb1" + kind + packed
    return len(whole).to_bytes(2, "big") + whole + b"\x00\x00"


def _say(words: bytes, connection: socket.socket) -> None:
    connection.recv(_MOST)
    connection.sendall(words)


def _for_ever(words: bytes, connection: socket.socket) -> None:
    while True:
        connection.sendall(words)


def _close(connection: socket.socket) -> None:
    del connection


def _bolt(*answers: bytes, version: bytes = b"\x00\x00\x04\x05") -> Talk:
    """A handshake, then the answers, each to what comes next; the last one to all that follows, or
    the end where an answer is empty.
    """

    def talk(connection: socket.socket) -> None:
        connection.recv(_MOST)
        connection.sendall(version)
        last = b""
        for answer in answers:
            if not connection.recv(_MOST):
                return
            if not answer:
                return
            connection.sendall(answer)
            last = answer
        while connection.recv(_MOST):
            connection.sendall(last)

    return talk


def _hello(agent: bytes) -> bytes:
    """The answers to HELLO and LOGON, which come together."""
    told = {"server": text(agent), "connection_id": text(b"bolt-1")}
    return message(_SUCCESS, mapping(**told)) + OK


def _failure(code: bytes, words: bytes = b"no") -> bytes:
    return message(_FAILURE, mapping(code=text(code), message=text(words)))


OK = message(_SUCCESS, b"\xa0")
NEO4J = _hello(b"Neo4j/5.26.0")
ROW = message(_SUCCESS, mapping(fields=b"\x91" + text(b"1"))) + message(_RECORD, b"\x91\x91\x01")
"""The answers to RUN and PULL, which come together."""
AT_ONCE: dict[str, Talk] = {
    "closes": _close,
    "web server": partial(_say, b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"),
    "ssh": partial(_say, b"SSH-2.0-OpenSSH_9\r\n"),
    "redis": partial(_say, b"-ERR unknown command\r\n"),
    "zeros": partial(_for_ever, bytes(1000)),
    "letters": partial(_for_ever, b"x" * 1000),
    "no version": partial(_say, bytes(4)),
    "version of the future": partial(_say, b"\x00\x00\x00\xfe"),
    "half a version": partial(_say, b"\x00\x00"),
    "no message": _bolt(b"\x00\x02xx\x00\x00"),
    "message of an unknown kind": _bolt(message(b"\x33", b"\xa0")),
    "answer without a map": _bolt(message(_SUCCESS, b"\x01")),
    "no text": _bolt(message(_SUCCESS, mapping(server=text(b"\xff\xfe")))),
    "failure without a code": _bolt(message(_FAILURE, b"\xa0")),
    "failure with a number": _bolt(message(_FAILURE, mapping(code=b"\x01", message=b"\x02"))),
    "failure of an unknown code": _bolt(_failure(b"Some.Other.Code.Here")),
    "failure without dots": _bolt(_failure(b"oops")),
    "memgraph": _bolt(_hello(b"Neo4j/v5.11.0 compatible graph database - Memgraph"), ROW + OK),
    "other product": _bolt(_hello(b"OtherDB/1.0"), ROW + OK),
    "agent without a version": _bolt(_hello(b"Neo4j/"), ROW + OK),
    "agent of letters": _bolt(_hello(b"Neo4j/a.b"), ROW + OK),
    "agent that is a number": _bolt(message(_SUCCESS, mapping(server=b"\x07")) + OK, ROW + OK),
    "refuses reading": _bolt(NEO4J, _failure(b"Neo.ClientError.Security.Forbidden")),
    "has no such database": _bolt(NEO4J, _failure(b"Neo.ClientError.Database.DatabaseNotFound")),
    "fails inside": _bolt(NEO4J, _failure(b"Neo.DatabaseError.General.UnknownError", b"")),
    "fails later": _bolt(NEO4J, ROW + OK, _failure(b"Neo.DatabaseError.General.UnknownError")),
}  # fmt: skip
"""They answer, or close the connection, at once."""


def _hang(*answers: bytes) -> Talk:
    """A handshake, then an answer to each of what comes next, and none to what follows."""

    def talk(connection: socket.socket) -> None:
        for answer in answers:
            if connection.recv(_MOST):
                connection.sendall(answer)
        while connection.recv(_MOST):
            pass

    return talk


_VERSION = b"\x00\x00\x04\x05"
MUTE: dict[str, Talk] = {"says nothing": _hang(), "only has a version": _hang(_VERSION)}
HUNG: dict[str, Talk] = {
    "only greets": _hang(_VERSION, NEO4J),
    "answers once": _hang(_VERSION, NEO4J, ROW + OK),
    "answers half": _hang(_VERSION, NEO4J, ROW + OK, ROW[:9]),
}
"""They greet as Neo4j does, and are silent sooner or later; the mute ones before that."""


@contextmanager
def listening(talk: Talk) -> Iterator[int]:
    """A server that talks so, for the length of the block; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, talk), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def _serve(server: socket.socket, talk: Talk) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_talk, args=(connection, talk), daemon=True).start()


def _talk(connection: socket.socket, talk: Talk) -> None:
    with connection, suppress(OSError):
        talk(connection)
