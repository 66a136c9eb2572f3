"""The server killed in the middle of a load: after each restart the ledger is the
relationships, and in the end everything is there once."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from neo4j import Driver, GraphDatabase

from graphstore.connection import Connection
from graphstore.load import load_run
from graphstore.queries import ask
from graphstore.server import LocalServer
from graphstore.verify import verify_run
from model.errors import Neo4jUnavailable, RunNotComplete, ServiceError
from tests.integration.graph.conftest import Graph, random_history
from tests.integration.graph.test_load import ledger, relationships

pytestmark = pytest.mark.neo4j

KILL_IN = ("load messages", "load links", "load hops")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    server = LocalServer(tmp_path / "home", "test")
    try:
        server.start()
    except ServiceError as error:
        if os.environ.get("REQUIRE_NEO4J") == "1":
            raise
        pytest.skip(f"no local server: {error}")
    yield server
    server.remove()


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


def test_a_load_survives_its_server(server: LocalServer) -> None:
    random_ = random.Random(70)
    base = random_history(70, name="killed", peers=60, intervals=30)
    history = replace(base, batch=20)
    for step in KILL_IN:
        connection = server.start()
        process = psutil.Process(server.status().pid)
        killer = Killer(process.kill, step, random_.uniform(0, 0.1))
        with (
            impatient(connection) as driver,
            pytest.raises(Neo4jUnavailable, match="run the same command again"),
        ):
            load_run(driver, "neo4j", history.facts, history.tables, killer)
        process.wait(30)
        with impatient(server.start()) as driver:
            graph = Graph(driver, "neo4j")
            found = relationships(graph, "killed")
            entered = ledger(graph, "killed")
            assert {name: entered.get(name, 0) for name in found} == found, step
            with pytest.raises(RunNotComplete):
                ask(driver, "neo4j", "overlay-at", {"at": 1}, run="killed")
    with impatient(server.start()) as driver:
        load_run(driver, "neo4j", history.facts, history.tables)
        assert verify_run(driver, "neo4j", history.facts, history.tables) == []
        found = relationships(Graph(driver, "neo4j"), "killed")
        assert found["links"] == len(history.rows["links"])
        assert found["hops"] + found["reached"] == len(history.rows["receptions"])
