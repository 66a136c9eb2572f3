"""What py2neo is given is what the official driver gets."""

from __future__ import annotations

import builtins
import gc
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from tests.integration.graph.conftest import (
    HISTORIES,
    Graph,
    History,
    layers_of_channels,
    random_history,
)
from tests.support.few import few
from tests.support.project import PACKAGES, ROOT
from tests.support.words import naming, unknown
from vizpub.graphstore.ask import py2neo_bridge
from vizpub.graphstore.ask.parameters import user_parameters
from vizpub.graphstore.ask.py2neo_bridge import BridgedRun, frame, open_run, subgraph_at
from vizpub.graphstore.ask.queries import ask, query_names, shipped_query
from vizpub.graphstore.runs import open_run as open_loaded
from vizpub.graphstore.server.address import Connection
from vizpub.model.errors import (
    NO_ANSWER,
    Neo4jAnswer,
    Neo4jUnavailable,
    RunNotComplete,
    UnknownName,
    UseError,
)

pytestmark = pytest.mark.neo4j

pytest.importorskip("py2neo", reason="the extra py2neo is not installed")


def entities(graph: Graph, history: History, at: int, layers: list[str] | None) -> tuple[Any, Any]:
    """Nodes and relationships alive at a tick, by the official driver and a plain filter."""
    spans = "r.valid_from <= $at AND r.valid_to > $at"
    nodes = graph.ask(
        f"MATCH (p:Peer {{run: $run}})-[r:PRESENT]->(:Run) WHERE {spans} "
        "RETURN labels(p), properties(p)",
        run=history.facts.name, at=at,
    )  # fmt: skip
    links = graph.ask(
        f"MATCH (a:Peer {{run: $run}})-[r:LINK]->(b) WHERE {spans} "
        "AND ($layers IS NULL OR r.layer IN $layers) RETURN a.key, type(r), b.key, properties(r)",
        run=history.facts.name, at=at, layers=layers,
    )  # fmt: skip
    return (
        sorted(([*sorted(labels), *plain(of)] for labels, of in nodes), key=str),
        sorted(([a, kind, b, *plain(of)] for a, kind, b, of in links), key=str),
    )


def plain(properties: Any) -> list[tuple[str, object]]:
    return sorted(dict(properties).items())


def same_of(subgraph: Any) -> tuple[Any, Any]:
    """The subgraph as `entities` gives it."""
    return (
        sorted(([*sorted(node.labels), *plain(node)] for node in subgraph.nodes), key=str),
        sorted(
            (
                [r.start_node["key"], type(r).__name__, r.end_node["key"], *plain(r)]
                for r in subgraph.relationships
            ),
            key=str,
        ),
    )


def test_subgraph_equals_what_the_driver_gets(graph: Graph, asked: BridgedRun) -> None:
    clock = ASKED.facts.clock
    for interval in range(0, clock.intervals, 3):
        at = clock.sampling_tick(interval)
        for layers in (None, ["mesh"], ["mesh", "overlay"]):
            found = subgraph_at(asked, interval, layers)
            assert same_of(found) == entities(graph, ASKED, at, layers)


