"""A growth that is stopped before and after each transaction, or whose server is killed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from neo4j import Driver, ManagedTransaction, Session

from tests.integration.graph.conftest import Graph
from tests.integration.graph.everything import everything
from tests.integration.graph.test_growth import (
    RUN,
    answer,
    grow,
    growing,
    load,
    questions,
    removed,
    same,
    some,
)
from tests.integration.graph.test_kill import Killer, impatient
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import run_properties
from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import Neo4jUnavailable, UseError

pytestmark = pytest.mark.neo4j

__all__ = ["removed"]

STOPS = ((1, False), (2, False), (2, True))
"""Transactions that a growth is stopped with, and whether they are committed. The first one begins
the growth, so the second one is the next that has something to do."""


class Stopped(Exception):
    """What stops a growth."""


@dataclass
class Stopping:
    """A session that stops with one of its transactions."""

    session: Session
    stop: int
    committed: bool
    number: int = 0

    def execute_write(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """As Session."""

        def undone(transaction: ManagedTransaction) -> None:
            work(transaction, *arguments)
            raise Stopped

        self.number += 1
        if self.number == self.stop and not self.committed:
            self.session.execute_write(undone)
        result = self.session.execute_write(work, *arguments)
        if self.number == self.stop:
            raise Stopped
        return result


@dataclass
class Repeating:
    """A session that does each transaction twice, as where the answer to a commit is lost."""

    session: Session

    def execute_write(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """As Session."""
        result = self.session.execute_write(work, *arguments)
        with suppress(UseError):  # after the last one nobody grows the copy
            self.session.execute_write(work, *arguments)
        return result


@contextmanager
def growths_write_through(kind: Callable[[Session], object]) -> Iterator[None]:
    """In the block."""

    @contextmanager
    def writing(driver: Driver, database: str) -> Iterator[object]:
        with sessions.writing(driver, database) as session:
            yield kind(session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vizpub.graphstore.load.growth.sessions", SimpleNamespace(writing=writing))
        yield


def held(graph: Graph) -> str:
    """The tables that the copy is of."""
    properties = run_properties(graph.driver, graph.database, RUN)
    assert properties
    return str(properties["tables"])


@pytest.mark.long
@pytest.mark.usefixtures("removed")
@pytest.mark.parametrize(
    ("seed", "partition", "rows"),
    [(3, 2, 10_000), (3, 0, 10_000), (4, 0, 8), (19, 3, 16)],
)
def test_growth_stopped_before_and_after_every_transaction_goes_on(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, seed: int, partition: int, rows: int
) -> None:
    """Answers about times before the boundary are always the same. Large batches are only once
    stopped before they begin.
    """
    run = growing(seed, batch=37, peers=16)
    for module in ("growth", "growing_copy"):
        monkeypatch.setattr(f"vizpub.graphstore.load.{module}.ROWS_PER_BATCH", rows)
    load(graph, run.before, partition)
    asked = some(questions(run))
    before = [answer(graph, run, *question) for question in asked]
    assert {name for name, _ in asked} > {"history", "topics", "overlay", "degree-change"}
    done, share = 0, 3 if rows > 1_000 else 1
    while held(graph) == "before":
        for stop, committed in STOPS[done > 0 and share > 1 :]:
            kind = partial(Stopping, stop=stop, committed=committed)
            with pytest.raises(Stopped), growths_write_through(kind):
                grow(graph, run)
        done += 1
        for place in range(done % share, len(asked), share):
            assert answer(graph, run, *asked[place]) == before[place], (done, asked[place])
    print(done, "transactions")
    assert done > 12
    assert grow(graph, run).already_complete
    grown = everything(graph)
    graph.remove(RUN)
    load(graph, run.after, partition)
    same(grown, everything(graph))


@pytest.mark.usefixtures("removed")
def test_transaction_whose_answer_is_lost_is_done_once(graph: Graph) -> None:
    run = growing(12, batch=37)
    load(graph, run.before, 2)
    with growths_write_through(Repeating):
        assert grow(graph, run).grown
    grown = everything(graph)
    graph.remove(RUN)
    load(graph, run.after, 2)
    same(grown, everything(graph))


@pytest.mark.long
def test_growth_goes_on_each_time_its_server_is_killed(server: LocalServer) -> None:
    run = growing(8, batch=37, peers=30, intervals=30)
    with connect(server.start()) as driver:
        load(Graph(driver, "neo4j"), run.before)
    for step in ("grow nodes", "grow links", "grow messages", "grow what ended", "grow facts"):
        connection = server.start()
        process = psutil.Process(server.status().pid)
        killer = Killer(process.kill, step, random.Random(step).uniform(0, 0.1))
        with impatient(connection) as driver, suppress(Neo4jUnavailable):
            load_run(driver, "neo4j", run.after.facts, run.tables, killer)
        if killer.begun:  # else an earlier growth ended before its server did
            process.wait(30)
    with impatient(server.start()) as driver:
        graph = Graph(driver, "neo4j")
        load_run(driver, "neo4j", run.after.facts, run.tables)
        assert verify_run(driver, "neo4j", run.after.facts, run.tables) == []
        grown = everything(graph)
        graph.remove(RUN)
        load(graph, run.after)
        same(grown, everything(graph))
