"""The processes of a local server's home, as the kernel knows them.

A command line can be anybody's, and a port is free for anybody when a server has ended. So one
is taken for ours if it is the very process that was written down, or, where who started it was
killed before it could write, a Java of ours that runs Neo4j in the home.
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
"""Bolt's first words: who we are not, and the versions 5.0 to 5.8 (a driver asks the same)."""
_ANSWER_S = 1.0


def recorded_process(state: ServerState) -> psutil.Process | None:
    """The server that was written down, if it still runs and is the same one."""
    if state.pid is None:
        return None
    return find_process(state.pid, Birth(state.boot, state.ticks))


def running(home: ServerHome, main_class: str, argument: str) -> list[psutil.Process]:
    """The Javas of ours that run that class with that argument in the home."""
    found = []
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
                found.append(process)
    return found


def ends(process: psutil.Process, seconds: float) -> bool:
    """Whether it ends in that time."""
    with suppress(psutil.TimeoutExpired):
        process.wait(seconds)
    return not is_alive(process)


def answers(process: psutil.Process, port: int) -> bool:
    """Whether that process, and no other one, says at the port that it speaks Bolt.

    Nothing is said there that others may not know.
    """
    with suppress(OSError), socket.create_connection((HOST, port), _ANSWER_S) as end:
        end.settimeout(_ANSWER_S)
        end.sendall(_HELLO)
        return listens(process, port) and len(end.recv(4)) > 0
    return False


def check_server(home: ServerHome, uri: str) -> None:
    """See that who will be sent the password at that address is the server of the home.

    Raises: Neo4jUnavailable; UseError as ServerHome.check.
    """
    home.check()
    state, port = home.read_state(), urlsplit(uri).port
    process = recorded_process(state) if state else None
    if process is None or port is None:
        raise Neo4jUnavailable(uri, NO_ANSWER)
    if not listens(process, port):
        if _is_taken(port):
            raise Neo4jUnavailable(uri, f"{ANOTHER_PROCESS}, and is not sent the password")
        raise Neo4jUnavailable(uri, NO_ANSWER)


def _is_taken(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), _ANSWER_S):
        return True
    return False
