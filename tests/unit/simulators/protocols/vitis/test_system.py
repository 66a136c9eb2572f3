"""Vitis: its ring, clusters and relays, and what its paper says of them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from tests.support.simulated import Simulated, hit_ratio, relays_per_delivery

CHURN = "exponential:60s,down=20s,crash=0.5"


def simulated(system: str, **chosen: Any) -> Simulated:
    world = {"peers": 60, "intervals": 35, "workload": "zipf:topics=30,subscriptions=5"}
    publications = {"publications": "every:2,first=22,last=32,from=anyone"}
    return Simulated(system, **{**world, **publications, **chosen})


@pytest.fixture(scope="module")
def grown() -> Simulated:
    return simulated("vitis")


def test_tables_are_full_and_hold_the_ring(grown: Simulated) -> None:
    tables = grown.system.tables
    order = sorted(range(60), key=tables.ring.ids.__getitem__)
    table = grown.graph("table")
    assert {degree for _, degree in table.out_degree} == {15}
    for at, peer in enumerate(order):
        assert {str(order[at - 1]), str(order[(at + 1) % 60])} <= {*table[str(peer)]}


def test_friends_are_of_like_interests(grown: Simulated) -> None:
    """Peers of a table share more topics with its owner than other peers do."""
    topics = {report["peer"]: {*report["topics"]} for report in grown.reports[-1]}
    table = grown.graph("table")
    shared = [len(topics[one] & topics[other]) for one, other in table.edges]
    others = [len(topics[one] & topics[other]) for one, other in nx.complement(table).edges]
    assert sum(shared) / len(shared) > 1.5 * sum(others) / len(others)


def test_clusters_have_gateways_whose_paths_end_at_one_rendezvous(grown: Simulated) -> None:
    tables, roles = grown.system.tables, {r["peer"]: r["roles"] for r in grown.reports[-1]}
    for topic in range(30):
        subscribers = (
            grown.graph("table")
            .to_undirected()
            .subgraph([r["peer"] for r in grown.reports[-1] if str(topic) in r["topics"]])
        )
        relays = grown.graph("relay", str(topic)).to_undirected()
        nearest = str(min(range(60), key=lambda peer: tables.distance(peer, tables.keys[topic])))
        for cluster in nx.connected_components(subscribers):
            gateways = [
                peer for peer in cluster if {"role": "gateway", "topic": str(topic)} in roles[peer]
            ]
            assert gateways
            assert all(g == nearest or nx.has_path(relays, g, nearest) for g in gateways)


def test_publications_reach_all_subscribers_by_fewer_relays_than_in_scribe(
    grown: Simulated,
) -> None:
    """'A significantly lower number of relay messages' than where nodes forward whatever they
    subscribe to: the paper's abstract.
    """
    assert hit_ratio(grown) == 1
    assert relays_per_delivery(grown) < 0.6 * relays_per_delivery(simulated("scribe-chord"))


def test_degree_is_bounded_whatever_peers_subscribe_to() -> None:
    run = simulated("vitis", workload="zipf:topics=30,subscriptions=15", table=8)
    assert {degree for _, degree in run.graph("table").out_degree} == {8}
    assert hit_ratio(run) == 1


def test_most_is_delivered_under_churn() -> None:
    assert hit_ratio(simulated("vitis", churn=CHURN)) > 0.9
