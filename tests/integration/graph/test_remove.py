"""A removed run is gone, alone, and a half removed one answers nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration.graph.conftest import Graph, random_history
from tests.integration.graph.test_kill import impatient
from tests.support.few import few
from tests.support.words import naming, unfinished, unknown
from vizpub.graphstore.ask.queries import ask
from vizpub.graphstore.load import remove
from vizpub.graphstore.load.growth import IN_OTHER_HANDS
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import run_names
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.sessions import REPEAT
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import Neo4jUnavailable, RunNotComplete, UnknownName, UseError

pytestmark = pytest.mark.neo4j
LONG = pytest.mark.long

ROOT = Path(__file__).parents[3]


class Interrupted(Exception):
    """What the test stops a removal with."""


def counted(graph: Graph) -> Counter[tuple[str, str]]:
    """How many nodes and relationships of which kind each run has, by its keys."""
    nodes = graph.ask(
        "MATCH (n) RETURN split(split(n.key, '/')[0], '|')[0] AS run, labels(n)[0], count(*)"
    )
    relationships = graph.ask(
        "MATCH (n)-[r]->() RETURN split(n.key, '/')[0] AS run, type(r), count(*)"
    )
    return Counter({(run, kind): rows for run, kind, rows in (*nodes, *relationships)})


def of(run: str, counts: Counter[tuple[str, str]]) -> int:
    return sum(rows for (of, _), rows in counts.items() if of == run)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remove, "ROWS_PER_BATCH", 7)
    monkeypatch.setattr(remove, "NODES_PER_CHUNK", 5)


def test_removed_run_is_gone_and_other_runs_stay(graph: Graph, loaded: Any) -> None:
    kept = [loaded(random_history(50, name=name, peers=6)) for name in ("a", "a.b", "a-b")]
    before = counted(graph)
    loaded(random_history(51, name="a-b-"))
    remove_run(graph.driver, graph.database, "a-b-")
    assert "a-b-" not in run_names(graph.driver, graph.database)
    of_it = graph.ask(
        "MATCH (n) WHERE n.run = $run OR n.key = $run OR n.key STARTS WITH $run + '/' "
        "OR n.key STARTS WITH $run + '|' RETURN count(n)",
        run="a-b-",
    )
    relationships = graph.ask("MATCH ()-[r]->() WHERE r.run = $run RETURN count(r)", run="a-b-")
    assert of_it == relationships == [[0]]
    assert counted(graph) == before
    assert verify_run(graph.driver, graph.database, kept[-1].facts, kept[-1].tables) == []


@pytest.mark.usefixtures("small_batches")
def test_progress_counts_removed_rows_in_small_batches(graph: Graph, loaded: Any) -> None:
    loaded(random_history(54, name="told", peers=6, messages=8))
    there = of("told", counted(graph))
    told = []

    def progress(step: str, done: int, total: int, note: str = "") -> None:
        assert step == "remove"
        assert of("told", counted(graph)) == there - done
        told.append((done, total))

    remove_run(graph.driver, graph.database, "told", progress)
    # The node of the run is the last, when the rest has been told as done.
    assert told[0] == (0, there - 1)
    assert told[-1] == (there - 1, there - 1)
    steps = {after - before for (before, _), (after, _) in pairwise(told)}
    assert max(steps) == 7


CHANGES = (None, "SET r.state = 'removing'", "SET r.state = 'complete', r.tables = 'others'")
CHANGED = [*product(CHANGES, ("load links", "verify"))]


@pytest.mark.parametrize(
    ("change", "step_of_change"), few(CHANGED, [CHANGED[i] for i in (0, 2, 5)])
)
def test_load_of_a_run_that_others_remove_or_replace_writes_nothing(
    graph: Graph, change: str | None, step_of_change: str
) -> None:
    """As where a collector was killed, and its last load goes on for a moment."""
    history, before = random_history(59, name="loading"), counted(graph)
    begun = []

    def remove_once(step: str, done: int, total: int, note: str = "") -> None:
        if step == step_of_change and done == total and not begun:
            begun.append(step)
            if change is None:
                remove_run(graph.driver, graph.database, "loading")
            else:  # it goes on, and was begun
                graph.ask(f"MATCH (r:Run {{key: 'loading'}}) {change}")

    with pytest.raises(UseError, match=naming("'loading'", IN_OTHER_HANDS)):
        load_run(graph.driver, graph.database, history.facts, history.tables, remove_once)
    assert begun
    if change:
        remove_run(graph.driver, graph.database, "loading")
    assert counted(graph) == before


def test_relationships_of_unexpected_types_are_removed(graph: Graph, loaded: Any) -> None:
    """Whatever begins at a peer or message of the run, if nobody here has heard of its type."""
    loaded(random_history(55, name="more"))
    other = loaded(random_history(55, name="other"))
    for type_ in ("HOP", "SUBSCRIBES"):
        graph.ask(
            f"MATCH (a:Peer {{key: $run + '/0'}})-[:{type_}]->(b) "
            "CREATE (a)-[:HAS_ROLE {role: 'copy'}]->(b)",
            run="more",
        )
    remove_run(graph.driver, graph.database, "more")
    assert of("more", counted(graph)) == 0
    assert verify_run(graph.driver, graph.database, other.facts, other.tables) == []


def test_unknown_run_is_refused(graph: Graph, loaded: Any) -> None:
    loaded(random_history(52, name="there"))
    with pytest.raises(UnknownName, match=unknown("run", "their", "there")):
        remove_run(graph.driver, graph.database, "their")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("stop_at", few([1, 4, 40, 62], [40]))
def test_interrupted_removal_resumes_and_the_run_loads_again(
    graph: Graph, loaded: Any, stop_at: int
) -> None:
    history = loaded(random_history(53, name="half"))
    calls = 0

    def interrupt(step: str, done: int, total: int, note: str = "") -> None:
        nonlocal calls
        calls += 1
        assert done <= total
        if calls == stop_at:
            raise Interrupted

    with pytest.raises(Interrupted):
        remove_run(graph.driver, graph.database, "half", interrupt)
    with pytest.raises(
        RunNotComplete, match=naming(unfinished("half", "removing"), "vizpub runs remove")
    ):
        ask(graph.driver, graph.database, "overlay", {"at": 1}, run="half")
    if stop_at % 2:
        remove_run(graph.driver, graph.database, "half")
        assert "half" not in run_names(graph.driver, graph.database)
    load_run(graph.driver, graph.database, history.facts, history.tables)
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []


REMOVE = """
import sys
from vizpub.graphstore.load import remove
from vizpub.graphstore.load.growth import IN_OTHER_HANDS
from vizpub.graphstore.server.connection import connect, from_environment

