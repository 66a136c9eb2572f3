"""Overlays, topics and messages of a run that is known by heart, and of random ones."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.words import naming, unknown
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import OutOfRange, UnknownName, UseError
from vizpub.model.run import NO_DATA
from vizpub.model.tables import table
from vizpub.questions.run import Run
from vizpub.runstore.manifest import TableEntry
from vizpub.runstore.store import StoredRun


@pytest.fixture
def run(workspace: Path) -> Run:
    return Run.open(workspace, "monday")


def replaced(run: Run, folder: Path, clock: Clock, **tables: list[dict[str, Any]]) -> Run:
    """The run with some tables, and a clock, of one's own."""
    entries = dict(run.stored.manifest.tables)
    for name, rows in tables.items():
        place = folder / name
        place.mkdir()
        pq.write_table(pa.Table.from_pylist(rows, table(name).arrow), place / "part-0.parquet")
        entries[name] = TableEntry(str(place), len(rows))
    manifest = replace(run.stored.manifest, tables=entries, clock=clock)
    return Run(StoredRun(run.stored.directory, manifest))


@pytest.fixture(params=[1, 2, 3])
def random_run(run: Run, tmp_path: Path, request: pytest.FixtureRequest) -> Run:
    """20 peers with names of every kind, links in three layers, over 12 intervals of 5 ticks."""
    random = Random(request.param)
    names = [f"<b>peer {i}\n'`\"" for i in range(20)]

    def life() -> dict[str, int]:
        valid_from = random.randrange(60)
        return {
            "valid_from": valid_from,
            "valid_to": random.choice([OPEN, valid_from + random.randrange(1, 40)]),
        }

    ends = [(a, b) for a in range(20) for b in range(20) if a != b and random.random() < 0.2]
    kinds = [("mesh", 0), ("mesh", 1), ("overlay", None)]
    return replaced(
        run, tmp_path, Clock(5, 1_000_000, 0, 11),
        peers=[{"peer": i, "name": name, "is_reporter": True} for i, name in enumerate(names)],
        topics=[{"topic": 0, "name": "news"}, {"topic": 1, "name": "</td>"}],
        presence=[{"peer": peer, **life()} for peer in range(20)],
        links=[{"src": a, "dst": b, "layer": layer, "topic": topic, **life()}
               for a, b in ends for layer, topic in kinds if random.random() < 0.6],
        subscriptions=[{"peer": p, "topic": t, **life()} for p in range(20) for t in range(2)],
    )  # fmt: skip


def by_a_plain_loop(run: Run, tick: int, topic: int | None = None) -> nx.MultiDiGraph[str]:
    """The overlay, or a topic's part of it, from all versions."""
    names = run.peers
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for row in run.table("presence" if topic is None else "subscriptions").to_pylist():
        if row["valid_from"] <= tick < row["valid_to"] and row.get("topic") == topic:
            graph.add_node(names[row["peer"]], peer=row["peer"])
    for row in run.table("links").to_pylist():
        src, dst = names[row["src"]], names[row["dst"]]
        inside = topic is None or (src in graph and dst in graph)
        if row["valid_from"] <= tick < row["valid_to"] and inside:
            of = None if row["topic"] is None else run.topics[row["topic"]]
            graph.add_edge(src, dst, layer=row["layer"], topic=of)
    return graph


def edges(graph: Any) -> list[Any]:
    return sorted((a, b, sorted(map(str, d.items()))) for a, b, d in graph.edges(data=True))


@pytest.mark.parametrize("topic", [None, 0, 1])
def test_overlay_and_topic_graphs_equal_a_plain_loop(random_run: Run, topic: int | None) -> None:
    for interval in range(12):
        truth = by_a_plain_loop(random_run, random_run.clock.sampling_tick(interval), topic)
        if topic is None:
            found = random_run.overlay(interval)
        else:
            found = random_run.topic(random_run.topics[topic], interval)
        # A link may be told of while one end is not there; networkx has the node all the same.
        present = {row["peer_name"]: row["peer"] for row in found.peers.to_pylist()}
        assert present == {n: d["peer"] for n, d in truth.nodes(data=True) if d}
        multi = found.to_networkx(multi=True)
        assert multi.is_multigraph()
        assert edges(multi) == edges(truth)
        simple = found.to_networkx()
        assert not simple.is_multigraph()
        assert set(simple.edges) == set(truth.edges())
        for a, b, data in simple.edges(data=True):
            between = truth.get_edge_data(a, b).values()
            assert data["layers"] == sorted({d["layer"] for d in between})
            assert data["topics"] == sorted({d["topic"] for d in between} - {None})


