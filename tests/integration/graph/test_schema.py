"""Constraints and indexes, and whether every statement uses them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from threading import Barrier
from typing import Any

import pytest

from tests.integration.graph.conftest import Graph, random_history
from vizpub import cypher
from vizpub.graphstore.load.schema import (
    LABELS,
    TYPES,
    create_constraints,
    create_indexes,
    index_states,
    wanted_indexes,
)
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer

pytestmark = pytest.mark.neo4j

FOLDERS = ("queries", "browser", "read", "verify", "load", "remove")
STATEMENTS = [(folder, name) for folder in FOLDERS for name in cypher.names(folder)]
SAMPLES: dict[str, object] = {
    "int": 5,
    "count": 5,
    "tick": 5,
    "levels": [[2, 1], [63, -1]],
    "ranges": [[2, 1, 5, 2, 9]],
    "layers": ["mesh"],
    "duration": 1,
    "kinds": ["links"],
    "list<string>": ["a"],
    "list<map>": [{"key": "a"}],
    "list<list>": [["a"] * 8],
    "map": {},
}
LEVELS = "RANGE INDEX (a)-[r:LINK(run, length_class, valid_from)]->(b)"
PRESENT = "RANGE INDEX (a)-[s:PRESENT(run, length_class, valid_from)]->"
PERIODS = tuple(
    f"[r:{kind}(run, length_class, valid_from)]->" for kind in ("LINK", "SUBSCRIBES", "PRESENT")
)
RECEPTIONS = ("[h:HOP(run, message)]->", "[h:ARRIVED_FROM_UNKNOWN(run, message)]->")
WANTED = {
    "overlay": (LEVELS, PRESENT),
    "overlay-diff": (LEVELS, PRESENT),
    "links-between": (LEVELS,),
    "history": PERIODS,
    "hubs": (LEVELS,),
    "topic-subgraph": ("UNIQUE anon_0:Topic(key)",),
    "shared-topics": (LEVELS,),
    "neighbours": ("UNIQUE p:Peer(key)",),
    "peer-history": ("UNIQUE p:Peer(key)",),
    "shortest-path": ("UNIQUE a:Peer(key)", "UNIQUE b:Peer(key)"),
    "all-shortest-paths": ("UNIQUE a:Peer(key)", "UNIQUE b:Peer(key)"),
    "dissemination-tree": ("UNIQUE m:Message(key)", *RECEPTIONS),
    "missed-subscribers": ("UNIQUE anon_0:Message(key)",),
    "relays": ("Topic(key)", *RECEPTIONS),
    "duplicates-of-message": ("UNIQUE m:Message(key)", *RECEPTIONS),
    "duplicates-of-topic": ("Topic(key)", *RECEPTIONS),
    "duplicates-by-topic": ("t:Topic(key)", *RECEPTIONS),
    "peer-topics": ("UNIQUE p:Peer(key)", "m:Message(key)"),
    "topics": (LEVELS, "t:Topic(key)"),
    "k-hop": ("UNIQUE start:Peer(key)",),
    "degree-change": (LEVELS,),
    "neighbour-turnover": (
        "[r:LINK(run, length_class, valid_from)]->(neighbour)",
        "[s:PRESENT(run, length_class, valid_from)]->",
    ),
    "subscription-churn": ("t:Topic(key)",),
    "top-relays": ("m:Message(key)", *RECEPTIONS),
    "missed-messages": ("m:Message(key)",),
    "k-shortest-paths": ("UNIQUE a:Peer(key)", "UNIQUE b:Peer(key)"),
    "temporal-reachability": ("UNIQUE run:Run(key)", "UNIQUE start:Peer(key)"),
    "topic-components": ("UNIQUE anon_0:Topic(key)", "UNIQUE start:Peer(key)"),
    "tree-depth": (
        "UNIQUE t:Topic(key)",
        "[r:LINK(run, length_class, valid_from)]->(parent)",
        "i:Interval(key)",
    ),
    "channels-of-client": ("UNIQUE p:Peer(key)",),
    "clients-of-channel": ("UNIQUE channel:Peer(key)",),
    "channels-of-page": (
        "UNIQUE t:Topic(key)",
        "[r:LINK(run, length_class, valid_from)]->(c)",
    ),
    "pages-of-client": ("UNIQUE p:Peer(key)",),
    "runs": (),
}


@pytest.fixture(scope="module", autouse=True)
def _something_of_everything(graph: Graph) -> Any:
    """A label, type or property that no run has used is worth a notification."""
    history = random_history(30, name="explained")
    history = replace(history, facts=replace(history.facts, tables="told"))
    graph.remove("explained")
    graph.load(history)
    graph.plan_anew()
    yield
    graph.remove("explained")


def operators(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """(operator, details) of a plan."""
    own = (plan["operatorType"].split("@")[0], str(plan["args"].get("Details", "")))
    return [own, *(o for child in plan.get("children", []) for o in operators(child))]


@cache
def explain(graph: Graph, folder: str, name: str) -> tuple[list[tuple[str, str]], list[str]]:
    """(operators, notifications) of a statement."""
    statement = cypher.statement(folder, name)
    values = {p.name: SAMPLES.get(p.type, [*p.words, "x"][0]) for p in statement.parameters}
    with graph.driver.session(database=graph.database) as session:
        summary = session.run("EXPLAIN " + statement.text, values).consume()
    told = [
        status.status_description
        for status in summary.gql_status_objects
        if status.gql_status[:2] not in ("00", "02")
    ]
    assert summary.plan
    return operators(summary.plan), told


@pytest.mark.parametrize(("folder", "name"), STATEMENTS)
def test_statement_plan_has_no_warning_and_no_full_scan(
    graph: Graph, folder: str, name: str
) -> None:
    plan, told = explain(graph, folder, name)
    assert told == []
    scans = [o for o in plan if o[0] in ("AllNodesScan", "UndirectedAllRelationshipsScan")]
    # What nothing knows of is in no index.
    assert bool(scans) == ((folder, name) == ("verify", "nodes"))


@pytest.mark.parametrize("name", cypher.names("queries"))
def test_query_uses_its_index(graph: Graph, name: str) -> None:
    plan, _ = explain(graph, "queries", name)
    for wanted in WANTED[name]:
        assert any("Seek" in operator and wanted in details for operator, details in plan), plan
    # Only the few Run nodes are read by their label alone.
    scans = [o for o in plan if "Scan" in o[0] and name != "runs"]
    assert scans == []
    assert any(o[0] == "ShortestPath" for o in plan) == ("shortest" in name)


def test_topic_roles_are_found_by_index(graph: Graph) -> None:
    plan, _ = explain(graph, "read", "topic-roles")
    assert sum("RelationshipIndexSeek" in operator for operator, _ in plan) == 1
    assert not any("Scan" in operator for operator, _ in plan)


@pytest.mark.parametrize("name", sorted({*cypher.names("remove")} - {"begin", "rows", "run"}))
def test_removal_statement_limits_rows_before_it_gathers_them(graph: Graph, name: str) -> None:
    plan, _ = explain(graph, "remove", name)
    gathered = [operator for operator, _ in plan if operator in ("Eager", "Limit")]
    assert gathered[-1] == "Limit", "what is read is limited before it is gathered"


def test_schema_is_created_and_can_be_created_again(graph: Graph) -> None:
    for _ in range(2):
        create_constraints(graph.driver, graph.database)
        create_indexes(graph.driver, graph.database)
    constraints = graph.ask(
        "SHOW CONSTRAINTS YIELD type, labelsOrTypes, properties "
        "RETURN labelsOrTypes[0], type, properties"
    )
    for label in ("Run", "LoadBatch", "Peer", "Topic", "Message", "Interval"):
        assert [label, "UNIQUENESS", ["key"]] in constraints
    indexes = graph.ask(
        "SHOW INDEXES YIELD entityType, type, labelsOrTypes, properties, state "
        "WHERE entityType = 'RELATIONSHIP' AND type = 'RANGE' "
        "RETURN labelsOrTypes[0], properties, state ORDER BY labelsOrTypes[0], properties"
    )
    assert indexes == [
        ["ARRIVED_FROM_UNKNOWN", ["run", "message"], "ONLINE"],
        ["HAS_ATTRIBUTE", ["run", "length_class", "valid_from"], "ONLINE"],
        ["HOP", ["run", "message"], "ONLINE"],
        ["LINK", ["run", "length_class", "valid_from"], "ONLINE"],
        ["PRESENT", ["run", "length_class", "valid_from"], "ONLINE"],
        ["SUBSCRIBES", ["run", "length_class", "valid_from"], "ONLINE"],
    ]


def test_labels_and_types_are_of_the_closed_lists(graph: Graph) -> None:
    used = {name for (name,) in graph.ask("CALL db.labels() YIELD label RETURN label")}
    assert used <= set(LABELS)
    types = graph.ask("CALL db.relationshipTypes() YIELD relationshipType RETURN relationshipType")
    assert {name for (name,) in types} <= set(TYPES)


@pytest.mark.long
def test_loads_at_once_may_make_the_same_constraints_and_indexes(server: LocalServer) -> None:
    """Neo4j lets one of them wait for ever, or says that the other made it just now."""
    with connect(server.start()) as driver, ThreadPoolExecutor(2) as threads:
        graph = Graph(driver, "neo4j")
        for (name,) in graph.ask("SHOW CONSTRAINTS YIELD name"):
            graph.ask(f"DROP CONSTRAINT {name}")
        for (name,) in graph.ask(
            "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name"
        ):
            graph.ask(f"DROP INDEX {name}")
        together = Barrier(2)

        def make(what: Callable[..., None]) -> None:
            together.wait()
            what(driver, "neo4j")

        for what in (create_constraints, create_indexes):
            assert [*threads.map(make, [what, what])] == [None, None]
        states = index_states(driver, "neo4j")
    assert {states.get(index) for index in wanted_indexes()} == {"ONLINE"}