remove.ROWS_PER_BATCH = 7
def told(step, done, total, note=""):
    print(done, total, flush=True)
    sys.stdin.readline()
with connect(from_environment()) as driver:
    remove.remove_run(driver, from_environment().database, sys.argv[1], told)
"""
"""A removal that waits for a line after each batch."""


@LONG
@pytest.mark.parametrize("batches", [1, 9])
def test_killed_removal_resumes(
    graph: Graph, loaded: Any, neo4j_server: Connection, batches: int
) -> None:
    kept = loaded(random_history(56, name="kept"))
    before = counted(graph)
    loaded(random_history(57, name="killed"))
    there = of("killed", counted(graph))
    environment = {
        **os.environ,
        "NEO4J_URI": neo4j_server.uri,
        "NEO4J_USERNAME": neo4j_server.username,
        "NEO4J_PASSWORD": neo4j_server.password,
        "NEO4J_DATABASE": neo4j_server.database,
    }
    with subprocess.Popen(
        [sys.executable, "-c", REMOVE, "killed"],
        env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as removal:  # fmt: skip
        assert removal.stdin
        assert removal.stdout
        done = 0
        for _ in range(batches):
            done = int(removal.stdout.readline().split()[0])
            removal.stdin.write("\n")
            removal.stdin.flush()
        removal.kill()
    left = of("killed", counted(graph))
    # The batch that was under way is there as a whole or not at all.
    assert there - done - 7 <= left <= there - done
    with pytest.raises(RunNotComplete):
        ask(graph.driver, graph.database, "overlay", {"at": 1}, run="killed")
    remove_run(graph.driver, graph.database, "killed")
    assert counted(graph) == before
    assert verify_run(graph.driver, graph.database, kept.facts, kept.tables) == []


@LONG
def test_removal_resumes_after_its_server_is_killed(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remove, "ROWS_PER_BATCH", 50)
    histories = [replace(random_history(58 + i, name=f"run-{58 + i}"), batch=1_000) for i in (0, 1)]
    with impatient(server.start()) as driver:
        for history in histories:
            load_run(driver, "neo4j", history.facts, history.tables)
        before = counted(Graph(driver, "neo4j"))
        process = psutil.Process(server.status().pid)
        removal = KillsAt(process, before.total() // 4)
        with pytest.raises(Neo4jUnavailable, match=REPEAT):
            remove_run(driver, "neo4j", "run-58", removal)
    process.wait(30)
    with impatient(server.start()) as driver:
        graph = Graph(driver, "neo4j")
        half = counted(graph)
        assert 0 < of("run-58", half) <= of("run-58", before) - removal.done
        assert of("run-59", half) == of("run-59", before)
        remove_run(driver, "neo4j", "run-58")
        assert {run for run, _ in counted(graph)} == {"run-59"}
        assert verify_run(driver, "neo4j", histories[1].facts, histories[1].tables) == []


class KillsAt:
    """Kills the server when so much is done."""

    def __init__(self, server: psutil.Process, at: int) -> None:
        self.server, self.at, self.done = server, at, 0

    def __call__(self, step: str, done: int, total: int, note: str = "") -> None:
        self.done = done
        if done >= self.at:
            self.server.kill()
