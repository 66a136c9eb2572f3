"""The connection to a running session: a Unix socket in a folder only its owner can enter.

Whoever can reach the socket may give orders, so the folder is looked at as ssh looks at its
keys, and the kernel is asked who is at the other end. It also knows whether anybody is: a
process that was killed, or a machine that was restarted, leaves a file at which nobody
listens. So nothing that is written down has to be believed, neither a process's number nor
a time.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from model.errors import UseError
from model.private import check_private

Message = Mapping[str, Any]

ANSWER_S = 30.0
"""A process that takes longer to answer is taken for one that never will."""
_NAME = "socket"
_ADDRESS_BYTES = 100
"""Of a path that every system takes for a socket's address."""
_MESSAGE_BYTES = 1 << 20


class NoAnswer(Exception):
    """Somebody listens, but says nothing, or nothing that is understood."""

    def __init__(self, pid: int | None) -> None:
        super().__init__("it does not answer")
        self.pid = pid


def listen(folder: Path) -> socket.socket:
    """A socket to accept at; what lay there of one that is gone is replaced. Raises: UseError."""
    door = socket.socket(socket.AF_UNIX)
    try:
        with _address(folder) as address:
            Path(address).unlink(missing_ok=True)
            door.bind(address)
        door.listen()
    except OSError as error:
        door.close()
        raise UseError(f"{folder} cannot hold a socket: {error}") from error
    return door


def identity(folder: Path) -> tuple[int, int] | None:
    """Which socket lies there; null if none does."""
    try:
        found = (folder / _NAME).lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove(folder: Path) -> None:
    """Take the socket away."""
    (folder / _NAME).unlink(missing_ok=True)


def connect(folder: Path) -> socket.socket | None:
    """A connection to who listens; null if nobody does. Raises: UseError if it is not ours."""
    try:
        check_private(folder)
    except FileNotFoundError:
        return None
    end = socket.socket(socket.AF_UNIX)
    end.settimeout(ANSWER_S)
    try:
        with _address(folder) as address:
            end.connect(address)
        check_peer(end)
    except (FileNotFoundError, ConnectionError):
        end.close()
        return None
    except BaseException:
        end.close()
        raise
    return end


def check_peer(end: socket.socket) -> None:
    """Raises: UseError where another user is at the other end."""
    peer = _credentials(end)
    if peer and peer[1] != os.geteuid():
        raise UseError("another user is at the other end of the session's socket")


def peer_pid(end: socket.socket) -> int | None:
    """The process at the other end, as the kernel knows it; null where it does not tell."""
    peer = _credentials(end)
    return peer[0] or None if peer else None


def _credentials(end: socket.socket) -> tuple[int, int] | None:
    """Process and user; null where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    told = end.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    pid, user, _ = struct.unpack("3i", told)
    return pid, user


def ask(end: socket.socket, question: Message) -> Message:
    """What the other end answers. Raises: NoAnswer; EOFError where it ends instead."""
    try:
        send(end, question)
        return receive(end)
    except ConnectionError as error:
        raise EOFError from error
    except (TimeoutError, ValueError) as error:
        raise NoAnswer(peer_pid(end)) from error


def send(end: socket.socket, message: Message) -> None:
    """One message. Raises: OSError."""
    end.sendall(json.dumps(message).encode() + b"\n")


def receive(end: socket.socket) -> Message:
    """The next message. Raises: EOFError, OSError, ValueError for what is none."""
    with end.makefile("rb") as stream:
        line = stream.readline(_MESSAGE_BYTES)
    if not line:
        raise EOFError
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("not a message")
    return message


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """The socket's path, short enough for an address."""
    path = str(folder / _NAME)
    if len(os.fsencode(path)) <= _ADDRESS_BYTES:
        yield path
        return
    with TemporaryDirectory(prefix="vizpub-") as near:
        link = Path(near, "s")
        link.symlink_to(folder)
        yield str(link / _NAME)
