"""Gephi's own importer as the judge of our files."""

import csv
import gzip
import json
import re

import pytest

from tests.integration.graph.conftest import random_history
from tests.integration.graph.test_gexf import InTables
from vizpub.graphstore.gexf.export import (
    OverlayExport,
    export_message,
    export_overlay,
    export_topic,
    gexf_output,
)
from vizpub.graphstore.gexf.overlay import OverlayGraph, OverlayRows
from vizpub.graphstore.gexf.rows import LinkRow, PresenceRow
from vizpub.graphstore.gexf.table_rows import TableRows
from vizpub.graphstore.gexf.writer import Edge, Head, Node, write_gexf
from vizpub.model.clock import OPEN, Clock

pytestmark = pytest.mark.gephi

GOOD = [("INFO", "GEXF version 1.3")]


@pytest.fixture(scope="module")
def history():
    return random_history(11, name="gephi")


@pytest.fixture(scope="module")
def run(history):
    """Of its tables: what is written from them equals what is written from Neo4j (test_gexf)."""
    return TableRows(InTables(history))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "export.gexf"


def expected(history, pairs) -> dict[int, tuple[int, int]]:
    """Peers and links of each interval: (src, dst) once, or each link of its own."""
    counts = {}
    for i in range(history.facts.clock.intervals):
        tick = history.facts.clock.sampling_tick(i)
        links = [(link["src"], link["dst"]) for link in history.alive("links", tick)]
        counts[i] = (len(history.alive("presence", tick)), len(set(links) if pairs else links))
    return counts


@pytest.mark.parametrize("parallel", [False, True])
def test_overlay_export_is_read_by_gephi_as_it_was(gephi, run, history, path, parallel):
    values = [(peer, "degree", 0, 8, peer) for peer in range(12)]
    with gexf_output(path) as out:
        export_overlay(
            run, OverlayExport(parallel=parallel, attributes=["degree", "betweenness"]), values, out
        )
    issues, counts, columns = gephi(path, range(9))
    assert issues == GOOD
    assert counts == expected(history, pairs=not parallel)
    assert columns["node column", "degree"] == "IntervalIntegerMap"
    assert columns["node column", "betweenness"] == "IntervalDoubleMap"
    assert columns["node column", "topics"] == "String"
    assert columns["edge column", "weight"] == "IntervalDoubleMap"
    assert columns["edge column", "shared_topics"] == "IntervalIntegerMap"


@pytest.mark.parametrize("column", ["shared_now", "shared"])
def test_edges_are_filtered_in_gephi_by_a_topic_that_both_ends_share(
    gephi, run, history, path, column
):
    with gexf_output(path) as out:
        export_overlay(run, OverlayExport(attributes=[]), None, out)
    _, filtered, columns = gephi(path, [f"{column}=.*\\|1\\|.*", *range(9)])
    assert columns["edge column", column] == {"shared": "String"}.get(column, "IntervalStringMap")
    pairs_now, pairs_ever = {}, set()
    for i in range(9):
        tick = history.facts.clock.sampling_tick(i)
        peers = {s["peer"] for s in history.alive("subscriptions", tick) if s["topic"] == 1}
        pairs = {(link["src"], link["dst"]) for link in history.alive("links", tick)}
        pairs_now[i] = pairs, {pair for pair in pairs if peers.issuperset(pair)}
        pairs_ever |= pairs_now[i][1]
    for i, (pairs, sharing) in pairs_now.items():
        assert filtered[i][1] == len(sharing if column == "shared_now" else pairs & pairs_ever)
    assert any(sharing for _, sharing in pairs_now.values())


def test_topic_export_is_read_by_gephi_as_it_was(gephi, run, history, path):
    with gexf_output(path) as out:
        export_topic(run, "topic 1", OverlayExport(), None, out)
    issues, counts, _ = gephi(path, range(9))
    assert issues == GOOD
    for i, (nodes, edges) in counts.items():
        tick = history.facts.clock.sampling_tick(i)
        peers = {s["peer"] for s in history.alive("subscriptions", tick) if s["topic"] == 1}
        links = {(link["src"], link["dst"]) for link in history.alive("links", tick)}
        assert (nodes, edges) == (len(peers), sum(set(link) <= peers for link in links))


