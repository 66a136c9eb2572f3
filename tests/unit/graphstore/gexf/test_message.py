"""One message's file: who appears at which hop."""

import xml.etree.ElementTree as ET

import networkx as nx
import pytest

from vizpub.graphstore.gexf.check import check_gexf
from vizpub.graphstore.gexf.message import MessageGraph, MessageRows
from vizpub.graphstore.gexf.rows import ArrivalRow
from vizpub.graphstore.gexf.writer import write_gexf

NAMES = {peer: f"p{peer}" for peer in range(10)}


def exported(rows: MessageRows, path, *, counts: bool = True) -> nx.DiGraph:
    graph = MessageGraph(rows, counts)
    with path.open("w", encoding="utf-8") as out:
        write_gexf(out, graph.head("m", "r"), graph.nodes(), graph.edges())
    assert list(check_gexf(path)) == []
    return nx.read_gexf(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "message.gexf"


def test_message_graph_shows_receptions_from_their_hop_on(path):
    rows = MessageRows(
        NAMES,
        publisher=0,
        time_us=1_000,
        arrivals=[
            ArrivalRow(0, 1, 1, 1_100, True, True),
            ArrivalRow(0, 2, 1, 1_200, True, False),
            ArrivalRow(2, 3, 2, 1_300, True, True),
            ArrivalRow(1, 3, 2, 1_400, False, True),
            ArrivalRow(3, 4, 3, 1_500, True, None),
            ArrivalRow(1, 0, 2, 1_600, False, False),
        ],
        missed=[7],
    )
    graph = exported(rows, path)
    alive = {
        step: [
            sorted(n for n, d in graph.nodes(data=True) if d["spells"][0][0] <= step),
            sorted((a, b) for a, b, d in graph.edges(data=True) if d["spells"][0][0] <= step),
        ]
        for step in range(4)
    }
    assert alive == {
        0: [["0", "7"], []],
        1: [["0", "1", "2", "7"], [("0", "1"), ("0", "2")]],
        2: [
            ["0", "1", "2", "3", "7"],
            [("0", "1"), ("0", "2"), ("1", "0"), ("1", "3"), ("2", "3")],
        ],
        3: [
            ["0", "1", "2", "3", "4", "7"],
            [("0", "1"), ("0", "2"), ("1", "0"), ("1", "3"), ("2", "3"), ("3", "4")],
        ],
    }
    everything = [*graph.nodes(data="spells"), *((e[0], e[2]) for e in graph.edges(data="spells"))]
    assert {spells[0][1] for _, spells in everything} == {3.999}
    assert dict(graph.nodes(data="role")) == {
        "0": "publisher",
        "1": "subscriber",
        "2": "relay",
        "3": "subscriber",
        "4": "peer",
        "7": "missed",
    }
    assert dict(graph.nodes(data="hop")) == {"0": 0, "1": 1, "2": 1, "3": 2, "4": 3, "7": None}
    assert graph.nodes["0"]["time_us"] == 1_000
    assert graph.nodes["3"]["receptions"] == 2
    assert graph.nodes["3"]["duplicates"] == 1
    duplicate = graph.edges["1", "3"]
    assert (duplicate["label"], duplicate["first"], duplicate["time_us"]) == ("2", False, 1_400)
    assert graph.edges["2", "3"]["first"] is True
    shown = {
        (edge.attrib["source"], edge.attrib["target"]): int(colour.attrib["r"])
        for edge in ET.parse(path).iterfind(".//{*}edge")
        for colour in edge.iterfind("{*}color")
    }
    assert shown["2", "3"] < shown["1", "3"]  # what was first is darker


def test_copies_between_one_pair_of_peers_are_one_edge(path):
    rows = MessageRows(
        NAMES,
        0,
        None,
        [ArrivalRow(0, 1, 1, 50, False, True), ArrivalRow(0, 1, 4, 20, True, True)],
    )
    graph = exported(rows, path)
    assert graph.edges["0", "1"]["receptions"] == 2
    assert graph.edges["0", "1"]["label"] == "4"
    assert graph.edges["0", "1"]["first"] is True


def test_duplicate_over_fewer_hops_appears_with_its_receiver(path):
    """The first copy came over four hops, a later one over one."""
    rows = MessageRows(
        NAMES,
        0,
        0,
        [
            ArrivalRow(0, 1, 1, 10, True, True),
            ArrivalRow(1, 2, 2, 20, True, True),
            ArrivalRow(2, 3, 3, 30, True, True),
            ArrivalRow(0, 3, 1, 99, False, True),
        ],
    )
    graph = exported(rows, path)
    assert graph.edges["0", "3"]["label"] == "1"
    assert graph.edges["0", "3"]["spells"] == [(3, 3.999)]


def test_receptions_with_unknown_hops_come_last(path):
    rows = MessageRows(
        NAMES,
        publisher=None,
        time_us=None,
        arrivals=[
            ArrivalRow(8, 1, 1, 10, True, True),
            ArrivalRow(1, 2, 2, 20, True, True),
            ArrivalRow(None, 3, None, 30, True, True),
            ArrivalRow(3, 4, None, None, True, True),
        ],
    )
    graph = exported(rows, path)
    starts = {node: data["spells"][0][0] for node, data in graph.nodes(data=True)}
    assert starts == {"8": 0, "1": 1, "2": 2, "3": 2, "4": 2}
    assert graph.edges["3", "4"]["label"] == "?"
    assert "hop" not in graph.nodes["3"]


def test_message_without_receptions_has_publisher_and_missed_peers(path):
    graph = exported(MessageRows(NAMES, 5, 7, [], missed=[1, 2]), path)
    assert dict(graph.nodes(data="role")) == {"5": "publisher", "1": "missed", "2": "missed"}
    assert graph.number_of_edges() == 0


def test_message_graph_of_first_arrivals_counts_no_copies(path):
    arrivals = [ArrivalRow(0, 1, 1, 1_100, True, True)]
    graph = exported(MessageRows(NAMES, 0, 1_000, arrivals), path, counts=False)
    facts = [data for _, data in graph.nodes(data=True)] + [d for *_, d in graph.edges(data=True)]
    assert not {"receptions", "duplicates"} & {name for data in facts for name in data}
    assert graph.nodes["1"]["hop"] == 1
