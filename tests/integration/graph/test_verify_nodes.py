"""Which nodes a verification counts and names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.graph.conftest import Graph, History, random_history
from vizpub.graphstore.verify.verify import Difference, verify_run

pytestmark = pytest.mark.neo4j


def differences(graph: Graph, history: History) -> list[Difference]:
    return verify_run(graph.driver, graph.database, history.facts, history.tables)


def test_missing_topic_of_a_run_without_messages_is_found(
    graph: Graph, loaded: Callable[[History], History]
) -> None:
    history = random_history(41, name="quiet", peers=4, intervals=5)
    rows = {"peers": history.rows["peers"], "topics": history.rows["topics"][:1]}
    history = loaded(History(history.facts, rows))
    assert differences(graph, history) == []
    graph.ask("MATCH (n:Topic {run: 'quiet'}) DETACH DELETE n")
    found = differences(graph, history)
    assert [(d.what, d.expected, d.found) for d in found if d.table == "topics"] == [
        (f"quiet/{0}", "a row", "no node"),
        ("nodes Topic", 1, 0),
    ]


def test_differences_name_five_nodes_of_a_table(
    graph: Graph, loaded: Callable[[History], History]
) -> None:
    history = loaded(random_history(42, name="renamed"))
    graph.ask("MATCH (n:Peer {run: 'renamed'}) SET n.name = 'other'")
    found = differences(graph, history)
    assert [(d.table, d.expected, d.found) for d in found] == [
        ("peers", f"peer {id}", "other") for id in range(5)
    ]
