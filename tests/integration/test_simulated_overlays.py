"""Rings, trees and views of ingested runs: graphs of what is stored, not the simulator's state."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import networkx as nx
import pytest
from typer.testing import CliRunner

from tests.support.ingested import Store
from vizpub.cli.main import app
from vizpub.questions.run import Run
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate
from vizpub.simulators.world.latency import TransitStubLatency

PEERS = 40
WORLD = {
    "peers": PEERS,
    "intervals": 30,
    "interval": "2s",
    "workload": "uniform:topics=4,subscriptions=2",
    "publications": "every:1,first=16,last=27",
}

pytestmark = pytest.mark.spark


def simulated(stored: Store, folder: Path, system: str, name: str, **chosen: Any) -> Run:
    """The run of a simulation, ingested."""
    out = Folder(folder / name)
    simulate(make_plan(system, {**WORLD, **chosen}, 5), out)
    return Run(stored(name, *sorted(out.reports.iterdir())))


def totals(run: Run, *columns: str) -> list[int]:
    """Sums over all messages."""
    found = run.metrics("messages", columns).to_arrow()
    return [sum(found[column].to_pylist()) for column in columns]


@pytest.mark.long
def test_reasons_of_a_simulated_run_are_those_of_its_messages(
    stored: Store, tmp_path: Path
) -> None:
    run = simulated(stored, tmp_path, "scribe", "reasons", churn="exponential:20s,down=10s")
    by_message = Counter(
        (row["topic_name"], missed["why"])
        for row in run.messages(["eligible"]).to_pylist()
        for missed in run.missed(row["message_name"]).to_pylist()
    )
    assert len(by_message) > 1
    assert sum(by_message.values()) == run.stored.rows("missed")
    counts = run.missed(by="topic").to_pylist()
    assert {(row["topic"], row["why"]): row["missed"] for row in counts} == by_message


def test_plumtree_in_a_run_is_a_spanning_tree_of_the_active_views(
    stored: Store, tmp_path: Path
) -> None:
    """At rest: n − 1 copies of each late message; eager and lazy links are the active ones."""
    run = simulated(
        stored, tmp_path, "hyparview", "plumtree", broadcast="plumtree", latency="constant:1ms"
    )
    assert run.stored.rows("quarantine") == 0
    for at in (24, 29):
        graphs = {
            layer: nx.DiGraph(run.overlay(at, [layer]).to_networkx())
            for layer in ("active", "eager", "lazy")
        }
        active = graphs["active"]
        assert len(active) == PEERS
        assert nx.reciprocity(active) == 1
        assert max(degree for _, degree in active.out_degree) <= 5
        assert nx.is_weakly_connected(active)
        assert {*graphs["eager"].edges} | {*graphs["lazy"].edges} == {*active.edges}
        assert not {*graphs["eager"].edges} & {*graphs["lazy"].edges}
        assert nx.reciprocity(graphs["eager"]) == 1
        assert nx.is_tree(graphs["eager"].to_undirected())
    last = run.metrics("messages", ["receptions"]).to_arrow()["receptions"].to_pylist()[-10:]
    assert last == [PEERS - 1] * 10


@pytest.mark.long
def test_flood_in_a_run_uses_each_link_but_those_it_came_by(stored: Store, tmp_path: Path) -> None:
    run = simulated(stored, tmp_path, "hyparview", "flood", latency="constant:1ms")
    links = {at: run.overlay(at, ["active"]).to_networkx().size() for at in range(16, 28)}
    for message in run.metrics("messages", ["receptions", "hit_ratio"]).to_pylist():
        assert message["receptions"] == links[message["interval"]] - PEERS + 1
        assert message["hit_ratio"] == 1


@pytest.mark.long
def test_recovered_copies_are_late_deliveries_in_a_run(stored: Store, tmp_path: Path) -> None:
    """Without recovery, nobody gets a message that was published before he came up."""
    late, delivered = {}, {}
    for recovery in ("none", "since:10s"):
        name = f"recovery-{recovery[:4]}"
        changing = {"churn": "exponential:30s,down=6s,crash=0.5", "latency": "constant:1ms"}
        run = simulated(stored, tmp_path, "hyparview", name, recovery=recovery, **changing)
        late[recovery], delivered[recovery] = totals(run, "late_deliveries", "delivered")
    assert late["since:10s"] > 5 * late["none"]
    assert delivered["since:10s"] >= delivered["none"]


@pytest.mark.long
def test_ring_of_a_run_is_that_of_ids_recomputed_from_its_parameters(
    stored: Store, tmp_path: Path
) -> None:
    """And the tree of each topic has its root at the owner, and one way to each member, which a
    message goes once, after its way to the root.
    """
    run = simulated(
        stored, tmp_path, "scribe-chord", "scribe-chord", latency="uniform:5ms,high=80ms"
    )
    made = run.facts.parameters

    def position(name: str) -> int:
        digest = hashlib.new(made["id_hash"], (made["id_salt"] + name).encode()).digest()
        return int.from_bytes(digest[: made["bits"] // 8], "big")

    order = sorted(map(str, range(PEERS)), key=lambda peer: position(f"peer/{peer}"))
    ring = {(peer, order[(at + 1) % PEERS]) for at, peer in enumerate(order)}
    ids = [position(f"peer/{peer}") for peer in order]
    for at in (16, 22, 29):
        graph = run.overlay(at, ["successor"]).to_networkx()
        assert {*graph.edges} == ring
        graph = run.overlay(at, ["predecessor"]).to_networkx()
        assert {*graph.reverse().edges} == ring
    whole, sizes = run.overlay(29, ["tree"]).to_networkx(multi=True), {}
    for topic in map(str, range(4)):
        tree = nx.DiGraph((a, b) for a, b, link in whole.edges(data=True) if link["topic"] == topic)
        sizes[topic] = tree.size()
        assert tree.size() == len(tree) - 1
        assert nx.is_weakly_connected(tree)
        (root,) = [peer for peer, degree in tree.out_degree if degree == 0]
        assert root == order[bisect_left(ids, position(f"topic/{topic}")) % PEERS]
        assert {*run.topic(topic, 29).peers["peer_name"].to_pylist()} <= {*tree}
    gauges = ["route_hops", "tree_duplicates"]
    counted = run.gauges(gauges).to_arrow()
    hops, twice = (sum(filter(None, counted[name].to_pylist())) for name in gauges)
    published = run.with_names(run.table("publications"))["topic_name"].to_pylist()
    assert twice == 0 < hops
    assert totals(run, "receptions") == [hops + sum(sizes[topic] for topic in published)]
    assert {row["hit_ratio"] for row in run.metrics("messages", ["hit_ratio"]).to_pylist()} == {1}


def test_stress_of_links_is_that_of_the_stored_receptions(stored: Store, tmp_path: Path) -> None:
    """Beside a count over networkx's paths, in a tree of routers."""
    latency = "transit-stub:2,transit=1,stubs=2,stub=3,share=0"
    run = simulated(stored, tmp_path, "bayeux", "routed", latency=latency)
    routers = TransitStubLatency(2, 1, 2, 3, 0.0).routers(PEERS, stream(5, "latency"))
    graph = nx.Graph([*routers.lengths])
    graph.add_edges_from((router, f"p{peer}") for peer, router in enumerate(routers.router_of))
    rows = run.sql("SELECT message, previous_hop, peer FROM receptions").to_arrow().to_pylist()
    loads: dict[int, Counter[frozenset[Any]]] = {}
    for row in rows:
        ends = [f"p{run.peers[row[end]]}" for end in ("previous_hop", "peer")]
        path = nx.shortest_path(graph, *ends)
        loads.setdefault(row["message"], Counter()).update(map(frozenset, pairwise(path)))
    line = f"--workspace {run.stored.directory.parents[1]} lab stress routed --format json"
    result = CliRunner().invoke(app, line.split())
    overlay, unicast, multicast = json.loads(result.stdout)
    assert overlay["links"] == pytest.approx(fmean(map(len, loads.values())))
    assert overlay["copies"] == pytest.approx(fmean(load.total() for load in loads.values()))
    assert multicast["copies"] == multicast["links"] == unicast["links"]
    assert overlay["stretch"] >= unicast["stretch"] == 1
