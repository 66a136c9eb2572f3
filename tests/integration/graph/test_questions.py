"""Questions to one overlay, or to two of them, against networkx or a plain loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import pytest

from graphstore.queries import ask
from model.errors import UseError
from tests.integration.graph.conftest import Graph, History, random_history
from tests.integration.graph.test_queries import HISTORIES, LAYERS, digraph, given, ticks

pytestmark = pytest.mark.neo4j

Rows = list[list[Any]]


@pytest.fixture(scope="module", params=HISTORIES, ids=lambda h: h.facts.name)
def history(graph: Graph, request: pytest.FixtureRequest) -> Iterator[History]:
    history: History = request.param
    print("seed", history.facts.seed)
    graph.remove(history.facts.name)
    yield graph.load(history)
    graph.remove(history.facts.name)


@pytest.fixture
def answer(graph: Graph, history: History) -> Callable[[str, dict[str, object]], Rows]:
    def answer(name: str, given: dict[str, object]) -> Rows:
        return ask(graph.driver, graph.database, name, given, run=history.facts.name).rows

    return answer


def both_ways(graph: nx.DiGraph[str], direction: str) -> Any:
    """The graph to walk along its links, against them, or either way."""
    if direction == "both":
        return graph.to_undirected()
    return graph if direction == "out" else graph.reverse()


@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_peers_within_some_hops(history: History, answer: Any, layers: Any, direction: str) -> None:
    for i, at in ticks(history)[::4]:
        overlay = digraph(history, at, layers)
        for peer in sorted(overlay)[:6]:
            walked = both_ways(overlay, direction)
            distances = nx.single_source_shortest_path_length(walked, peer)
            for hops in (1, 2, 30):
                expected = {p: d for p, d in distances.items() if 0 < d <= hops}
                asked = given(i, layers, peer=peer, hops=hops, direction=direction)
                rows = answer("peers-within", asked)
                assert dict(rows) == expected, (i, peer, hops)
                assert len(rows) == len(expected)
                assert [row[1] for row in rows] == sorted(expected.values())


def test_two_hops_along_the_links_where_nothing_else_is_said(history: History, answer: Any) -> None:
    i, at = ticks(history)[0]
    peer = min(digraph(history, at, None))
    asked = given(i, None, peer=peer)
    spelt_out = answer("peers-within", {**asked, "hops": "2", "direction": "out"})
    assert answer("peers-within", asked) == spelt_out


def test_a_direction_that_is_none(graph: Graph, loaded: Any) -> None:
    history = loaded(random_history(1, name="direction"))
    i, at = ticks(history)[0]
    asked = given(i, None, peer=min(digraph(history, at, None)), direction="up")
    with pytest.raises(UseError, match="parameter direction: 'up' is none of out, in, both"):
        ask(graph.driver, graph.database, "peers-within", asked, run="direction")


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_degrees_that_jumped(history: History, answer: Any, layers: Any) -> None:
    at = dict(ticks(history))
    last = len(at) - 1
    for before, after in ((0, 1), (0, last), (last, last // 2), (1, 1)):
        old, new = (
            dict(digraph(history, at[i], layers).to_undirected().degree()) for i in (before, after)
        )
        expected = {
            p: [old[p], new[p], new[p] - old[p]] for p in set(old) & set(new) if old[p] != new[p]
        }
        asked = {"before": before, "after": after, "layers": layers}
        rows = answer("degree-jumps", {**asked, "k": 100})
        assert {row[0]: row[1:] for row in rows} == expected
        sizes = [abs(row[3]) for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert answer("degree-jumps", {**asked, "k": 1}) == rows[:1]
        assert answer("degree-jumps", asked) == rows[:10]
