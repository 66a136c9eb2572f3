"""Scribe-like reports written by hand, from files to what Gephi, Cypher and figures show.

Eight peers on a ring, five intervals. The tree of `news` has its root at p0, which does not
subscribe, and goes by way of p2, which does not either; p0 crashes after interval 2 and p1
takes over. The tree of `sport` has its root at p6, which subscribes to `news` too from
interval 2 on. p4 publishes m1, which comes back to it.
"""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import cache, partial
from io import StringIO
from pathlib import Path

import networkx as nx
import pytest

from tests.integration.graph.conftest import Calls, Gephi, Graph, Row
from tests.support.ingested import Store, workspace_of
from vizpub.graphstore.gexf.check import check_gexf
from vizpub.graphstore.gexf.export import (
    OverlayExport,
    export_message,
    export_overlay,
    export_topic,
)
from vizpub.graphstore.gexf.graph_rows import GraphRows
from vizpub.graphstore.gexf.table_rows import TableRows
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import open_run as open_loaded
from vizpub.graphstore.server.address import Connection
from vizpub.questions.run import Run
from vizpub.runstore.store import open_run

pytestmark = [pytest.mark.spark, pytest.mark.neo4j]

RUN = "scribe-by-hand"
GREEN, VERMILION, ORANGE, GREY = (0, 158, 115), (213, 94, 0), (230, 159, 0), (127, 140, 141)
NEWS = {"p1": "p0", "p2": "p0", "p3": "p1", "p4": "p1", "p5": "p2"}
AFTER = {"p2": "p1", "p3": "p1", "p4": "p1", "p5": "p2"}
SPORT = {"p5": "p6", "p7": "p6"}
TOPICS = {"p1": ["news"], "p3": ["news"], "p4": ["news"], "p5": ["news", "sport"],
          "p6": ["sport"], "p7": ["sport"]}  # fmt: skip
WAY = {"p4": ["p0"], "p0": ["p1", "p2"], "p1": ["p3", "p4"], "p2": ["p5"]}
HOPS = {"p0": 1, "p1": 2, "p2": 2, "p3": 3, "p4": 3, "p5": 3}


def report(peer: str, interval: int) -> Row:
    crashed = interval > 2
    trees = (("news", AFTER if crashed else NEWS), ("sport", SPORT))
    number = int(peer[1])
    neighbours: list[Row] = [{"peer": f"p{(number + 1) % 8}", "layer": "pastry"}]
    neighbours += [
        {"peer": tree[peer], "layer": "tree", "topic": topic}
        for topic, tree in trees
        if peer in tree
    ]
    rendezvous = {("p1" if crashed else "p0"): "news", "p6": "sport"}
    topics = [*TOPICS.get(peer, []), *(["news"] if peer == "p6" and interval > 1 else [])]
    return {
        "format": "vizpub.report/1", "peer": peer, "interval": interval, "topics": topics,
        "neighbors": [n for n in neighbours if not (crashed and n["peer"] == "p0")],
        "roles": [{"role": "rendezvous", "topic": rendezvous[peer]}] if peer in rendezvous else [],
        "sent": list(sent(peer)) if interval == 1 else [],
        "received": list(received(peer)) if interval == 1 else [],
    }  # fmt: skip


def sent(peer: str) -> Iterator[Row]:
    if peer in WAY:
        hops = 0 if peer == "p4" else HOPS[peer]
        at = 1_100_000 + 1_000 * hops
        yield {"message": "m1", "topic": "news", "publisher": "p4", "to": WAY[peer],
               "hops": hops, "time_us": at}  # fmt: skip


def received(peer: str) -> Iterator[Row]:
    for source, targets in WAY.items():
        if peer in targets:
            at = 1_100_000 + 1_000 * HOPS[peer]
            yield {"message": "m1", "topic": "news", "publisher": "p4", "from": source,
                   "hops": HOPS[peer], "time_us": at}  # fmt: skip


@pytest.fixture(scope="module")
def vizpub(
    tmp_path_factory: pytest.TempPathFactory, stored: Store, graph: Graph, neo4j_server: Connection
) -> Iterator[Calls]:
    file = tmp_path_factory.mktemp("scribe") / "reports.ndjson"
    header = {"format": "vizpub.run/1", "protocol": "scribe", "interval_us": 1_000_000}
    reports = [
        report(f"p{peer}", interval)
        for interval in range(5)
        for peer in range(8)
        if not (peer == 0 and interval > 2)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in (header, *reports)))
    run = stored(RUN, file)
    assert run.rows("quarantine") == 0
    graph.remove(RUN)
    load_run(graph.driver, graph.database, run.facts, run)
    yield Calls(workspace_of(run), neo4j_server)
    graph.remove(RUN)


