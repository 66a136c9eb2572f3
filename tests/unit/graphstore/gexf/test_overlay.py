"""Random histories of an overlay: what networkx reads at an interval is what was alive then."""

import io
import math
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vizpub.graphstore.gexf.check import check_gexf
from vizpub.graphstore.gexf.overlay import (
    OverlayGraph,
    OverlayRows,
    circle_position,
    join_delimited,
)
from vizpub.graphstore.gexf.rows import AttributeRow, LinkRow, PresenceRow, SubscriptionRow
from vizpub.graphstore.gexf.writer import Head, write_gexf
from vizpub.model.clock import OPEN, Clock

GEXF = "{http://gexf.net/1.3}"
PEERS, TOPICS, LAYERS = 8, 4, ("mesh", "overlay")


class History:
    """Periods of peers, subscriptions and links, links inside the presence of both ends."""

    def __init__(self, seed: int, ticks_per_interval: int) -> None:
        self.random = random.Random(seed)
        self.clock = Clock(ticks_per_interval, first=2, last=11)
        self.ticks = 12 * ticks_per_interval
        self.presence = [
            PresenceRow(p, *period) for p in range(PEERS) for period in self.periods((0, OPEN))
        ]
        self.subscriptions = [
            SubscriptionRow(row.peer, topic, *period)
            for row in self.presence
            for topic in range(TOPICS)
            if self.random.random() < 0.5
            for period in self.periods(row[1:])
        ]
        self.links = sorted(
            (
                LinkRow(a.peer, b.peer, layer, topic, *period)
                for a in self.presence
                for b in self.presence
                if a.peer != b.peer
                for layer in LAYERS
                for topic in (None, 1)
                if self.random.random() < 0.2
                for period in self.periods(
                    (max(a.valid_from, b.valid_from), min(a.valid_to, b.valid_to))
                )
            ),
            key=lambda row: row[:2],
        )

    def periods(self, within: tuple[int, int]) -> list[tuple[int, int]]:
        """Disjoint periods of some ticks inside others, the last one perhaps open."""
        low, high = within[0], min(within[1], self.ticks)
        if high - low < 4:
            return [within] if low < high else []
        cuts = sorted(self.random.sample(range(low, high), 4))
        periods = [(cuts[0], cuts[1]), (cuts[2], cuts[3])]
        if within[1] == OPEN and self.random.random() < 0.5:
            periods[1] = (cuts[2], OPEN)
        return periods

    def rows(self) -> OverlayRows:
        peers = [(p, f"peer {p}") for p in range(PEERS)]
        return OverlayRows(
            peers,
            iter(self.presence),
            iter(self.subscriptions),
            iter(self.links),
            roles={
                1: frozenset(["publisher", "relay"]),
                2: frozenset(["relay"]),
                3: frozenset(["publisher", "rendezvous"]),
            },
            topics={topic: f"topic {topic}" for topic in range(TOPICS)},
            layers=LAYERS,
        )

    def alive(self, rows, interval):
        tick = self.clock.sampling_tick(interval)
        return [row for row in rows if row.valid_from <= tick < row.valid_to]


histories = st.builds(History, st.integers(0, 2**32), st.sampled_from([1, 3]))


def exported(graph: OverlayGraph, values=(), metrics=()) -> str:
    out = io.StringIO()
    head = Head("test", graph.node_attributes(metrics), graph.edge_attributes())
    write_gexf(out, head, graph.nodes(values), graph.edges())
    return out.getvalue()


def read(text: str) -> nx.Graph:
    return nx.read_gexf(io.BytesIO(text.encode()))


def at(interval: int, elements):
    """The ids of the nodes or edges whose spells hold the middle of an interval."""
    middle = interval + 0.5
    return [
        key
        for *key, data in elements
        if any(start <= middle <= end for start, end in data["spells"])
    ]


def value_at(interval: int, runs) -> list:
    return [value for value, start, end in runs if start <= interval + 0.5 <= end]


@settings(max_examples=40)
@given(histories)
def test_gexf_has_peers_and_distinct_links_of_each_interval(history):
    graph = read(exported(OverlayGraph(history.rows(), history.clock)))
    for i in range(history.clock.first, history.clock.last + 1):
        peers = {row.peer for row in history.alive(history.presence, i)}
        links = {row[:2] for row in history.alive(history.links, i)}
        assert sorted(int(*key) for key in at(i, graph.nodes(data=True))) == sorted(peers)
        assert sorted(tuple(map(int, k)) for k in at(i, graph.edges(data=True))) == sorted(links)