def test_message_export_is_read_by_gephi_as_it_was(gephi, run, history, path):
    message = max(
        history.rows["publications"],
        key=lambda p: sum(r["message"] == p["message"] for r in history.rows["receptions"]),
    )
    with gexf_output(path) as out:
        written = export_message(run, message["name"], out)
    issues, counts, columns = gephi(path, range(6))
    assert issues == GOOD
    assert max(counts.values()) == (written.nodes, written.edges)
    assert [counts[i] for i in range(5)] == sorted(counts[i] for i in range(5))
    assert columns["edge column", "time_us"] == "Long"


def test_recorded_history_has_the_counts_gephi_recorded(gephi, gephi_small, path):
    """Peers and links of each of 50 intervals as Gephi counted them in files of one interval."""
    with gzip.open(gephi_small / "versions.csv.gz", "rt") as file:
        rows = sorted(tuple(map(int, row.values())) for row in csv.DictReader(file))
    with gzip.open(gephi_small / "gephi_metrics.json.gz") as file:
        recorded = json.load(file)["intervals"]
    peers = range(recorded[0]["nodes"])
    graph = OverlayGraph(
        OverlayRows(
            [(peer, f"peer {peer}") for peer in peers],
            [PresenceRow(peer, 0, OPEN) for peer in peers],
            [],
            [
                LinkRow(src, dst, "overlay", None, valid_from, valid_to)
                for src, dst, valid_from, valid_to in rows
            ],
        ),
        Clock(last=len(recorded) - 1),
    )
    with gexf_output(path) as out:
        head = Head("recorded", graph.node_attributes([]), graph.edge_attributes())
        write_gexf(out, head, graph.nodes(), graph.edges())
    issues, counts, _ = gephi(path, range(len(recorded)))
    assert issues == GOOD
    assert counts == {i["t"]: (i["nodes"], i["edges"]) for i in recorded}


def test_hostile_names_are_read_by_gephi(gephi, path):
    names = ["", " ", "\"><&'", "\x00\x1b\r\n\t\x7f\x85", "\ufffe\ud800\U0010ffff", "|3|", "نود"]
    nodes = [Node(i, name, [(0, 0)], (0, 0), "#000000") for i, name in enumerate(names)]
    edges = [Edge(0, i, [(0, 0)], kind=name) for i, name in enumerate(names)]
    with gexf_output(path) as out:
        write_gexf(out, Head("".join(names)), nodes, edges)
    issues, counts, _ = gephi(path, [0])
    assert issues == GOOD
    assert counts == {0: (len(names), len(names))}


SPELLS = '<spells><spell start="0" end="4.999"/><spell start="6" end="8.999"/></spells>'


def two_nodes(spells: str) -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" version="1.3">
<graph mode="dynamic" timeformat="double" timerepresentation="interval" defaultedgetype="directed">
<nodes><node id="a" label="a">{spells}</node><node id="b" label="b">{SPELLS}</node></nodes>
<edges><edge source="a" target="b">{SPELLS}</edge></edges></graph></gexf>
"""


@pytest.mark.parametrize(
    ("spells", "issue"),
    [
        ('<spells><spell start="0" end="5"/><spell start="4" end="6"/></spells>', "SEVERE.*verlap"),
        ('<spells><spell start="0" endopen="5"/></spells>', "WARNING"),
        ('<spells><spell timestamp="3"/></spells>', "SEVERE"),
    ],
)
def test_gephi_reports_what_is_wrong_with_spells(gephi, path, spells, issue):
    path.write_text(two_nodes(spells), "utf-8")
    issues, _, _ = gephi(path)
    assert any(re.search(issue, " ".join(found)) for found in issues)


def test_gephi_reports_no_issue_with_the_control_file(gephi, path):
    path.write_text(two_nodes(SPELLS), "utf-8")
    issues, counts, _ = gephi(path, [0, 5, 6])
    assert issues == GOOD
    assert counts == {0: (2, 1), 5: (0, 0), 6: (2, 1)}
