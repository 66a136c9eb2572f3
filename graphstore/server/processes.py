"""The processes of a local server's home, as the kernel knows them.

Anybody can have such a command line, and can listen at a port after a server has ended. So a
process counts as ours only if it is the very one that was written down, or, if its parent was
killed before it could write that, a Java of our user that runs Neo4j in the home.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from vizpub.graphstore.server.home import HOST, ServerHome, ServerState
from vizpub.machine.process import Birth, find_process, is_alive, is_ours, listens
from vizpub.model.errors import NO_ANSWER, Neo4jUnavailable

ANOTHER_PROCESS = "another process answers there"

_HELLO = bytes.fromhex("6060b017 00080805 00000000 00000000 00000000")
"""Bolt's handshake for the versions 5.0 to 5.8, as a driver sends it; it tells no secret."""
_ANSWER_S = 1.0


def recorded_process(state: ServerState) -> psutil.Process | None:
    """Return the server process of the state if it still runs, or else None."""
    if state.pid is None:
        return None
    return find_process(state.pid, Birth(state.boot, state.ticks))


def java_processes(home: ServerHome, main_class: str, argument: str) -> list[psutil.Process]:
    """Return our user's Java processes that run a class with an argument in the home."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = process.cmdline()
            if (
                {main_class, argument} <= {*words}
                and is_ours(process)
                and Path(process.exe()).name == "java"
                and os.path.samefile(process.cwd(), home.path)
                and is_alive(process)
            ):
                processes.append(process)
    return processes


def wait_for_end(process: psutil.Process, seconds: float) -> bool:
    """Wait for a process; return True if it ended in that time."""
    with suppress(psutil.TimeoutExpired):
        process.wait(seconds)
    return not is_alive(process)


def speaks_bolt(process: psutil.Process, port: int) -> bool:
    """Return True if the process itself, and no other, speaks Bolt at the port.

    Only the handshake is sent, which has no secrets.
    """
    with suppress(OSError), socket.create_connection((HOST, port), _ANSWER_S) as end:
        end.settimeout(_ANSWER_S)
        end.sendall(_HELLO)
        return listens(process, port) and len(end.recv(4)) > 0
    return False


def check_server(home: ServerHome, uri: str) -> None:
    """Check that the address is that of the home's server, before it is sent the password.

    Raises: Neo4jUnavailable; UseError as ServerHome.check.
    """
    home.check()
    state, port = home.read_state(), urlsplit(uri).port
    process = recorded_process(state) if state else None
    if process is None or port is None:
        raise Neo4jUnavailable(uri, NO_ANSWER)
    if not listens(process, port):
        with suppress(OSError), socket.create_connection((HOST, port), _ANSWER_S):
            raise Neo4jUnavailable(uri, f"{ANOTHER_PROCESS}, and is not sent the password")
        raise Neo4jUnavailable(uri, NO_ANSWER)
