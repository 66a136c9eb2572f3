"""Runs beside each other in one database: none sees or touches another, whatever is going on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import StringIO
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.integration.graph.conftest import (
    Graph,
    History,
    free_text,
    layers_of_channels,
    random_history,
)
from tests.integration.graph.everything import everything
from tests.integration.graph.test_schema import SAMPLES
from tests.support.tables import Batches
from tests.support.words import tells
from vizpub.graphstore.ask.parameters import user_parameters
from vizpub.graphstore.ask.queries import ask, query_names, shipped_query
from vizpub.graphstore.gexf.export import (
    OverlayExport,
    export_message,
    export_overlay,
    export_topic,
)
from vizpub.graphstore.gexf.graph_rows import GraphRows
from vizpub.graphstore.load import remove
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import open_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import RunNotComplete, UnknownName

pytestmark = pytest.mark.neo4j

ROOT = Path(__file__).parents[3]
PARTITION = 3
"""Intervals of a partition: few, so that runs share the types of their copies too."""


def history(seed: int, name: str, protocol: str) -> History:
    """A run of a protocol. All name their peers, topics and messages alike."""
    made = random_history(seed, name=name, peers=8, intervals=7)
    return replace(made, facts=replace(made.facts, protocol=protocol), batch=37)


KEPT = [history(90, "side", "scribe"), history(91, "side-1", "poldercast")]
"""Names that begin alike, two protocols."""
COMING = history(92, "side-", "scribe")

EVERY = [name for name in query_names() if name != "runs"]
FEW = EVERY[::6]
"""In the quick ring: tests of queries ask all of them, beside other runs."""

Questions = dict[str, Callable[[], Any]]
"""What a run can be asked in any way there is, by name."""


def given(asked: History, query: str) -> dict[str, Any]:
    """What a query insists on, of what is there: from interval 3 to 5."""
    there = sorted({row["peer"] for row in asked.alive("presence", 3)})
    samples = {
        "tick": chain([3], repeat(5)),
        "peer": cycle([asked.peer(there[0]), asked.peer(there[-1])]),
        "topic": repeat(asked.topic(2)),
        "message": repeat(message(asked)),
    }
    required = [p for p in user_parameters(shipped_query(query)) if not p.optional]
    others = {type: repeat(value) for type, value in SAMPLES.items()}
    return layers_of_channels(query) | {
        p.name: p.words[-1] if p.words else next({**others, **samples}[p.type]) for p in required
    }


def message(asked: History) -> str:
    """One whose topic is known."""
    name: str = next(p["name"] for p in asked.rows["publications"] if p["topic"] is not None)
    return name


def questions(graph: Graph, asked: History, queries: Iterable[str]) -> Questions:
    """Queries, every export, and Cypher of one's own."""
    name, at = asked.facts.name, (graph.driver, graph.database)

    def query(of: str) -> list[str]:
        rows = ask(*at, of, given(asked, of), run=name).rows
        if "shortest" in of and not of.startswith("all"):
            rows = [row[:1] for row in rows]  # of paths of a length any is as good
        return sorted(map(repr, rows))

    def export(write: Callable[..., Any], *what: Any) -> str:
        write(GraphRows(open_run(*at, name)), *what, out := StringIO())
        return out.getvalue()

    every = OverlayExport()
    own = "MATCH (n {run: $run}) RETURN n.key AS key ORDER BY key"
    return {of: partial(query, of) for of in queries} | {
        "overlay.gexf": partial(export, export_overlay, every, None),
        "topic.gexf": partial(export, export_topic, asked.topic(2), every, None),
        "message.gexf": partial(export, export_message, message(asked)),
        "own Cypher": lambda: free_text(*at, own, {"run": name}).rows,
    }


def answers(graph: Graph, asked: History, queries: Iterable[str] = EVERY) -> dict[str, Any]:
    return {name: question() for name, question in questions(graph, asked, queries).items()}


def load(graph: Graph, loaded: History, progress: Any = None, tables: Any = None) -> None:
    load_run(
        graph.driver, graph.database, loaded.facts, tables or loaded.tables, progress,
        partition_intervals=PARTITION,
    )  # fmt: skip


