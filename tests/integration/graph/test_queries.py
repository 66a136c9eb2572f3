"""Every shipped query against networkx or a plain loop over the tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from typing import Any

import networkx as nx
import pytest

from tests.integration.graph.conftest import (
    HISTORIES,
    Graph,
    History,
    Row,
    layers_of_channels,
    random_history,
)
from tests.support.few import few
from tests.support.words import naming, unknown
from vizpub import cypher
from vizpub.graphstore.ask.parameters import ABSENT, MISSING
from vizpub.graphstore.ask.queries import Answer, Limits, ask, query_names
from vizpub.graphstore.gexf.export import (
    OverlayExport,
    export_message,
    export_overlay,
    export_topic,
)
from vizpub.graphstore.gexf.graph_rows import GraphRows
from vizpub.graphstore.runs import open_run
from vizpub.model.clock import OPEN
from vizpub.model.errors import AmbiguousName, OutOfRange, UnknownName, UseError
from vizpub.model.run import CAPABILITIES, DUPLICATES, NO_DATA

pytestmark = pytest.mark.neo4j

CHOSEN = [None, ["mesh"], ["overlay", "tree"]]
LAYERS = [None, pytest.param(["mesh"], marks=pytest.mark.long), ["overlay", "tree"]]
"""One layer says what two do."""


def few_or(many: int, few: int = 2) -> list[Any]:
    """How many to start from: few say nearly as much as many."""
    return [few, pytest.param(many, marks=pytest.mark.long)]


def ticks(history: History) -> list[tuple[int, int]]:
    """(interval, sampling tick) of a run; with a tick per interval every bound is one."""
    clock = history.facts.clock
    return [(i, clock.sampling_tick(i)) for i in range(clock.first, clock.last + 1)]


def links(history: History, at: int, layers: list[str] | None) -> list[Row]:
    return [r for r in history.alive("links", at) if layers is None or r["layer"] in layers]


def collected(
    history: History, rows: Iterable[Row]
) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """{(src, dst): (layers, topics)} by name."""
    result: dict[tuple[str, str], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for row in rows:
        layers, topics = result[history.peer(row["src"]), history.peer(row["dst"])]
        layers.add(row["layer"])
        if row["topic"] is not None:
            topics.add(history.topic(row["topic"]))
    return dict(result)


def digraph(history: History, at: int, layers: list[str] | None) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(history.peer(r["peer"]) for r in history.alive("presence", at))
    graph.add_edges_from(collected(history, links(history, at, layers)))
    return graph


def given(at: int, layers: list[str] | None, **more: object) -> dict[str, object]:
    return {"at": at, **more} | ({} if layers is None else {"layers": layers})


def as_overlay(rows: list[list[Any]]) -> tuple[dict[Any, Any], set[str]]:
    """(links as `collected`, peers without links); each may stand there once."""
    pairs = {(s, d): (set(ls), set(ts)) for s, d, ls, ts in rows if d is not None}
    alone = {s for s, d, _, _ in rows if d is None}
    assert len(pairs) + len(alone) == len(rows)
    assert all(names == sorted(names) for row in rows for names in row[2:])
    return pairs, alone


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_overlay_at_each_interval_equals_networkx(
    history: History, answer: Any, layers: Any
) -> None:
    for i, at in ticks(history):
        expected = digraph(history, at, layers)
        pairs, alone = as_overlay(answer("overlay", given(i, layers)))
        assert pairs == collected(history, links(history, at, layers)), i
        assert alone == set(nx.isolates(expected)), i


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_topic_subgraph_at_each_interval_equals_networkx(
    history: History, answer: Any, layers: Any
) -> None:
    for i, at in ticks(history):
        for topic in (i % 4, (i + 1) % 4):
            subscribed = {
                history.peer(r["peer"])
                for r in history.alive("subscriptions", at)
                if r["topic"] == topic
            }
            expected = digraph(history, at, layers).subgraph(subscribed)
            rows = answer("topic-subgraph", given(i, layers, topic=history.topic(topic)))
            pairs, alone = as_overlay(rows)
            every = collected(history, links(history, at, layers))
            assert pairs == {pair: every[pair] for pair in expected.edges}, (i, topic)
            assert alone == set(nx.isolates(expected)), (i, topic)


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_shared_topics_are_those_to_which_both_ends_subscribe(
    history: History, answer: Any, layers: Any
) -> None:
    for i, at in ticks(history)[::2]:
        taken: dict[str, set[str]] = defaultdict(set)
        for row in history.alive("subscriptions", at):
            taken[history.peer(row["peer"])].add(history.topic(row["topic"]))
        pairs = collected(history, links(history, at, layers))
        expected = {
            (src, dst): (sorted(of_layers), sorted(taken[src] & taken[dst]))
            for (src, dst), (of_layers, _) in pairs.items()
        }
        rows = answer("shared-topics", given(i, layers))
        assert {(src, dst): (ls, shared) for src, dst, ls, shared in rows} == expected
        assert len(rows) == len(expected)
        # A regular expression is for the whole name of one topic.
        chosen = answer("shared-topics", given(i, layers, topics="topic (0|1)"))
        assert chosen == [row for row in rows if {"topic 0", "topic 1"} & {*row[3]}]
        assert answer("shared-topics", given(i, layers, topics="opic")) == []


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_neighbours_equal_the_links_of_the_tables(
    history: History, answer: Any, layers: Any
) -> None:
    for i, at in ticks(history)[::3]:
        alive = links(history, at, layers)
        for peer in digraph(history, at, layers):
            rows = answer("neighbours", given(i, layers, peer=peer))
            expected = collected(history, alive)
            found = set()
            for neighbour, links_to, linked_from, ls, ts in rows:
                there, back = expected.get((peer, neighbour)), expected.get((neighbour, peer))
                assert (links_to, linked_from) == (there is not None, back is not None)
                assert (ls, ts) == (sorted(ls), sorted(ts))
                both = [e for e in (there, back) if e]
                assert set(ls) == set().union(*(e[0] for e in both))
                assert set(ts) == set().union(*(e[1] for e in both))
                found.add(neighbour)
            assert found == {d for s, d in expected if s == peer} | {
                s for s, d in expected if d == peer
            }


@pytest.mark.parametrize("sources", few_or(5, 1))
@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_shortest_paths_equal_networkx(
    history: History, answer: Any, layers: Any, sources: int
) -> None:
    for i, at in ticks(history)[::3]:
        graph = digraph(history, at, layers)
        present = sorted(graph)
        for a in present[:sources]:
            for b in present:
                asked = given(i, layers, **{"from": a, "to": b})
                one, every = answer("shortest-path", asked), answer("all-shortest-paths", asked)
                if not nx.has_path(graph, a, b):
                    assert one == every == []
                    continue
                paths = sorted(nx.all_shortest_paths(graph, a, b))
                assert every == [[len(path) - 1, path] for path in paths]
                assert len(one) == 1
                assert one[0] in every


def test_path_needs_all_its_links_at_one_time(graph: Graph, loaded: Any) -> None:
    """a→b alive when b→c is not: no path, though both links are there at some time."""
    base = random_history(5, name="closed", peers=3, intervals=6, messages=1)
    always = [{"peer": p, "valid_from": 0, "valid_to": OPEN} for p in range(3)]
    periods = [(0, 1, 0, 3), (1, 2, 3, OPEN), (0, 1, 4, 5)]
    base.rows["presence"], base.rows["subscriptions"] = always, []
    base.rows["links"] = [
        {
            "src": a,
            "dst": b,
            "layer": "overlay",
            "topic": None,
            "valid_from": valid_from,
            "valid_to": valid_to,
        }
        for a, b, valid_from, valid_to in periods
    ]
    loaded(base)
    asked = {"from": "peer 0", "to": "peer 2"}
    hops = [
        [row[0] for row in ask(graph.driver, graph.database, "shortest-path", {"at": i, **asked},
                               run="closed").rows]
        for i in range(6)
    ]  # fmt: skip
    assert hops == [[], [], [], [], [2], []]


def test_links_between_two_times_equal_the_tables(history: History, answer: Any) -> None:
    at = dict(ticks(history))
    pairs = [(0, len(at) - 1), (1, 3), (2, 2), (0, 1)]
    for first, last in [p for p in pairs if p[1] < len(at)]:
        low, high = at[first], at[last]
        for layers in CHOSEN:
            rows = answer("links-between", {"from": first, "to": last, "layers": layers})
            expected = [
                [history.peer(r["src"]), history.peer(r["dst"]), r["layer"],
                 None if r["topic"] is None else history.topic(r["topic"]),
                 r["valid_from"], None if r["valid_to"] == OPEN else r["valid_to"]]
                for r in history.rows["links"]
                if r["valid_from"] < high and r["valid_to"] > low
                and (layers is None or r["layer"] in layers)
            ]  # fmt: skip
            assert sorted(map(repr, rows)) == sorted(map(repr, expected))


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_difference_of_two_intervals_equals_networkx(
    history: History, answer: Any, layers: Any
) -> None:
    at = dict(ticks(history))
    for before, after in ((0, 1), (0, len(at) - 1), (len(at) - 1, 2), (1, 1)):
        old, new = (digraph(history, at[i], layers) for i in (before, after))
        rows = answer("overlay-diff", {"before": before, "after": after, "layers": layers})
        found = {(change, src, dst) for change, src, dst in rows}
        assert len(found) == len(rows)
        assert found == {
            *(("added", a, b) for a, b in set(new.edges) - set(old.edges)),
            *(("removed", a, b) for a, b in set(old.edges) - set(new.edges)),
            *(("added", a, None) for a in set(new) - set(old)),
            *(("removed", a, None) for a in set(old) - set(new)),
        }


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_hubs_equal_networkx_degrees(history: History, answer: Any, layers: Any) -> None:
    for i, at in ticks(history)[::2]:
        graph = digraph(history, at, layers)
        expected = {
            p: (d, graph.in_degree(p), graph.out_degree(p))
            for p, d in graph.to_undirected().degree()
            if d
        }
        rows = answer("hubs", given(i, layers, k=100))
        assert {row[0]: tuple(row[1:]) for row in rows} == expected
        assert [row[1] for row in rows] == sorted((d for d, *_ in expected.values()), reverse=True)
        assert answer("hubs", given(i, layers, k="2")) == rows[:2]
        assert answer("hubs", given(i, layers)) == rows[:10]


def test_dissemination_tree_equals_the_receptions(history: History, answer: Any) -> None:
    for message in history.rows["publications"][::2]:
        rows = answer("dissemination-tree", {"message": message["name"]})
        expected = [
            [r["hop"], r["time_us"],
             None if r["previous_hop"] is None else history.peer(r["previous_hop"]),
             history.peer(r["peer"]), r["first"], r["subscribed"]]
            for r in history.rows["receptions"]
            if r["message"] == message["message"]
        ]  # fmt: skip
        assert sorted(map(repr, rows)) == sorted(map(repr, expected))
        hops = [row[0] for row in rows if row[0] is not None]
        assert hops == sorted(hops)


def test_missed_subscribers_equal_the_tables(history: History, answer: Any) -> None:
    for m in history.rows["publications"][::2]:
        missed = {r["peer"] for r in history.rows["missed"] if r["message"] == m["message"]}
        rows = answer("missed-subscribers", {"message": m["name"]})
        assert rows == [[history.peer(p)] for p in sorted(missed)]


def test_relays_equal_the_receptions_of_the_uninterested(history: History, answer: Any) -> None:
    for topic in range(4):
        by = {m["message"]: m["publisher"] for m in history.rows["publications"]
              if m["topic"] == topic}  # fmt: skip
        relayed = [
            r
            for r in history.rows["receptions"]
            if r["message"] in by and by[r["message"]] != r["peer"] and not r["subscribed"]
        ]
        expected: dict[str, tuple[int | None, int | None]] = {}
        for peer in {r["peer"] for r in relayed}:
            own = [r for r in relayed if r["peer"] == peer]
            known = all(r["subscribed"] is False for r in own)
            counts = (len({r["message"] for r in own}), len(own)) if known else (None, None)
            expected[history.peer(peer)] = counts
        rows = answer("relays", {"topic": history.topic(topic)})
        assert {p: (ms, rs) for p, ms, rs in rows} == expected
        assert len(rows) == len(expected)


def receptions(history: History, messages: set[int]) -> list[Row]:
    return [r for r in history.rows["receptions"] if r["message"] in messages]


def of_topic(history: History, topic: int | None) -> set[int]:
    return {m["message"] for m in history.rows["publications"] if m["topic"] == topic}


def again(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The receptions of each peer that has a duplicate."""
    own: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        own[f"peer {row['peer']}"].append(row)
    return {peer: of for peer, of in own.items() if not all(r["first"] for r in of)}


