"""The connection to a running session: a Unix socket in a folder only its owner can enter.

Any process that can connect to the socket can control the session. So the folder is checked as
ssh checks its keys, and the kernel reports the user at the other end. A killed process or a
restarted machine leaves a socket on which nothing listens, so no process number or time has to
be stored and trusted.
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

from vizpub.machine.private import check_private
from vizpub.model.errors import UseError

OTHER_USER = "another user is at the other end of the session's socket"
NO_ANSWER = "it does not answer"

Message = Mapping[str, Any]

ANSWER_S = 30.0
"""Seconds to wait for an answer."""
_NAME = "socket"
_ADDRESS_BYTES = 100
"""Most bytes of a path that every system accepts as a socket address."""
_MESSAGE_BYTES = 1 << 20


class NoAnswer(Exception):
    """A missing or invalid answer of a process that listens."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(NO_ANSWER)
        self.pid = pid


def listen(folder: Path) -> socket.socket:
    """Open a listening socket; replace the file of an earlier one. Raises: UseError."""
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
    """Return device and inode of the socket file; null if there is none."""
    try:
        status = (folder / _NAME).lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def remove(folder: Path) -> None:
    """Remove the socket file."""
    (folder / _NAME).unlink(missing_ok=True)


def connect(folder: Path) -> socket.socket | None:
    """Connect to the session; null if none listens. Raises: UseError if it is another user's."""
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
    """Check that the same user is at the other end. Raises: UseError."""
    peer = _credentials(end)
    if peer and peer[1] != os.geteuid():
        raise UseError(OTHER_USER)


def peer_pid(end: socket.socket) -> int | None:
    """Return the process at the other end, which the kernel tells; null if it does not."""
    peer = _credentials(end)
    return peer[0] or None if peer else None


def _credentials(end: socket.socket) -> tuple[int, int] | None:
    """Return process and user id of the other end; null if the system does not report them."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    credentials = end.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    pid, user, _ = struct.unpack("3i", credentials)
    return pid, user


def ask(end: socket.socket, question: Message) -> Message:
    """Send a question and return the answer. Raises: NoAnswer; EOFError if the connection ends."""
    try:
        send(end, question)
        return receive(end)
    except ConnectionError as error:
        raise EOFError from error
    except (TimeoutError, ValueError) as error:
        raise NoAnswer(peer_pid(end)) from error


def send(end: socket.socket, message: Message) -> None:
    """Send one message. Raises: OSError."""
    end.sendall(json.dumps(message).encode() + b"\n")


def receive(end: socket.socket) -> Message:
    """Receive the next message. Raises: EOFError, OSError; ValueError for invalid ones."""
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
    """Yield a path to the socket that is short enough for an address."""
    path = str(folder / _NAME)
    if len(os.fsencode(path)) <= _ADDRESS_BYTES:
        yield path
        return
    with TemporaryDirectory(prefix="vizpub-") as near:
        link = Path(near, "s")
        link.symlink_to(folder)
        yield str(link / _NAME)