@pytest.fixture(scope="module")
def alone(graph: Graph, request: pytest.FixtureRequest) -> Iterator[Mapping[str, dict[str, Any]]]:
    """What each run answers while there is no other; afterwards all but COMING are there."""
    found, queries = {}, getattr(request, "param", EVERY)
    for each in (*KEPT, COMING):
        graph.remove(each.facts.name)
    for each in (COMING, *KEPT):
        load(graph, each)
        found[each.facts.name] = answers(graph, each, queries)
        if each is not KEPT[-1]:
            graph.remove(each.facts.name)
    for each in KEPT[:-1]:
        load(graph, each)
    yield found
    for each in (*KEPT, COMING):
        graph.remove(each.facts.name)


@pytest.fixture
def coming(graph: Graph) -> Iterator[History]:
    """The run that comes and goes beside the others."""
    yield COMING
    graph.remove(COMING.facts.name)


class Watch:
    """Looks, whenever it is called, at what there is to see of COMING, and at the others.

    It goes on from question to question, so that after `rounds` moments each was asked.
    """

    def __init__(self, graph: Graph, alone: Mapping[str, dict[str, Any]]) -> None:
        self.graph, self.alone, self.moments = graph, alone, 0
        queries = [name for name in EVERY if name in alone[COMING.facts.name]]
        self.hidden = questions(graph, COMING, queries)
        self.turns = cycle(self.hidden)
        self.others = cycle(KEPT)
        self.kept = {each.facts.name: questions(graph, each, queries) for each in KEPT}
        self.half: set[bool] = set()

    @property
    def rounds(self) -> int:
        return len(self.hidden)

    def look(self) -> None:
        self.moments += 1
        turn, other = next(self.turns), next(self.others).facts.name
        with pytest.raises((RunNotComplete, UnknownName)):
            self.hidden[turn]()
        assert self.kept[other][turn]() == self.alone[other][turn], turn
        listed = {row[0] for row in ask(self.graph.driver, self.graph.database, "runs", {}).rows}
        assert COMING.facts.name not in listed
        assert listed.issuperset(self.kept)
        with pytest.raises(UnknownName) as unknown:
            open_run(self.graph.driver, self.graph.database, COMING.facts.name + "x")
        assert COMING.facts.name not in unknown.value.existing
        text = "MATCH (n) WHERE n.run = $run RETURN count(n) > 0"
        ((there,),) = self.graph.ask(text, run=COMING.facts.name)
        self.half.add(there)


@pytest.mark.long
def test_run_answers_beside_others_as_it_does_alone(
    graph: Graph, alone: Mapping[str, dict[str, Any]], coming: History
) -> None:
    load(graph, coming)
    for each in (*KEPT, coming):
        assert answers(graph, each) == alone[each.facts.name]
    protocols = {row[0]: row[2] for row in ask(graph.driver, graph.database, "runs", {}).rows}
    assert {name: protocols[name] for name in alone} == {
        each.facts.name: each.facts.protocol for each in (*KEPT, coming)
    }
    assert len({str(of["overlay"]) for of in alone.values()}) == len(alone)


@pytest.mark.long
def test_removed_run_leaves_the_others_unchanged(
    graph: Graph, alone: Mapping[str, dict[str, Any]], coming: History
) -> None:
    before = everything(graph)
    load(graph, coming)
    assert everything(graph) > before
    remove_run(graph.driver, graph.database, coming.facts.name)
    assert everything(graph) == before
    for each in KEPT:
        assert verify_run(graph.driver, graph.database, each.facts, each.tables) == []


FEW_OR_EVERY = pytest.mark.parametrize(
    "alone", [FEW, pytest.param(EVERY, marks=pytest.mark.long)], ids=["few", "every"], indirect=True
)