def test_duplicates_of_a_message_equal_the_receptions(history: History, answer: Any) -> None:
    for message in history.rows["publications"][::2]:
        own = again(receptions(history, {message["message"]}))
        rows = answer("duplicates-of-message", {"message": message["name"]})
        assert {row[0]: row[1:] for row in rows} == {
            peer: [sum(not r["first"] for r in of), len(of)] for peer, of in own.items()
        }
        assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)


def test_duplicates_of_a_topic_equal_the_receptions(history: History, answer: Any) -> None:
    for topic in range(4):
        own = again(receptions(history, of_topic(history, topic)))
        rows = answer("duplicates-of-topic", {"topic": history.topic(topic)})
        assert {row[0]: row[1:] for row in rows} == {
            peer: [sum(not r["first"] for r in of), len(of), len({r["message"] for r in of})]
            for peer, of in own.items()
        }


def test_duplicates_by_topic_equal_the_receptions(history: History, answer: Any) -> None:
    rows = answer("duplicates-by-topic", {})
    expected = {}
    for topic in range(4):
        messages = of_topic(history, topic)
        came = receptions(history, messages)
        firsts = sum(r["first"] for r in came)
        factor = pytest.approx(len(came) / firsts - 1) if firsts else None
        sizes = {row["message"]: row["bytes"] for row in history.rows["publications"]}
        sized = [size for r in came if (size := sizes[r["message"]]) is not None]
        size = sum(sized) if sized else None
        expected[history.topic(topic)] = [
            len(messages),
            len(came),
            len(came) - firsts,
            factor,
            size,
        ]
    assert {row[0]: row[1:] for row in rows} == expected
    assert [row[3] for row in rows] == sorted((row[3] for row in rows), reverse=True)


