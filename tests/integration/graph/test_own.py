"""Queries of the user's own, with a header, against shipped ones and plain counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.graph.conftest import Graph, History, random_history
from tests.integration.graph.test_queries import digraph, ticks
from tests.support.words import unknown
from vizpub import cypher
from vizpub.graphstore.ask.judge import ALLOWED
from vizpub.graphstore.ask.own import open_own_stream, read_query
from vizpub.graphstore.ask.queries import Limits, ask
from vizpub.model.errors import UnknownName, UseError

pytestmark = pytest.mark.neo4j

PAGE = Path(__file__).parents[3] / "docs" / "queries.md"
NAME = "own"


@pytest.fixture(scope="module")
def mine(graph: Graph) -> Iterator[History]:
    history = random_history(61, name=NAME)
    graph.remove(NAME)
    graph.load(history)
    yield history
    graph.remove(NAME)


@pytest.fixture
def answers(graph: Graph, mine: History, tmp_path: Path) -> Any:
    def answers(text: str, **given: object) -> list[list[Any]]:
        file = tmp_path / "mine.cypher"
        file.write_text(text, "utf-8")
        query = read_query(file)
        with open_own_stream(graph.driver, graph.database, query, given, NAME, Limits()) as found:
            return list(found.rows)

    return answers


@pytest.mark.parametrize("name", ["overlay", "hubs", "neighbours"])
def test_copy_of_a_shipped_query_answers_as_it_does(
    graph: Graph, mine: History, answers: Any, name: str
) -> None:
    i, at = ticks(mine)[0]
    asked = cypher.statement("queries", name)
    values = {"at": i, "peer": min(digraph(mine, at, None)), "k": 3}
    given = {p.name: values[p.name] for p in asked.parameters if p.name in values}
    rows = answers(asked.text, **given)
    assert rows
    assert rows == ask(graph.driver, graph.database, name, given, run=NAME).rows


def test_example_of_the_page_counts_links(mine: History, answers: Any) -> None:
    (text,) = re.findall(r"```cypher\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    i, at = ticks(mine)[0]
    alive = mine.alive("links", at)
    layer = alive[0]["layer"]
    links = Counter(mine.peer(link["src"]) for link in alive if link["layer"] == layer)
    assert dict(answers(text, at=i, layer=layer, least=1)) == links


def test_text_value_stays_text(answers: Any) -> None:
    assert answers("// $x string – a text\nRETURN $x AS x, $run AS run", x="7") == [["7", NAME]]


def test_unknown_peer_is_refused(answers: Any) -> None:
    with pytest.raises(UnknownName, match=unknown("peer", "nobody at all")):
        answers("// $who peer – a peer\nRETURN $who AS who", who="nobody at all")


def test_query_that_writes_is_refused(graph: Graph, answers: Any) -> None:
    with pytest.raises(UseError, match=ALLOWED):
        answers("// Mine.\nMATCH (p:Peer {run: $run}) DETACH DELETE p RETURN 1")
    assert answers("MATCH (p:Peer {run: $run}) RETURN count(p) > 0 AS there") == [[True]]
