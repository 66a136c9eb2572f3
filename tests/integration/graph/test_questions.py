"""Questions to one overlay, or to two of them, against networkx or a plain loop."""

from __future__ import annotations

from itertools import islice, pairwise, product
from typing import Any

import networkx as nx
import pytest

from tests.integration.graph.conftest import Graph, History, random_history
from tests.integration.graph.test_queries import LAYERS, digraph, few_or, given, ticks
from tests.support.words import naming
from vizpub.graphstore.ask.queries import ask
from vizpub.model.clock import OPEN
from vizpub.model.errors import UseError

pytestmark = pytest.mark.neo4j

Rows = list[list[Any]]


def some(ticks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first, one in the middle, and the last."""
    return [ticks[0], ticks[len(ticks) // 2], ticks[-1]]


def both_ways(graph: nx.DiGraph[str], direction: str) -> Any:
    """The graph to walk along its links, against them, or either way."""
    if direction == "both":
        return graph.to_undirected()
    return graph if direction == "out" else graph.reverse()


@pytest.mark.parametrize("peers", few_or(6))
@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_peers_within_some_hops_equal_networkx(
    history: History, answer: Any, layers: Any, direction: str, peers: int
) -> None:
    for i, at in ticks(history)[::4]:
        overlay = digraph(history, at, layers)
        for peer in sorted(overlay)[:peers]:
            walked = both_ways(overlay, direction)
            distances = nx.single_source_shortest_path_length(walked, peer)
            for hops in (1, 2, 30):
                expected = {p: d for p, d in distances.items() if 0 < d <= hops}
                asked = given(i, layers, peer=peer, hops=hops, direction=direction)
                rows = answer("k-hop", asked)
                assert dict(rows) == expected, (i, peer, hops)
                assert len(rows) == len(expected)
                assert [row[1] for row in rows] == sorted(expected.values())


def test_peers_within_defaults_to_two_hops_along_links(history: History, answer: Any) -> None:
    i, at = ticks(history)[0]
    peer = min(digraph(history, at, None))
    asked = given(i, None, peer=peer)
    spelt_out = answer("k-hop", {**asked, "hops": "2", "direction": "out"})
    assert answer("k-hop", asked) == spelt_out


def test_unknown_direction_is_refused(graph: Graph, loaded: Any) -> None:
    history = loaded(random_history(1, name="direction"))
    i, at = ticks(history)[0]
    asked = given(i, None, peer=min(digraph(history, at, None)), direction="up")
    with pytest.raises(UseError, match=naming("parameter direction: 'up'", "out, in, both")):
        ask(graph.driver, graph.database, "k-hop", asked, run="direction")


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_degree_jumps_equal_networkx(history: History, answer: Any, layers: Any) -> None:
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
        rows = answer("degree-change", {**asked, "k": 100})
        assert {row[0]: row[1:] for row in rows} == expected
        sizes = [abs(row[3]) for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert answer("degree-change", {**asked, "k": 1}) == rows[:1]
        assert answer("degree-change", asked) == rows[:10]


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_turnover_of_neighbours_equals_that_of_sets(
    history: History, answer: Any, layers: Any
) -> None:
    at = dict(ticks(history))
    last = len(at) - 1
    for before, after in ((0, 1), (0, last), (last, last // 2), (1, 1)):
        old, new = (digraph(history, at[i], layers) for i in (before, after))
        expected = {}
        for peer in set(old) & set(new):
            then, now = set(old.successors(peer)), set(new.successors(peer))
            if then | now:
                share = pytest.approx(len(then & now) / len(then | now))
                expected[peer] = [len(then), len(now), len(then & now), share]
        asked = {"before": before, "after": after, "layers": layers}
        rows = answer("neighbour-turnover", {**asked, "k": 100})
        assert {row[0]: row[1:] for row in rows} == expected
        assert [row[4] for row in rows] == sorted(row[4] for row in rows)
        assert answer("neighbour-turnover", asked) == rows[:10]


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_k_shortest_paths_equal_networkx_in_length(
    history: History, answer: Any, layers: Any
) -> None:
    for i, at in some(ticks(history)):
        overlay = digraph(history, at, layers)
        present = sorted(overlay)
        for a, b in product(present[:1], present[-3:]):
            asked = given(i, layers, **{"from": a, "to": b})
            there_is_one = nx.has_path(overlay, a, b)
            for k in (2, 40):
                shortest = nx.shortest_simple_paths(overlay, a, b) if there_is_one else []
                lengths = [len(path) - 1 for path in islice(shortest, k)]
                rows = answer("k-shortest-paths", {**asked, "k": k})
                assert [row[0] for row in rows] == lengths, (i, a, b, k)
                paths = [row[1] for row in rows]
                assert len({*map(tuple, paths)}) == len(paths)
                for hops, path in rows:
                    assert (path[0], path[-1], len({*path})) == (a, b, hops + 1)
                    assert all(overlay.has_edge(*link) for link in pairwise(path))


def test_k_shortest_paths_begin_with_all_shortest_paths(history: History, answer: Any) -> None:
    i, at = ticks(history)[0]
    a, *_, b = sorted(digraph(history, at, None))
    asked = given(i, None, **{"from": a, "to": b})
    every = answer("all-shortest-paths", asked)
    assert answer("k-shortest-paths", {**asked, "k": max(1, len(every))}) == every
    assert answer("k-shortest-paths", asked) == answer("k-shortest-paths", {**asked, "k": 5})


def test_k_shortest_paths_repeat_no_peer_or_doubled_link(graph: Graph, loaded: Any) -> None:
    """A tree whose links lead both ways, each doubled: walks without number, and one path."""
    base = random_history(5, name="both-ways", peers=63, intervals=3)
    base.rows["presence"] = [{"peer": p, "valid_from": 0, "valid_to": OPEN} for p in range(63)]
    base.rows["subscriptions"] = []
    tree = nx.balanced_tree(2, 5).to_directed()
    base.rows["links"] = [
        {"src": a, "dst": b, "layer": layer, "topic": None, "valid_from": 0, "valid_to": OPEN}
        for a, b in tree.edges
        for layer in ("overlay", "mesh")
    ]
    loaded(base)
    asked = {"at": 1, "from": "peer 31", "to": "peer 62", "k": 20}
    rows = ask(graph.driver, graph.database, "k-shortest-paths", asked, run="both-ways").rows
    assert rows == [[10, [f"peer {p}" for p in nx.shortest_path(tree, 31, 62)]]]


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_topic_components_equal_networkx(history: History, answer: Any, layers: Any) -> None:
    for i, at in some(ticks(history)):
        overlay = digraph(history, at, layers).to_undirected()
        for topic in range(4):
            subscribed = subscribers(history, topic, at)
            for main in (None, min(overlay)):
                joined = overlay.subgraph(subscribed | ({main} if main else set()))
                whole = [*nx.connected_components(joined)]
                expected = {frozenset(part & subscribed): main in part for part in whole}
                expected.pop(frozenset(), None)
                asked = given(i, layers, topic=history.topic(topic))
                rows = answer("topic-components", asked | ({"from": main} if main else {}))
                assert [row[0] for row in rows] == [*range(1, len(rows) + 1)]
                assert [row[1] for row in rows] == [len(row[3]) for row in rows]
                if main is None:
                    assert {frozenset(row[3]) for row in rows} == set(expected)
                    assert [row[2] for row in rows] == [n > 0 for n in range(len(rows))]
                    sizes = [row[1] for row in rows]
                    assert sizes == sorted(sizes, reverse=True)
                else:
                    assert {frozenset(row[3]): not row[2] for row in rows} == expected


def subscribers(history: History, topic: int, at: int) -> set[str]:
    alive = history.alive("subscriptions", at)
    return {history.peer(r["peer"]) for r in alive if r["topic"] == topic}
