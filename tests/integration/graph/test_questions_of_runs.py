"""Questions to a stretch of a run, against a plain loop over its tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import pytest

from tests.integration.graph.conftest import Graph, History, Row, random_history
from tests.integration.graph.test_queries import ticks
from tests.support.words import naming, unknown
from vizpub.graphstore.ask.queries import ask
from vizpub.model.clock import OPEN
from vizpub.model.errors import UnknownName, UseError

pytestmark = pytest.mark.neo4j

Rows = list[list[Any]]


def subscribers(history: History, topic: int, at: int) -> set[int]:
    return {r["peer"] for r in history.alive("subscriptions", at) if r["topic"] == topic}


def test_topic_churn_equals_the_subscriptions(history: History, answer: Any) -> None:
    at = dict(ticks(history))
    last = len(at) - 1
    for before, after in ((0, 1), (0, last), (last, 1), (2, 2)):
        expected = {}
        for topic in range(4):
            old, new = (subscribers(history, topic, at[i]) for i in (before, after))
            counts = [len(old), len(new), len(new - old), len(old - new), len(old & new)]
            expected[history.topic(topic)] = counts
        rows = answer("subscription-churn", {"before": before, "after": after})
        assert {row[0]: row[1:] for row in rows} == expected
        moved = [row[3] + row[4] for row in rows]
        assert moved == sorted(moved, reverse=True)


def relayed(history: History, low: int, high: int) -> dict[str, list[int | None]]:
    """{relay: [copies, receptions, messages, topics]} of the publications in [low, high); null of
    whom it is unknown for some message.
    """
    result: dict[str, list[int | None]] = {}
    for peer in history.rows["peers"]:
        copies = receptions = messages = unclear = 0
        topics = set()
        for m in history.rows["publications"]:
            of = [r for r in history.rows["receptions"] if r["message"] == m["message"]]
            unsubscribed = [r for r in of if r["peer"] == peer["peer"] and not r["subscribed"]]
            if unsubscribed and low <= m["tick"] < high and m["publisher"] != peer["peer"]:
                copies += sum(r["previous_hop"] == peer["peer"] for r in of)
                receptions += len(unsubscribed)
                messages += 1
                unclear += sum(r["subscribed"] is None for r in unsubscribed)
                topics |= {m["topic"]} - {None}
        if messages:
            counts: list[int | None] = [copies, receptions, messages, len(topics)]
            result[peer["name"]] = [None] * 4 if unclear else counts
    return result


def test_busiest_relays_equal_the_receptions(history: History, answer: Any) -> None:
    at = dict(ticks(history))
    last = len(at) - 1
    for low, high in ((0, last), (1, 3), (2, 2)):
        expected = relayed(history, at[low], at[high])
        rows = answer("top-relays", {"from": low, "to": high, "k": 100})
        assert {row[0]: row[1:] for row in rows} == expected
        order = [(row[1] is not None, *(count or 0 for count in row[1:3])) for row in rows]
        assert order == sorted(order, reverse=True)
        assert answer("top-relays", {"from": low, "to": high}) == rows[:10]


def missed(history: History, topic: int | None) -> dict[str, list[Any]]:
    """{message: [topic, interval, eligible, missed, peers]}."""
    result = {}
    for m, measured in zip(
        history.rows["publications"], history.rows["metrics/messages"], strict=True
    ):
        if m["topic"] is None or topic not in (None, m["topic"]):
            continue
        missing = (r["peer"] for r in history.rows["missed"] if r["message"] == m["message"])
        if peers := [history.peer(p) for p in sorted(missing)]:
            told = [
                history.topic(m["topic"]),
                m["interval"],
                measured["eligible"],
                len(peers),
                peers,
            ]
            result[m["name"]] = told
    return result


def test_missed_messages_equal_the_tables(history: History, answer: Any) -> None:
    for topic in (None, 0, 1, 2, 3):
        asked = {} if topic is None else {"topic": history.topic(topic)}
        rows = answer("missed-messages", asked)
        assert {row[0]: row[1:] for row in rows} == missed(history, topic)
        assert [row[4] for row in rows] == sorted((row[4] for row in rows), reverse=True)


def test_missed_messages_agree_with_missed_subscribers(history: History, answer: Any) -> None:
    for message, *_, peers in answer("missed-messages", {}):
        assert answer("missed-subscribers", {"message": message}) == [[p] for p in peers]


def tree(history: History, topic: int, at: int) -> nx.DiGraph[int]:
    """The links of a topic's tree, turned: from parents to children."""
    links = [r for r in history.alive("links", at) if r["layer"] == "tree" and r["topic"] == topic]
    return nx.DiGraph([(r["dst"], r["src"]) for r in links])


