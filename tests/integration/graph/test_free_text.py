"""A statement of the user's own: read only, limited in time and rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from graphstore.queries import Limits, free_text
from model.errors import UseError
from tests.integration.graph.conftest import Graph, random_history

pytestmark = pytest.mark.neo4j


@pytest.fixture(scope="module", autouse=True)
def _run(graph: Graph) -> Iterator[None]:
    graph.remove("free")
    graph.load(random_history(60, name="free"))
    yield
    graph.remove("free")


def ask(graph: Graph, text: str, limits: Limits | None = None, **given: Any) -> Any:
    return free_text(graph.driver, graph.database, text, given, limits or Limits())


def test_an_answer_with_parameters(graph: Graph) -> None:
    text = "MATCH (p:Peer {run: $run}) WHERE p.id < $below RETURN p.id AS id ORDER BY id"
    answer = ask(graph, text, run="free", below="3")
    assert (answer.columns, answer.rows, answer.more) == (("id",), [[0], [1], [2]], False)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("7", 7),
        ('"7"', "7"),
        ("abc", "abc"),
        ('["a", 1]', ["a", 1]),
        (7, 7),
        ("", ""),
        ("null", None),
    ],
)
def test_parameters_are_json_where_they_are(graph: Graph, given: object, value: object) -> None:
    assert ask(graph, "RETURN $x AS x", x=given).rows == [[value]]


def test_nodes_and_paths_come_as_plain_values(graph: Graph) -> None:
    text = "MATCH p = (a:Peer {run: 'free'})-[:PRESENT]->(r:Run) RETURN a, p LIMIT 1"
    ((a, path),) = ask(graph, text).rows
    assert a["run"] == "free"
    assert path[0] == a
    assert path[1] == "PRESENT"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE (:Peer {key: 'x'})",
        "MATCH (n) DETACH DELETE n",
        "MATCH (r:Run) SET r.state = 'complete'",
        "CREATE INDEX x FOR (n:X) ON (n.x)",
        "MATCH (n:Peer) CALL (n) { DELETE n } IN TRANSACTIONS OF 10 ROWS",
        "DROP CONSTRAINT peer_key",
    ],
)
def test_what_writes_is_refused(graph: Graph, text: str) -> None:
    before = graph.ask("MATCH (n) RETURN count(n)")
    with pytest.raises(UseError, match="only statements that read"):
        ask(graph, text)
    assert graph.ask("MATCH (n) RETURN count(n)") == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MATCH (n RETURN n", "Invalid input"),
        ("RETURN $missing AS x", "missing"),
        ("", "empty|Unexpected"),
    ],
)
def test_what_is_no_cypher_is_said_so(graph: Graph, text: str, words: str) -> None:
    with pytest.raises(UseError, match=words):
        ask(graph, text)


def test_it_ends_in_time(graph: Graph) -> None:
    text = "UNWIND range(1, 1000000000) AS x RETURN sum(x % 7) AS y"
    with pytest.raises(UseError, match="did not end in time"):
        ask(graph, text, Limits(timeout_s=0.5))


def test_it_ends_at_the_limit_of_rows(graph: Graph) -> None:
    text = "UNWIND range(1, 1000000000) AS x RETURN x"
    answer = ask(graph, text, Limits(timeout_s=20, rows=3))
    assert (answer.rows, answer.more) == ([[1], [2], [3]], True)
