"""Connections of libp2p's peers, and flooding along them."""

from __future__ import annotations

import networkx as nx
import pytest

from tests.support.simulated import Simulated

WORLD = {"peers": 40, "intervals": 8, "workload": "uniform:topics=3,subscriptions=1"}


@pytest.fixture(scope="module")
def flooded() -> Simulated:
    return Simulated("floodsub", **WORLD, publications="every:1,first=4")


def test_connections_are_symmetric_and_peers_find_subscribers_of_their_topics(
    flooded: Simulated,
) -> None:
    graph = flooded.graph("streams")
    assert nx.reciprocity(graph) == 1
    assert min(degree for _, degree in graph.out_degree) >= 6
    for topic in "012":
        subscribers = {r["peer"] for r in flooded.reports[-1] if topic in r["topics"]}
        assert all(
            degree >= min(12, len(subscribers) - 1)
            for _, degree in graph.subgraph(subscribers).out_degree
        )
        assert nx.is_weakly_connected(graph.subgraph(subscribers))


def test_flood_takes_shortest_paths_and_uses_each_link_but_those_it_came_by(
    flooded: Simulated,
) -> None:
    """m directed links among n subscribers: m − (n − 1) copies; no link leads to other peers."""
    copies = [*flooded.received()]
    for message, arrived in flooded.first_copies().items():
        topic, publisher = next((c["topic"], c["publisher"]) for c in arrived.values())
        subscribers = {r["peer"] for r in flooded.reports[-1] if topic in r["topics"]}
        graph = flooded.graph("streams").subgraph(subscribers)
        lengths = nx.single_source_shortest_path_length(graph, publisher)
        assert {peer: copy["hops"] for peer, copy in arrived.items()} == {
            peer: length for peer, length in lengths.items() if length
        }
        number = sum(copy["message"] == message for copy in copies)
        assert number == graph.size() - (len(graph) - 1)


def test_peers_that_crash_or_leave_are_no_longer_connected() -> None:
    events = "leave 10 at interval 4; kill 10 at interval 4; return 5 at interval 6"
    churned = Simulated("floodsub", **WORLD, churn=f"script:{events}")
    for interval, present in ((3, 40), (5, 20), (7, 25)):
        graph = churned.graph("streams", interval=interval)
        assert len(graph) == present
        assert nx.reciprocity(graph) == 1
        assert min(degree for _, degree in graph.out_degree) >= 6


def test_changes_of_interest_reach_all_connected_peers() -> None:
    changed = Simulated("floodsub", **WORLD, interest="exponential:5s,pause=1s", loss=0.1)
    system, changes = changed.system, changed.running.changed
    assert changes > 20
    late = 0
    for own in system.connections:
        for other, topics in own.topics.items():
            late += {*topics} != {*system.connections[other].subscribed}
    assert late <= 0.1 * sum(len(own.topics) for own in system.connections)