def told_roots(history: History, topic: int) -> list[Row]:
    roles = history.rows["roles"]
    return [r for r in roles if (r["role"], r["topic"]) == ("rendezvous", topic)]


def state(history: History, topic: int, at: int) -> list[Any]:
    """[roots, peers, depth, detached] of a tree."""
    links = tree(history, topic, at)
    told = told_roots(history, topic)
    now = {r["peer"] for r in told if r["valid_from"] <= at < r["valid_to"]}
    roots = sorted(now if told else {p for p in links if not links.in_degree(p)})
    links.add_nodes_from(roots)
    reached = nx.multi_source_dijkstra_path_length(links, set(roots)) if roots else {}
    depth = max(reached.values(), default=None)
    names = [history.peer(p) for p in roots]
    return [names, len(links), depth, len(links) - len(reached)]


def test_tree_depth_over_time_equals_networkx(history: History, answer: Any) -> None:
    at = dict(ticks(history))
    last = len(at) - 1
    for topic in (2, 3):
        for low, high in ((0, last), (1, 3), (2, 2)):
            asked = {"topic": history.topic(topic), "from": low, "to": high}
            rows = answer("tree-depth", asked)
            assert rows == [[i, *state(history, topic, at[i])] for i in range(low, high + 1)]


@pytest.mark.parametrize("name", ["tree-depth", "top-relays", "temporal-reachability"])
def test_stretch_that_ends_before_it_begins_is_refused(
    history: History, answer: Any, name: str
) -> None:
    of = {"tree-depth": {"topic": "topic 2"}, "temporal-reachability": {"peer": "peer 1"}}
    with pytest.raises(UseError, match=naming("from and to", "interval 1", "interval 3")):
        answer(name, {"from": 3, "to": 1, **of.get(name, {})})


def test_tree_depth_handles_a_circle_and_a_crashed_root(graph: Graph, loaded: Any) -> None:
    """0 ← 1 ← 2, and 3 ⇄ 4 that hang on nothing; in interval 2 the root is gone, then 1 is it."""
    base = random_history(5, name="tree", peers=5, intervals=5)
    base.rows["presence"] = [{"peer": p, "valid_from": 0, "valid_to": OPEN} for p in range(5)]
    base.rows["subscriptions"], base.rows["roles"] = (
        [],
        [
            {
                "peer": peer,
                "role": "rendezvous",
                "topic": 2,
                "valid_from": valid_from,
                "valid_to": valid_to,
            }
            for peer, valid_from, valid_to in ((0, 0, 2), (1, 3, OPEN))
        ],
    )
    base.rows["links"] = [
        {"src": a, "dst": b, "layer": "tree", "topic": 2, "valid_from": 0, "valid_to": valid_to}
        for a, b, valid_to in ((1, 0, 2), (2, 1, OPEN), (3, 4, OPEN), (4, 3, OPEN))
    ]
    loaded(base)
    asked = {"topic": "topic 2", "from": "first", "to": "last"}
    rows = ask(graph.driver, graph.database, "tree-depth", asked, run="tree").rows
    whole, without, after = [["peer 0"], 5, 2, 2], [[], 4, None, 4], [["peer 1"], 4, 1, 2]
    assert rows == [[i, *state] for i, state in enumerate((whole, whole, without, after, after))]