def test_overlay_time_is_an_interval_duration_first_or_last(run: Run) -> None:
    (last, first), seconds = (run.overlay(at) for at in ("last", "first")), run.overlay("2.5s")
    assert repr(last).startswith("<monday, overlay in interval 3 (4 s): 2 rows of src, src_name, ")
    assert first["dst_name"].to_pylist() == ["bob", "bob", "dave", "bob", "carol"]
    assert first["topic_name"].to_pylist() == ["news", None, None, None, None]
    assert seconds.peers["peer_name"].to_pylist() == ["alice", "bob", "carol"]
    assert run.overlay(2).peers.columns == ["peer", "peer_name", "valid_from", "valid_to"]
    assert len(run.overlay()) == 2


def test_layers_are_chosen_by_name(run: Run) -> None:
    assert run.overlay(0, ["mesh"])["src_name"].to_pylist() == ["alice"]
    assert len(run.overlay(0, ["mesh", "overlay"])) == 5
    assert len(run.overlay(0, [])) == 0
    with pytest.raises(UnknownName, match=unknown("layer", "mush", "mesh")):
        run.overlay(0, ["mush"])


def test_topic_has_its_subscribers_and_their_links(run: Run) -> None:
    news = run.topic("news", "1s")
    assert news.peers["peer_name"].to_pylist() == ["bob", "carol"]
    assert set(news.to_networkx().edges) == {("carol", "bob")}
    assert "topic news in interval 1" in repr(news)
    assert len(run.topic("sport/日本", 0)) == 0


def test_unknown_times_topics_and_messages_are_refused(run: Run) -> None:
    with pytest.raises(OutOfRange):
        run.overlay(4)
    with pytest.raises(UseError, match="'noon'"):
        run.overlay("noon")
    with pytest.raises(UnknownName, match=unknown("topic", "newz", "news")):
        run.topic("newz")
    with pytest.raises(UnknownName, match=unknown("message", "m9")):
        run.tree("m9")


@pytest.mark.parametrize(
    ("unreported", "ask"),
    [
        ("presence", lambda run: run.overlay()),
        ("subscriptions", lambda run: run.topic("news")),
        ("receptions", lambda run: run.tree("m0")),
    ],
)
def test_table_unknown_to_the_source_is_refused(
    run: Run, unreported: str, ask: Callable[[Run], object]
) -> None:
    manifest = run.stored.manifest
    told = {name: entry for name, entry in manifest.tables.items() if name != unreported}
    with pytest.raises(UseError, match=f"{NO_DATA} {unreported}"):
        ask(Run(replace(run.stored, manifest=replace(manifest, tables=told))))


def test_tree_has_every_copy_and_the_missed_peers(run: Run) -> None:
    tree = run.tree("m0")
    way = zip(tree["previous_hop_name"].to_pylist(), tree["peer_name"].to_pylist(), strict=True)
    assert list(way) == [("alice", "bob"), ("alice", "dave"), ("dave", "carol"), ("carol", "bob")]
    assert tree["first"].to_pylist() == [True, True, True, False]
    assert tree.peers["role"].to_pylist() == ["publisher", "subscriber", "subscriber", "relay"]
    assert repr(tree).startswith("<monday, message m0: 4 rows of hop, time_us, ")
    missed = run.tree("m1").peers
    assert missed["role"].to_pylist() == ["publisher", "missed", "missed"]


def test_missing_networkx_error_tells_how_to_install_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "networkx":
            raise ModuleNotFoundError(name=name)
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UseError, match=naming("vizpub[networkx]")):
        run.overlay(0).to_networkx()