@settings(max_examples=40)
@given(histories)
def test_parallel_edges_are_links_of_each_layer_and_topic(history):
    graph = nx.MultiDiGraph(
        read(exported(OverlayGraph(history.rows(), history.clock, parallel=True)))
    )
    for i in range(history.clock.first, history.clock.last + 1):
        links = Counter(row[:2] for row in history.alive(history.links, i))
        assert Counter(tuple(map(int, k)) for k in at(i, graph.edges(data=True))) == links


@settings(max_examples=40)
@given(histories, st.sampled_from([(2, 11), (4, 6), (5, 5), (11, 11)]), st.booleans())
def test_gexf_of_random_histories_passes_check_gexf(tmp_path_factory, history, window, parallel):
    path = tmp_path_factory.mktemp("gexf") / "overlay.gexf"
    for topic in (None, 1):
        graph = OverlayGraph(
            history.rows(), Clock(history.clock.ticks_per_interval, None, *window), topic, parallel
        )
        path.write_text(exported(graph), "utf-8")
        assert list(check_gexf(path)) == []


@settings(max_examples=40)
@given(histories)
def test_topic_graph_has_its_subscribers_and_links_between_them(history):
    graph = read(exported(OverlayGraph(history.rows(), history.clock, topic=1)))
    for i in range(history.clock.first, history.clock.last + 1):
        subscribers = {r.peer for r in history.alive(history.subscriptions, i) if r.topic == 1}
        links = {r[:2] for r in history.alive(history.links, i) if set(r[:2]) <= subscribers}
        assert sorted(int(*key) for key in at(i, graph.nodes(data=True))) == sorted(subscribers)
        assert sorted(tuple(map(int, k)) for k in at(i, graph.edges(data=True))) == sorted(links)


@settings(max_examples=40)
@given(histories)
def test_topic_attributes_equal_the_subscriptions_of_each_interval(history):
    graph = read(exported(OverlayGraph(history.rows(), history.clock)))
    for i in range(history.clock.first, history.clock.last + 1):
        topics = {p: set() for p in range(PEERS)}
        for row in history.alive(history.subscriptions, i):
            topics[row.peer].add(row.topic)
        for (peer,) in at(i, graph.nodes(data=True)):
            data = graph.nodes[peer]
            assert value_at(i, data["subscriptions"]) == [len(topics[int(peer)])]
            assert value_at(i, data["topics_now"]) == [join_delimited(topics[int(peer)])]
            assert topics[int(peer)] <= {int(t) for t in data["topics"].strip("|").split("|") if t}
        for source, target in at(i, graph.edges(data=True)):
            shared = topics[int(source)] & topics[int(target)]
            data = graph.edges[source, target]
            assert value_at(i, data["shared_topics"]) == [len(shared)]
            assert value_at(i, data["shared_now"]) == [join_delimited(shared)]
            assert shared <= {int(t) for t in data["shared"].strip("|").split("|") if t}


def test_edge_weight_is_never_zero():
    text = exported(OverlayGraph(History(7, 1).rows(), History(7, 1).clock))
    weights = [part.split('"')[1] for part in text.split('for="weight" value=')[1:]]
    assert weights
    assert min(map(float, weights)) == 1


def test_edge_names_the_layers_and_topics_of_its_links():
    history = History(7, 1)
    graph = read(exported(OverlayGraph(history.rows(), history.clock)))
    for source, target, data in graph.edges(data=True):
        rows = [
            r
            for r in history.links
            if r[:2] == (int(source), int(target))
            and history.clock.sampled(r.valid_from, r.valid_to)
        ]
        assert data["layers"] == join_delimited({row.layer for row in rows})
        topics = {row.topic for row in rows} - {None}
        assert data.get("topics") == (join_delimited(topics) if topics else None)