def test_tree_depth_without_a_tree_layer_is_refused(graph: Graph, loaded: Any) -> None:
    history = random_history(12, name="treeless")
    history.rows["links"] = [r for r in history.rows["links"] if r["layer"] != "tree"]
    loaded(replace(history))
    asked = {"topic": "topic 2", "from": 0, "to": 3}
    with pytest.raises(UnknownName, match=naming(unknown("layer", "tree"), "mesh, overlay")):
        ask(graph.driver, graph.database, "tree-depth", asked, run="treeless")


WALKS = {"out": [False], "in": [True], "both": [False, True]}
"""Whether links are walked against their direction."""


def moments(history: History, low: int, high: int, per_hop: int, direction: str) -> nx.DiGraph[Any]:
    """A node for each peer and tick of a stretch; from one to another a wait or a hop."""
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for at in range(low, high + 1):
        for peer in range(len(history.rows["peers"])):
            graph.add_edge((peer, at), (peer, at + 1), hops=0)
        for row in history.alive("links", at):
            for turned in WALKS[direction]:
                a, b = (row["dst"], row["src"]) if turned else (row["src"], row["dst"])
                graph.add_edge((a, at), (b, at + per_hop), hops=1)
    return graph.subgraph([(peer, at) for peer, at in graph if at <= high])


@pytest.mark.parametrize("direction", WALKS)
def test_peers_reachable_over_time_equal_networkx(
    history: History, answer: Any, direction: str
) -> None:
    at = dict(ticks(history))
    last = len(at) - 1
    for low, high, per_hop in ((0, last, 0), (0, last, 1), (1, last, 4), (1, 3, 2), (2, 2, 0)):
        graph = moments(history, at[low], at[high], per_hop, direction)
        for period in history.alive("presence", at[low])[:3]:
            start = (period["peer"], at[low])
            reached = nx.single_source_dijkstra_path_length(graph, start, weight="hops")
            expected: dict[str, list[int]] = {}
            for (peer, tick), hops in sorted(reached.items()):
                found = [tick, history.facts.clock.interval_of(tick), hops]
                expected.setdefault(history.peer(peer), found)
            name = history.peer(period["peer"])
            del expected[name]
            asked = {"from": low, "to": high, "peer": name, "per_hop": per_hop}
            rows = answer("temporal-reachability", {**asked, "direction": direction})
            assert {row[0]: row[1:] for row in rows} == expected, (low, high, per_hop, name)
            assert [row[1] for row in rows] == sorted(row[1] for row in rows)


def test_hop_duration_is_given_as_time_or_ticks(graph: Graph, loaded: Any) -> None:
    asked = {"from": "first", "to": "last"}
    histories = [random_history(14, name="timed", ticks=5), random_history(15, name="untimed")]
    (timed, peer), (untimed, other) = (
        (loaded(h), h.peer(h.alive("presence", h.facts.clock.sampling_tick(0))[0]["peer"]))
        for h in histories
    )
    assert (timed.facts.clock.tick_us, untimed.facts.clock.tick_us) == (1_000, None)

    def rows(run: str, peer: str, per_hop: str) -> Rows:
        given = {**asked, "peer": peer, "per_hop": per_hop}
        return ask(graph.driver, graph.database, "temporal-reachability", given, run=run).rows

    assert rows("timed", peer, "3ms") == rows("timed", peer, "3")
    assert rows("untimed", other, str(2**63 - 1)) == []
    for run, of, per_hop, words in (
        (
            "timed",
            peer,
            "1.5ms",
            naming("per_hop: '1.5ms'", "0.001 s"),
        ),
        ("timed", peer, "-1", "per_hop: '-1'"),
        ("untimed", other, "3ms", "per_hop: '3ms'"),
    ):
        with pytest.raises(UseError, match=words):
            rows(run, of, per_hop)