def test_subgraph_relationships_need_no_further_query(
    asked: BridgedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = subgraph_at(asked, "last")
    assert found.relationships
    monkeypatch.setattr(type(asked.graph), "pull", lambda *_: pytest.fail("it asks again"))
    for link in found.relationships:
        assert link.start_node["run"] == link.end_node["run"] == ASKED.facts.name
        assert link["valid_from"] < link["valid_to"]


def test_subgraph_of_a_reloaded_run_is_the_new_one(
    graph: Graph, loaded: Any, neo4j_server: Connection
) -> None:
    """py2neo keeps nothing of what it read before, though the database gives ids again."""
    loaded(random_history(83, name="anew"))
    with open_run(neo4j_server, "anew") as run:
        subgraph_at(run, 3)
        history = loaded(random_history(84, name="anew"))
        again = replace(run, loaded=open_loaded(graph.driver, graph.database, "anew"))
        assert same_of(subgraph_at(again, 3)) == entities(graph, history, 3, None)


ASKED = HISTORIES[0]


@pytest.fixture(scope="module")
def asked(once: Callable[[History], History], neo4j_server: Connection) -> Iterator[BridgedRun]:
    """One run that all queries are asked."""
    with open_run(neo4j_server, once(ASKED).facts.name) as run:
        yield run


def sample() -> dict[str, object]:
    """Values for parameters of each type that a query insists on, of what is there."""
    known = [p for p in ASKED.rows["publications"] if p["topic"] is not None]
    return {
        "tick": 4,
        "peer": ASKED.peer(ASKED.alive("presence", 4)[0]["peer"]),
        "topic": ASKED.topic(1),
        "message": known[0]["name"],
    }


@pytest.mark.parametrize("name", few(query_names(), query_names()[::4]))
def test_query_frame_equals_the_answer_of_the_driver(
    graph: Graph, asked: BridgedRun, name: str
) -> None:
    required = [p for p in user_parameters(shipped_query(name)) if not p.optional]
    given = layers_of_channels(name) | {
        p.name: p.words[-1] if p.words else sample()[p.type] for p in required
    }
    if name == "runs":
        answer = ask(graph.driver, graph.database, name, given)
    else:
        answer = ask(graph.driver, graph.database, name, given, run=ASKED.facts.name)
    found = frame(asked, name, **given)
    assert tuple(found.columns) == answer.columns
    for column, values in zip(answer.columns, zip(*answer.rows, strict=True), strict=False):
        same = [None if value is pd.NA else value for value in found[column].tolist()]
        assert same == list(values)
        assert list(map(type, same)) == list(map(type, values))
    assert len(found) == len(answer.rows)


def test_frame_column_types_fit_their_values(asked: BridgedRun) -> None:
    tree = frame(asked, "dissemination-tree", message=sample()["message"])
    types = {"hop": "Int64", "time_us": "Int64", "first": "boolean", "subscribed": "boolean"}
    assert {name: str(tree[name].dtype) for name in types} == types
    assert tree["hop"].isna().any()
    runs = frame(asked, "runs").set_index("run").loc[ASKED.facts.name]
    assert runs["peers"] == len(ASKED.rows["peers"])


def test_writing_statement_is_refused(asked: BridgedRun) -> None:
    with pytest.raises(Exception, match="Writ") as refused:
        asked.graph.query("CREATE (:Peer)")
    assert "AccessMode" in str(refused.value)


def test_wrong_arguments_raise_errors_of_vizpub(
    asked: BridgedRun, neo4j_server: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownName, match=unknown("layer", "mush", "mesh")):
        subgraph_at(asked, 1, ["mush"])
    with pytest.raises(UseError, match="'noon'"):
        subgraph_at(asked, "noon")
    with pytest.raises(UseError, match="parameter when"):
        frame(asked, "hubs", when=1)
    with pytest.raises(UnknownName, match=unknown("run", "rnadom-2", "random-2")):
        open_run(neo4j_server, "rnadom-2")
    broken = replace(shipped_query("hubs"), text="RETURN")
    monkeypatch.setattr(py2neo_bridge, "shipped_query", lambda name: broken)
    with pytest.raises(Neo4jAnswer, match="SyntaxError"):
        frame(asked, "hubs", at=1)


@pytest.mark.parametrize("state", ["loading", "removing"])
def test_incomplete_run_is_refused(
    graph: Graph, asked: BridgedRun, neo4j_server: Connection, state: str
) -> None:
    set_state = "MATCH (r:Run {key: $run}) SET r.state = $state"
    graph.ask(set_state, run=ASKED.facts.name, state=state)
    try:
        with pytest.raises(RunNotComplete):
            open_run(neo4j_server, ASKED.facts.name)
    finally:
        graph.ask(set_state, run=ASKED.facts.name, state="complete")


# Where there is no server, py2neo leaves its socket to be collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_missing_server_raises_neo4j_unavailable(neo4j_server: Connection) -> None:
    gone = replace(neo4j_server, uri="bolt://127.0.0.1:1", home=None)
    with pytest.raises(Neo4jUnavailable, match=NO_ANSWER):
        open_run(gone, "any")
    with pytest.raises(Neo4jUnavailable, match="py2neo"):
        py2neo_bridge.graph(gone)
    gc.collect()


def test_missing_py2neo_error_says_how_to_install_it(
    neo4j_server: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "py2neo":
            raise ModuleNotFoundError(name=name)
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UseError, match=naming("vizpub[py2neo]")):
        open_run(neo4j_server, "any")


def test_py2neo_is_imported_in_the_bridge_alone() -> None:
    importing = [
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"(import|from) py2neo\b", path.read_text("utf-8"))
    ]
    assert importing == ["graphstore/ask/py2neo_bridge.py"]