def test_edge_says_in_which_layers_its_pair_is_linked_at_each_interval():
    for seed in range(5):
        history = History(seed, 1 + seed % 3)
        text = exported(OverlayGraph(history.rows(), history.clock))
        # networkx reads no dynamic values of edges.
        for edge in ElementTree.fromstring(text).iterfind(f".//{GEXF}edge"):
            ends = int(edge.get("source")), int(edge.get("target"))
            spells = [(s.get("start"), s.get("end")) for s in edge.iterfind(f".//{GEXF}spell")]
            for i in range(history.clock.first, history.clock.last + 1):
                if not any(float(start) <= i + 0.5 <= float(end) for start, end in spells):
                    continue
                held = {r.layer for r in history.alive(history.links, i) if r[:2] == ends}
                for layer in LAYERS:
                    (told,) = (
                        value.get("value")
                        for value in edge.iterfind(f".//{GEXF}attvalue[@for='layer_{layer}']")
                        if float(value.get("start")) <= i + 0.5 <= float(value.get("end"))
                    )
                    assert told == ("true" if layer in held else "false")


@pytest.mark.parametrize("parallel", [True, False])
def test_edges_of_a_single_layer_have_no_column_for_it(parallel):
    history = History(1, 1)
    rows = history.rows()
    if not parallel:
        rows = replace(rows, layers=("mesh",), links=[r for r in rows.links if r.layer == "mesh"])
    text = exported(OverlayGraph(rows, history.clock, parallel=parallel))
    assert "layer_mesh" not in text
    assert "|mesh|" in text


def test_peers_and_edges_have_short_labels_full_names_and_names_of_topics():
    rows = OverlayRows(
        [(0, "12D3KooWAlpha"), (1, "12D3KooWBeta1"), (2, "carol")],
        [PresenceRow(peer, 0, OPEN) for peer in range(3)],
        [SubscriptionRow(0, 1, 0, OPEN), SubscriptionRow(0, 0, 0, OPEN)],
        [LinkRow(0, 1, "mesh", 1, 0, OPEN)],
        topics={0: "news", 1: "alerts"},
    )
    graph = read(exported(OverlayGraph(rows, Clock(last=3))))
    assert dict(graph.nodes(data="label")) == {"0": "…lpha", "1": "…eta1", "2": "carol"}
    assert dict(graph.nodes(data="name")) == {
        "0": "12D3KooWAlpha", "1": "12D3KooWBeta1", "2": "carol",
    }  # fmt: skip
    assert graph.nodes["0"]["topic_names"] == "|news|alerts|"
    assert graph.nodes["2"]["topic_names"] == "|"
    assert graph.edges["0", "1"]["topic_names"] == "|alerts|"


def test_layers_that_differ_in_case_have_columns_that_differ_without():
    layers = ("MESH", "Mesh", "mesh", "mesh_2")
    rows = OverlayRows(
        [(0, "x"), (1, "y")],
        [PresenceRow(peer, 0, OPEN) for peer in range(2)],
        [],
        [LinkRow(0, 1, layer, None, 0, OPEN) for layer in layers],
        layers=layers,
    )
    graph = OverlayGraph(rows, Clock(last=3))
    titles = [a.title for a in graph.edge_attributes() if a.title.startswith("layer_")]
    assert titles == ["layer_MESH", "layer_Mesh_2", "layer_mesh_3", "layer_mesh_2_2"]
    (edge,) = graph.edges()
    assert [title for title, *_ in edge.runs if title.startswith("layer_")] == titles


def test_delimiter_in_a_name_is_escaped():
    assert join_delimited(["a|b", "a", "b", "c\\"]) == r"|a|a\|b|b|c\\|"
    rows = OverlayRows(
        [(0, "x")],
        [PresenceRow(0, 0, OPEN)],
        [SubscriptionRow(0, topic, 0, OPEN) for topic in range(3)],
        [],
        topics={0: "a|b", 1: "a", 2: "b"},
    )
    graph = read(exported(OverlayGraph(rows, Clock(last=3))))
    assert graph.nodes["0"]["topic_names"] == r"|a\|b|a|b|"


