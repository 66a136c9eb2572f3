"""The server killed in the middle of a load: after each restart the ledger is the
relationships, and in the end everything is there once."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import replace

import psutil
import pytest
from neo4j import Driver, GraphDatabase

from tests.integration.graph.conftest import Graph, random_history
from tests.integration.graph.test_load import ledger, relationships
from vizpub.graphstore.ask.queries import ask
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.sessions import REPEAT
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import Neo4jUnavailable, RunNotComplete

pytestmark = pytest.mark.neo4j

ONCE, OFTEN = ("load links",), ("load messages", "load links", "load hops")
"""The steps in which the server is killed, one after the other."""


class Killer:
    """Kills a moment after a step has begun, once."""

    def __init__(self, kill: Callable[[], None], step: str, after: float) -> None:
        self.step, self.begun = step, False
        self.timer = threading.Timer(after, kill)

    def __call__(self, step: str, done: int, total: int, note: str = "") -> None:
        if step == self.step and not self.begun:
            self.begun = True
            self.timer.start()


def impatient(connection: Connection) -> Driver:
    """A driver that soon gives up to try again."""
    return GraphDatabase.driver(
        connection.uri,
        auth=(connection.username, connection.password),
        max_transaction_retry_time=0.5,
        connection_timeout=5,
    )


@pytest.mark.long
@pytest.mark.parametrize("steps", [ONCE, OFTEN], ids=["once", "often"])
def test_load_resumes_each_time_its_server_is_killed(
    server: LocalServer, steps: tuple[str, ...]
) -> None:
    random_ = random.Random(70)
    base = random_history(70, name="killed", peers=30, intervals=30)
    history = replace(base, batch=20)
    for step in steps:
        connection = server.start()
        process = psutil.Process(server.status().pid)
        killer = Killer(process.kill, step, random_.uniform(0, 0.1))
        with (
            impatient(connection) as driver,
            pytest.raises(Neo4jUnavailable, match=REPEAT),
        ):
            load_run(driver, "neo4j", history.facts, history.tables, killer)
        process.wait(30)
        with impatient(server.start()) as driver:
            graph = Graph(driver, "neo4j")
            found = relationships(graph, "killed")
            entered = ledger(graph, "killed")
            assert {name: entered.get(name, 0) for name in found} == found, step
            with pytest.raises(RunNotComplete):
                ask(driver, "neo4j", "overlay", {"at": 1}, run="killed")
    with impatient(server.start()) as driver:
        load_run(driver, "neo4j", history.facts, history.tables)
        assert verify_run(driver, "neo4j", history.facts, history.tables) == []
        found = relationships(Graph(driver, "neo4j"), "killed")
        assert found["links"] == len(history.rows["links"])
        assert found["hops"] + found["arrived-from-unknown"] == len(history.rows["receptions"])