def test_peer_topics_equal_the_tables(history: History, answer: Any) -> None:
    for peer in history.rows["peers"][::2]:
        id = peer["peer"]
        expected = {}
        for topic in (None, 0, 1, 2, 3):
            came = [r for r in receptions(history, of_topic(history, topic)) if r["peer"] == id]
            sent = [r for r in receptions(history, of_topic(history, topic))
                    if r["previous_hop"] == id]  # fmt: skip
            published = [m for m in history.rows["publications"]
                         if m["topic"] == topic and m["publisher"] == id]  # fmt: skip
            seen = {r["message"] for r in (*came, *sent)}
            is_known = any(m["publisher"] is not None for m in history.rows["publications"]
                           if m["message"] in seen)  # fmt: skip
            if came or sent or published:
                expected[None if topic is None else history.topic(topic)] = [
                    len(published) if published or is_known else None,
                    len({r["message"] for r in came if r["first"]}), len(came),
                    sum(not r["first"] for r in came), len(sent),
                ]  # fmt: skip
        rows = answer("peer-topics", {"peer": peer["name"]})
        assert {row[0]: row[1:] for row in rows} == expected
        assert len(rows) == len(expected)


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_topics_at_each_interval_equal_the_tables(
    history: History, answer: Any, layers: Any
) -> None:
    for i, at in ticks(history):
        overlay = digraph(history, at, layers)
        expected = {}
        for topic in range(4):
            subscribed = {
                history.peer(r["peer"])
                for r in history.alive("subscriptions", at)
                if r["topic"] == topic
            }
            published = [
                m for m in history.rows["publications"]
                if m["topic"] == topic and m["tick"] <= at
            ]  # fmt: skip
            publishers = {m["publisher"] for m in published} - {None}
            rendezvous = sorted(
                r["peer"] for r in history.alive("roles", at)
                if (r["role"], r["topic"]) == ("rendezvous", topic)
            )  # fmt: skip
            inside = overlay.subgraph(subscribed)
            expected[history.topic(topic)] = [
                len(subscribed), [history.peer(p) for p in rendezvous],
                inside.number_of_edges(), len(published), len(publishers),
            ]  # fmt: skip
        rows = answer("topics", given(i, layers))
        assert {row[0]: row[1:] for row in rows} == expected, i
        assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)