def test_metrics_become_dynamic_attributes_inside_the_window():
    rows = OverlayRows(
        [(0, "a"), (1, "b"), (2, "c")],
        [PresenceRow(0, 0, OPEN), PresenceRow(2, 0, OPEN)],
        [],
        [],
    )
    values = [
        (0, "degree", 0, 1, 1),
        (0, "degree", 2, 9, 2),
        (1, "degree", 0, 9, 7),
        (2, "betweenness", 3, 5, 0.5),
        (2, "betweenness", 8, 9, 1.5),
    ]
    graph = OverlayGraph(rows, Clock(first=2, last=7))
    read_back = read(exported(graph, values, ["degree", "betweenness"]))
    assert read_back.nodes["0"]["degree"] == [(2, 2, 7.999)]
    assert read_back.nodes["2"]["betweenness"] == [(0.5, 3, 5.999)]
    assert set(read_back.nodes) == {"0", "2"}


def test_overlay_without_subscriptions_has_no_topic_attributes():
    rows = OverlayRows(
        [(0, "a"), (1, "b")],
        [PresenceRow(0, 0, OPEN), PresenceRow(1, 0, OPEN)],
        [],
        [LinkRow(0, 1, "overlay", None, 0, OPEN)],
    )
    text = exported(OverlayGraph(rows, Clock(last=3)))
    assert "subscriptions" not in text
    assert "weight" not in text


def test_attributes_hold_while_their_peer_is_there():
    history = History(3, 2)
    rows = [
        AttributeRow(peer, key, f"{key}{peer}{part}", *period)
        for peer in range(0, PEERS, 2)
        for key in ("client", "Client", "name", 'a "b"', "Label", "stake")
        for part, period in enumerate([(0, 7), (9, OPEN)])
    ]
    told = replace(history.rows(), attributes=rows, own_metrics=["stake"])
    graph = OverlayGraph(told, history.clock)
    titles = [a.title for a in graph.node_attributes(()) if a.dynamic]
    assert titles[:6] == ["client", "Client_2", "name_2", 'a "b"', "Label_2", "stake_2"]
    text = exported(graph)
    nodes = read(text).nodes
    for interval in range(2, 12):
        tick = history.clock.sampling_tick(interval)
        present = {row.peer for row in history.presence if row[1] <= tick < row[2]}
        for peer in present & {*range(PEERS)}:
            values = {
                value
                for value, first, last in nodes[str(peer)].get("client", [])
                if float(first) <= interval <= float(last)
            }
            part = 0 if tick < 7 else 1 if tick >= 9 else None
            expected = {f"client{peer}{part}"} if peer % 2 == 0 and part is not None else set()
            assert values == expected


def test_roles_set_the_colour_and_size_of_peers():
    history = History(3, 1)
    graph = read(exported(OverlayGraph(history.rows(), history.clock)))
    roles = {peer: data["role"] for peer, data in graph.nodes(data=True)}
    assert roles["1"] == "publisher"
    assert roles["2"] == "relay"
    assert roles["3"] == "rendezvous"
    assert set(roles.values()) == {"rendezvous", "publisher", "relay", "peer"}
    every = {peer: data["roles"] for peer, data in graph.nodes(data=True)}
    assert [every[p] for p in "1234"] == [
        "|publisher|relay|",
        "|relay|",
        "|publisher|rendezvous|",
        "|",
    ]
    sizes = {role: graph.nodes[peer]["viz"]["size"] for peer, role in roles.items()}
    assert sizes.pop("rendezvous") == 16
    assert set(sizes.values()) == {8}
    colours = {role: str(graph.nodes[peer]["viz"]["color"]) for peer, role in roles.items()}
    assert len(set(colours.values())) == 4


def test_peers_stand_on_a_circle_by_id():
    places = [circle_position(peer, 100) for peer in range(100)]
    radius = {round(math.hypot(*place), 6) for place in places}
    angles = [math.atan2(y, x) % math.tau for x, y in places]
    assert len(radius) == 1
    assert angles == sorted(angles)
    assert math.dist(places[0], places[1]) > 8


def test_gexf_schema_accepts_random_histories():
    etree = pytest.importorskip("lxml.etree")
    if "VIZPUB_DATA" not in os.environ:
        pytest.skip("VIZPUB_DATA does not name the folder of the outside data")
    path = Path(os.environ["VIZPUB_DATA"], "gexf-1.3", "gexf.rng")
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    schema = etree.RelaxNG(etree.parse(path))
    for seed in range(20):
        history = History(seed, 1 + seed % 3)
        graph = OverlayGraph(history.rows(), history.clock, parallel=seed % 2 == 0)
        schema.assertValid(etree.fromstring(exported(graph).encode()))