@FEW_OR_EVERY
def test_loading_run_is_hidden_and_changes_no_answer(
    graph: Graph, alone: Mapping[str, dict[str, Any]], coming: History
) -> None:
    """Looked for before and after every batch, as its rows are read and when they are entered."""
    watch = Watch(graph, alone)

    class Watched(Batches):
        def row_groups(self, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
            watch.look()
            yield from super().row_groups(name)

    def progress(step: str, done: int, total: int, note: str = "") -> None:
        watch.look()

    load(graph, coming, progress, Watched(coming.rows, coming.batch))
    assert watch.moments > watch.rounds
    assert watch.half == {False, True}
    assert {of: question() for of, question in watch.hidden.items()} == alone[coming.facts.name]


@pytest.mark.long
@FEW_OR_EVERY
def test_run_under_removal_is_hidden_and_changes_no_answer(
    graph: Graph,
    alone: Mapping[str, dict[str, Any]],
    coming: History,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remove, "ROWS_PER_BATCH", 10)
    load(graph, coming)
    before, watch = len(ask(graph.driver, graph.database, "runs", {}).rows), Watch(graph, alone)

    def progress(step: str, done: int, total: int, note: str = "") -> None:
        watch.look()

    remove_run(graph.driver, graph.database, coming.facts.name, progress)
    assert watch.moments > watch.rounds
    assert len(ask(graph.driver, graph.database, "runs", {}).rows) == before - 1


LOAD = """
import sys
from vizpub.graphstore.server.connection import connect, from_environment
from tests.integration.graph.conftest import Graph
from tests.integration.graph.test_side_by_side import COMING, load

def told(step, done, total, note=""):
    print(step, flush=True)
    sys.stdin.readline()
with connect(from_environment()) as driver:
    load(Graph(driver, from_environment().database), COMING, told)
"""
"""A load that waits for a line after each batch."""


@pytest.fixture
def environment(neo4j_server: Connection) -> dict[str, str]:
    return {
        **os.environ,
        "NEO4J_URI": neo4j_server.uri,
        "NEO4J_USERNAME": neo4j_server.username,
        "NEO4J_PASSWORD": neo4j_server.password,
        "NEO4J_DATABASE": neo4j_server.database,
    }


@pytest.mark.long
def test_killed_load_stays_hidden_and_resumes(
    graph: Graph,
    alone: Mapping[str, dict[str, Any]],
    coming: History,
    environment: dict[str, str],
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LOAD],
        env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdin
        assert child.stdout
        while child.stdout.readline() != "load hops\n":
            child.stdin.write("\n")
            child.stdin.flush()
        child.kill()
    watch = Watch(graph, alone)
    watch.look()
    assert watch.half == {True}
    load(graph, coming)
    assert answers(graph, coming) == alone[coming.facts.name]
    assert verify_run(graph.driver, graph.database, coming.facts, coming.tables) == []


REMOVE = """
import sys
from itertools import count
from vizpub.graphstore.load import remove
from vizpub.cli.main import app

remove.ROWS_PER_BATCH, calls, really = 20, count(), remove._run
def pressed(*given, **named):
    if next(calls) == 8:
        raise KeyboardInterrupt
    return really(*given, **named)
remove._run = pressed
app(sys.argv[1:], prog_name="vizpub")
"""
"""A removal in which somebody presses Ctrl-C after some batches."""


@pytest.mark.long
def test_interrupted_removal_shows_its_progress_and_resumes(
    graph: Graph,
    alone: Mapping[str, dict[str, Any]],
    coming: History,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    load(graph, coming)
    whole = everything(graph).total()
    remove_it = ["--workspace", str(tmp_path), "runs", "remove", coming.facts.name, "--yes"]
    code, shown = on_a_terminal([sys.executable, "-c", REMOVE, *remove_it], environment)
    assert code == 130, shown
    assert "nodes and relationships" in shown
    assert "interrupted" in shown
    assert everything(graph).total() < whole
    watch = Watch(graph, alone)
    watch.look()
    assert watch.half == {True}
    vizpub = "from vizpub.cli.main import app; app()"
    code, shown = on_a_terminal([sys.executable, "-c", vizpub, *remove_it], environment)
    assert code == 0, shown
    tells(shown, f"'{coming.facts.name}'")
    watch.look()
    assert watch.half == {True, False}


def on_a_terminal(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """(exit code, what was shown)."""
    mine, theirs = os.openpty()
    with subprocess.Popen(
        command,
        env={**environment, "COLUMNS": "150", "TERM": "xterm"},
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    ) as child:  # fmt: skip
        os.close(theirs)
        shown = bytearray()
        with suppress(OSError):  # the terminal's end on Linux
            while read := os.read(mine, 65_536):
                shown += read
        os.close(mine)
        return child.wait(), shown.decode("utf-8")