@pytest.fixture(scope="module")
def exported(vizpub: Calls, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("exported")

    @cache
    def export(*words: str) -> Path:
        path = folder / f"scribe{'_'.join(words)}.gexf"
        written = vizpub("export", "gexf", RUN, *words, "-o", str(path))
        assert written.exit_code == 0, written.stderr
        assert list(check_gexf(path)) == []
        return path

    return export


def named(path: Path) -> nx.DiGraph:
    graph = nx.read_gexf(path)
    return nx.relabel_nodes(graph, dict(graph.nodes(data="name")))


def colour(node: Row) -> tuple[int, ...]:
    return tuple(int(node["viz"]["color"][part]) for part in "rgb")


Values = list[tuple[float, float, float]]


def at(interval: int, values: Values) -> float:
    (value,) = [v for v, start, end in values if start <= interval + 0.5 <= end]
    return value


def weights(path: Path, graph: nx.DiGraph) -> dict[tuple[str, str], Values]:
    """The weights of the links over time, which networkx leaves out."""
    names = {data["name"]: peer for peer, data in nx.read_gexf(path).nodes(data=True)}
    tree = ET.parse(path)
    space = {"g": "http://gexf.net/1.3"}
    found = {
        (edge.attrib["source"], edge.attrib["target"]): [
            (float(v.attrib["value"]), float(v.attrib["start"]), float(v.attrib["end"]))
            for v in edge.iterfind("g:attvalues/g:attvalue[@for='weight']", space)
        ]
        for edge in tree.iterfind(".//g:edge", space)
    }
    return {(a, b): found[names[a], names[b]] for a, b in graph.edges}


def test_rendezvous_peers_have_their_own_colour_and_size(exported: Callable[..., Path]) -> None:
    graph = named(exported())
    assert dict(graph.nodes(data="role")) == {
        "p0": "rendezvous", "p1": "rendezvous", "p2": "relay", "p3": "peer", "p4": "publisher",
        "p5": "peer", "p6": "rendezvous", "p7": "peer",
    }  # fmt: skip
    assert graph.nodes["p0"]["roles"] == "|relay|rendezvous|"
    colours = {"rendezvous": GREEN, "publisher": VERMILION, "relay": ORANGE, "peer": GREY}
    for _, node in graph.nodes(data=True):
        assert colour(node) == colours[node["role"]]
        assert node["viz"]["size"] == (16 if node["role"] == "rendezvous" else 8)


def test_link_weight_is_one_plus_the_shared_topics(exported: Callable[..., Path]) -> None:
    graph = named(exported())
    weight = weights(exported(), graph)
    subscribed = {
        (peer, interval): {*report(peer, interval)["topics"]}
        for peer in graph
        for interval in range(5)
    }
    periods = 0
    for source, target, link in graph.edges(data=True):
        for interval in range(5):
            if any(start <= interval + 0.5 <= end for start, end in link["spells"]):
                shared = subscribed[source, interval] & subscribed[target, interval]
                assert at(interval, link["shared_topics"]) == len(shared)
                assert at(interval, weight[source, target]) == 1 + len(shared)
                periods += 1
    # A ring of 8 and 7 links of trees, later 6 and 6: p5 → p6 is of the ring and of a tree.
    assert periods == 3 * (8 + 7 - 1) + 2 * (6 + 6 - 1)
    assert [at(i, weight["p5", "p6"]) for i in range(5)] == [2, 2, 3, 3, 3]


def test_topic_export_marks_only_its_own_rendezvous(exported: Callable[..., Path]) -> None:
    """p0 and p2 do not subscribe; p6 does, but is the rendezvous of another topic."""
    roles = dict(named(exported("--topic", "news")).nodes(data="role"))
    assert roles == {
        "p1": "rendezvous", "p3": "peer", "p4": "publisher", "p5": "peer", "p6": "peer",
    }  # fmt: skip


def test_exports_are_valid_by_the_gexf_schema(
    exported: Callable[..., Path], outside_data: Callable[[str], Path]
) -> None:
    etree = pytest.importorskip("lxml.etree")
    schema = etree.RelaxNG(file=str(outside_data("gexf-1.3") / "gexf.rng"))
    for words in ((), ("--topic", "news"), ("--parallel",), ("--message", "m1")):
        document = etree.parse(str(exported(*words)))
        assert schema.validate(document), (words, schema.error_log)


def test_export_of_a_stored_run_equals_that_from_neo4j(vizpub: Calls, graph: Graph) -> None:
    """Of trees whose rendezvous are told, and of messages with duplicates."""
    loaded = GraphRows(open_loaded(graph.driver, graph.database, RUN))
    in_files = TableRows(open_run(vizpub.workspace, RUN))
    exports = [
        partial(export_overlay, options=OverlayExport(parallel=True), values=None),
        partial(export_topic, topic="news", options=OverlayExport(), values=None),
        partial(export_topic, topic="sport", options=OverlayExport(), values=None),
        partial(export_message, message="m1"),
    ]
    for export in exports:
        export(loaded, out=(from_neo4j := StringIO()))
        export(in_files, out=(from_files := StringIO()))
        assert from_files.getvalue() == from_neo4j.getvalue()
        assert "<edge " in from_files.getvalue()


@pytest.mark.gephi
def test_gephi_reads_the_counts_of_the_metrics(
    exported: Callable[..., Path], vizpub: Calls, gephi: Gephi
) -> None:
    issues, counts, columns = gephi(exported(), range(5))
    assert issues == [("INFO", "GEXF version 1.3")]
    overlay = Run.open(vizpub.workspace, RUN).metrics("overlay", ["network_size", "links"])
    sizes = zip(overlay["network_size"].to_pylist(), overlay["links"].to_pylist(), strict=True)
    assert counts == dict(enumerate(sizes))
    assert columns["node column", "roles"] == "String"


def test_topics_query_names_the_rendezvous_at_each_time(vizpub: Calls) -> None:
    def topics(interval: str, *options: str) -> list[tuple[object, ...]]:
        rows = vizpub.json("topic", RUN, "--at", interval, *options)
        return [(r["topic"], r["subscribers"], r["rendezvous"], r["messages"]) for r in rows]

    assert topics("0") == [("news", 4, ["p0"], 0), ("sport", 3, ["p6"], 0)]
    assert topics("0", "--limit", "1") == topics("0")[:1]
    assert topics("4") == [("news", 5, ["p1"], 1), ("sport", 3, ["p6"], 0)]
    history = vizpub.json("query", RUN, "peer-history", "-p", "peer=p1")
    (played,) = [row for row in history if row["what"] == "plays"]
    assert (played["other"], played["topic"], played["valid_from"]) == ("rendezvous", "news", 3)


def test_duplicates_are_counted_by_topic_message_and_peer(vizpub: Calls) -> None:
    topics = vizpub.json("query", RUN, "duplicates-by-topic")
    assert [tuple(row.values()) for row in topics] == [
        ("news", 1, 6, 1, 0.2, None), ("sport", 0, 0, 0, None, None),
    ]  # fmt: skip
    (again,) = vizpub.json("query", RUN, "duplicates-of-message", "m1")
    assert again == {"peer": "p4", "duplicates": 1, "receptions": 1}
    (root,) = vizpub.json("query", RUN, "peer-topics", "-p", "peer=p0")
    assert root == {"topic": "news", "published": 0, "received": 1, "receptions": 1,
                    "duplicates": 0, "sent": 2}  # fmt: skip


def test_message_tree_is_drawn_without_neo4j(vizpub: Calls, tmp_path: Path) -> None:
    nowhere = Calls(vizpub.workspace, Connection("bolt://127.0.0.1:1", "nobody", "nothing"))
    for layout in ("ring", "layers"):
        file = tmp_path / f"{layout}.png"
        drawn = nowhere("plot", RUN, "m1", "--kind", "tree", "--layout", layout, "-o", str(file))
        assert drawn.exit_code == 0, drawn.stderr
        assert file.read_bytes().startswith(b"\x89PNG")
        with file.with_suffix(".csv").open(newline="") as rows:
            way = {(row["previous_hop_name"], row["peer_name"]) for row in csv.DictReader(rows)}
        assert way == {(source, target) for source, of in WAY.items() for target in of}