def test_peer_history_equals_the_tables(history: History, answer: Any) -> None:
    for p in history.rows["peers"][:6]:
        id, rows = p["peer"], answer("peer-history", {"peer": p["name"]})
        expected = [
            *([r["valid_from"], r["valid_to"], "present", None, None, None]
              for r in history.rows["presence"] if r["peer"] == id),
            *([r["valid_from"], r["valid_to"], "links to", history.peer(r["dst"]), r["layer"],
               r["topic"]]
              for r in history.rows["links"] if r["src"] == id),
            *([r["valid_from"], r["valid_to"], "linked from", history.peer(r["src"]), r["layer"],
               r["topic"]]
              for r in history.rows["links"] if r["dst"] == id),
            *([r["valid_from"], r["valid_to"], "subscribes", history.topic(r["topic"]), None, None]
              for r in history.rows["subscriptions"] if r["peer"] == id),
            *([r["valid_from"], r["valid_to"], "plays", r["role"], None, r["topic"]]
              for r in history.rows["roles"] if r["peer"] == id),
            *([r["valid_from"], r["valid_to"], "has", f"{r['key']}={r['value']}", None, None]
              for r in history.rows["attributes"] if r["peer"] == id),
            *([r["tick"], r["tick"] + 1, "publishes", r["name"], None, r["topic"]]
              for r in history.rows["publications"] if r["publisher"] == id),
        ]  # fmt: skip
        for row in expected:
            row[1] = None if row[1] == OPEN else row[1]
            row[5] = None if row[5] is None else history.topic(row[5])
        assert sorted(map(repr, rows)) == sorted(map(repr, expected))
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_runs_of_similar_names_are_told_apart(graph: Graph, loaded: Any) -> None:
    """Two runs whose names and dense indexes begin alike."""
    one, two = (
        loaded(random_history(seed, name=name, peers=6, intervals=5))
        for seed, name in ((6, "twin"), (7, "twin-2"))
    )
    for history in (one, two):
        for i, at in ticks(history):
            rows = ask(graph.driver, graph.database, "overlay", {"at": i},
                       run=history.facts.name).rows  # fmt: skip
            assert as_overlay(rows)[0] == collected(history, links(history, at, None))
    listed = {row[0]: row for row in ask(graph.driver, graph.database, "runs", {}).rows}
    for history in (one, two):
        row = listed[history.facts.name]
        assert row[1] == "synthetic"
        assert row[6:] == [
            len(history.rows[t]) for t in ("peers", "topics", "publications", "links", "receptions")
        ]


