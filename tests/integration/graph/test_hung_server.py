"""A server that works is waited for; one that hangs, or is killed, is given up in words."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.graph.conftest import Calls
from tests.support.ingested import Store, workspace_of
from tests.support.words import tells
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.settings import PROFILES

pytestmark = pytest.mark.neo4j

KEEP_ALIVE_S = 5
"""How often it says that it works on a request."""


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[LocalServer]:
    """One that a test may hang and kill."""
    server = LocalServer(home, "test")
    server.stop()
    with pytest.MonkeyPatch.context() as patch:
        settings = PROFILES["test"].settings
        patch.setitem(settings, "server.bolt.connection_keep_alive", f"{KEEP_ALIVE_S}s")
        yield server
        server.stop()


@pytest.fixture
def vizpub(server: LocalServer, stored: Store) -> Calls:
    """With a run, which only this file loads."""
    return Calls(workspace_of(stored("tiny")), server.start())


def pid_of(server: LocalServer) -> int:
    found = server.status().pid
    assert found
    return found


@pytest.mark.long
def test_server_that_works_is_waited_for(server: LocalServer) -> None:
    """On a single row, in which it looks at no clock, longer than it may be silent."""
    text = "RETURN reduce(a = 0, x IN range(1, $n) | a + x % 7) AS y"
    with connect(server.start()) as driver:
        for power in itertools.count(20):
            began = time.monotonic()
            assert sessions.rows(driver, "neo4j", text, {"n": 2**power})
            if time.monotonic() - began > 3 * KEEP_ALIVE_S:
                break


def fail_at(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int, fail: Callable[[], None]
) -> list[int]:
    """Let something fail at a call of `sessions`, once; the list has whether it did."""
    real: Callable[..., Any] = getattr(sessions, name)
    calls, done = itertools.count(), []

    def call(*given: Any) -> Any:
        if next(calls) == number:
            done.append(number)
            fail()
        return real(*given)

    monkeypatch.setattr(sessions, name, call)
    return done


HANG, KILL = signal.SIGSTOP, signal.SIGKILL
LONG = [
    *(("neo4j verify tiny", "rows", number, how) for number in (0, 1, 9) for how in (HANG, KILL)),
    *(("neo4j load tiny", "write", number, how) for number in (0, 5, 12) for how in (HANG, KILL)),
    *(("neo4j load tiny", "rows", number, how) for number in (1, 9) for how in (HANG, KILL)),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "of", "number", "how"), [("neo4j verify tiny", "rows", 5, HANG), *LONG]
)
def test_command_gives_up_a_server_in_the_middle_and_can_be_repeated(
    server: LocalServer,
    vizpub: Calls,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    of: str,
    number: int,
    how: signal.Signals,
) -> None:
    assert vizpub("neo4j", "rebuild", "tiny").exit_code == 0
    if command.startswith("neo4j load"):
        with connect(vizpub.connection) as driver:
            remove_run(driver, "neo4j", "tiny")
    pid = pid_of(server)
    with monkeypatch.context() as patch:
        failed = fail_at(patch, of, number, lambda: os.kill(pid, how))
        done = vizpub(*command.split())
    assert failed
    assert done.exit_code == 3, done.output
    tells(done.stderr, "Neo4j", "again")
    assert "unexpected" not in done.output
    assert "Traceback" not in done.output
    if how == HANG:
        os.kill(pid, signal.SIGCONT)
    server.start()
    assert vizpub(*command.split()).exit_code == 0
    assert vizpub("neo4j", "verify", "tiny").exit_code == 0