def test_answer_columns_equal_the_header_of_the_query(graph: Graph, once: Any) -> None:
    name_of_run = once(HISTORIES[0]).facts.name
    period = ask(graph.driver, graph.database, "overlay", {"at": 0}, run=name_of_run).rows[0]
    samples: dict[str, object] = {
        "at": 0, "from": 0, "to": 5, "before": 0, "after": 5, "peer": period[0], "topic": "topic 1",
        "message": "m1", "k": 3, "mode": "all",
    }  # fmt: skip
    for name in query_names():
        query = cypher.statement("queries", name)
        values = layers_of_channels(name) | {
            p.name: period[0] if p.type == "peer" else samples[p.name]
            for p in query.parameters
            if p.name in samples and not (p.type == "tick" and p.optional)
        }
        answer: Answer = ask(graph.driver, graph.database, name, values, run=name_of_run)
        assert answer.columns == tuple(c.name for c in query.columns), name


@pytest.fixture
def asked(once: Any) -> str:
    """A run that wrong questions are put to."""
    name: str = once(HISTORIES[0]).facts.name
    return name


@pytest.mark.parametrize(
    ("name", "values", "error", "words"),
    [
        ("overlays", {}, UnknownName, unknown("query", "overlays", "overlay")),
        ("overlay", {}, UseError, f"at {MISSING}"),
        ("overlay", {"at": "3", "layer": "mesh"}, UseError, "parameter layer"),
        ("overlay", {"at": "99"}, OutOfRange, "intervals 0 to 8"),
        ("overlay", {"at": "noon"}, UseError, "noon"),
        ("overlay", {"at": "3", "layers": "mash"}, UnknownName, unknown("layer", "mash", "mesh")),
        ("topic-subgraph", {"at": "3", "topic": "topik 1"}, UnknownName, "topic 1"),
        ("neighbours", {"at": "3", "peer": "peer 77"}, UnknownName, "peer 7"),
        ("dissemination-tree", {"message": "m99"}, UnknownName, "m9"),
        ("hubs", {"at": "3", "k": "many"}, UseError, "parameter k: 'many'"),
        ("hubs", {"at": "3", "k": "0"}, UseError, "parameter k: 0"),
    ],
)
def test_wrong_query_is_refused_with_what_would_be_right(
    graph: Graph, asked: str, name: str, values: dict[str, object], error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        ask(graph.driver, graph.database, name, values, run=asked)


@pytest.mark.parametrize(
    ("short", "meant"),
    [("#3", "peer 3"), ("r 4", "peer 4"), ("p…r 5", "peer 5"), ("pe...6", "peer 6"),
     ("peer 1", "peer 1")],
)  # fmt: skip
def test_short_name_asks_about_the_peer_that_has_it(
    graph: Graph, asked: str, short: str, meant: str
) -> None:
    def asked_of(name: str) -> list[list[Any]]:
        return ask(graph.driver, graph.database, "peer-history", {"peer": name}, run=asked).rows

    assert asked_of(short) == asked_of(meant) != []


@pytest.mark.parametrize("short", ["peer", "p…", "…"])
def test_short_name_of_several_peers_is_refused(graph: Graph, asked: str, short: str) -> None:
    with pytest.raises(AmbiguousName, match=naming(f"'{short}'", "peer 0, peer 1, peer 2, …")):
        ask(graph.driver, graph.database, "peer-history", {"peer": short}, run=asked)


GIVEN: dict[str, object] = {
    "at": 3, "from": 0, "to": 5, "before": 0, "after": 5, "peer": "peer 0", "topic": "topic 1",
    "message": "m1", "mode": "all",
}  # fmt: skip


COPIES = {"duplicates", "receptions", "copies", "sent"}


@pytest.mark.parametrize(
    "unknown",
    few(
        ["presence", "links", "subscriptions", "receptions", *CAPABILITIES],
        ["links", DUPLICATES],
    ),
)
def test_query_of_unknown_data_is_refused_or_answers_null(
    graph: Graph, loaded: Any, unknown: str
) -> None:
    history = random_history(18, name="unreported")
    known = tuple(sorted({*history.rows, *CAPABILITIES} - {unknown}))
    if unknown in history.rows:
        history.rows[unknown] = []
    loaded(replace(history, facts=replace(history.facts, known=known)))
    told = set[bool]()
    """Whether counts of copies are known."""
    for name in query_names():
        query = cypher.statement("queries", name)
        values = layers_of_channels(name) | {
            p.name: "peer 0" if p.type == "peer" else GIVEN[p.name]
            for p in query.parameters
            if p.name in GIVEN and not (p.type == "tick" and p.optional)
        }
        if unknown in query.needs:
            with pytest.raises(UseError, match=f"'unreported' {NO_DATA} {unknown}"):
                ask(graph.driver, graph.database, name, values, run="unreported")
        elif not any(p.type == "peer" and p.at for p in query.parameters):
            found = ask(graph.driver, graph.database, name, values, run="unreported")
            counts = [i for i, column in enumerate(found.columns) if column in COPIES]
            if name != "runs":
                told.update(row[i] is not None for row in found.rows for i in counts)
    if unknown != "receptions":  # else no query that counts copies was answered
        assert (True in told) == (unknown != DUPLICATES)


def test_export_of_unknown_data_is_refused(graph: Graph, loaded: Any) -> None:
    history = random_history(19, name="unreported")
    loaded(replace(history, facts=replace(history.facts, known=("links", "publications"))))
    run, out = GraphRows(open_run(graph.driver, graph.database, "unreported")), StringIO()
    with pytest.raises(UseError, match=f"{NO_DATA} presence"):
        export_overlay(run, OverlayExport(), None, out)
    with pytest.raises(UseError, match=f"{NO_DATA} subscriptions"):
        export_topic(run, "topic 1", OverlayExport(), None, out)
    with pytest.raises(UseError, match=f"{NO_DATA} receptions"):
        export_message(run, "m1", out)
    assert out.getvalue() == ""


def test_absent_peer_is_refused_with_its_stays(graph: Graph, once: Any) -> None:
    history = once(HISTORIES[1])
    absent = [
        (i, peer["name"])
        for i, at in ticks(history)
        for peer in history.rows["peers"]
        if not any(r["peer"] == peer["peer"] for r in history.alive("presence", at))
    ]
    assert absent
    for i, peer in absent[:5]:
        asked = {"at": i, "peer": peer}
        with pytest.raises(UseError) as error:
            ask(graph.driver, graph.database, "neighbours", asked, run=history.facts.name)
        told = str(error.value)
        assert told.startswith(f"peer '{peer}' {ABSENT} interval {i}")
        periods = sorted(
            (r["valid_from"], r["valid_to"])
            for r in history.rows["presence"]
            if history.peer(r["peer"]) == peer
        )
        found = re.findall(r"from interval (\d+) (?:to before interval (\d+)|(on))", told)
        assert [
            (int(valid_from), OPEN if on else int(valid_to)) for valid_from, valid_to, on in found
        ] == periods


def test_row_limit_cuts_the_answer_and_sets_more(graph: Graph, once: Any) -> None:
    history, at = once(HISTORIES[1]), {"at": 4}
    name = history.facts.name
    whole = ask(graph.driver, graph.database, "overlay", at, run=name)
    assert not whole.more
    for rows in (0, 1, len(whole.rows) - 1, len(whole.rows)):
        part = ask(graph.driver, graph.database, "overlay", at, run=name,
                   limits=Limits(rows=rows))  # fmt: skip
        assert part.rows == whole.rows[:rows]
        assert part.more == (rows < len(whole.rows))
    assert history.facts.clock.last >= 4
