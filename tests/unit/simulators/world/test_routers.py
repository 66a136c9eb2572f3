"""Topologies of routers, their ways and their load, beside networkx."""

from __future__ import annotations

from collections import Counter
from random import Random

import networkx as nx
import pytest

from tests.support.words import naming
from vizpub.model.errors import UseError
from vizpub.simulators.world.latency import TransitStubLatency
from vizpub.simulators.world.routers import RouterNetwork

PEERS = 40


def network(**chosen: int) -> RouterNetwork:
    return TransitStubLatency(**chosen).routers(PEERS, Random(3))


def graph_of(routers: RouterNetwork) -> nx.Graph:
    """The same links, and those of the peers to their routers."""
    graph = nx.Graph()
    for (one, other), length in routers.lengths.items():
        graph.add_edge(one, other, us=length)
    for peer, router in enumerate(routers.router_of):
        graph.add_edge(router, -1 - peer, us=routers.access_us)
    return graph


def test_topology_is_connected_and_stub_domains_hang_on_a_transit_router() -> None:
    routers = network(domains=3, transit=2, stubs=2, stub=5)
    graph = graph_of(routers)
    assert nx.is_connected(graph)
    assert len(graph) == 3 * 2 * (1 + 2 * 5) + PEERS
    assert min(routers.router_of) >= 6  # no peer is at a transit router
    transit = graph.subgraph(range(6))
    assert nx.is_connected(transit)
    stubs = graph.subgraph(range(6, 66))
    domains = [*nx.connected_components(stubs)]
    assert sorted(map(len, domains)) == [5] * 12
    for domain in domains:
        (uplink,) = nx.edge_boundary(graph, domain, range(6))
        assert graph.edges[uplink]["us"] == 5_000


def test_ways_are_the_fastest_and_as_long_as_their_links() -> None:
    routers = network()
    graph = graph_of(routers)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph, weight="us"))
    for sender in range(PEERS):
        for receiver in range(sender):
            expected = lengths[-1 - sender][-1 - receiver]
            path = routers.path(sender, receiver)
            assert routers.delay(sender, receiver) == expected
            assert sum(graph.edges[link]["us"] for link in path) == expected
            assert nx.has_path(nx.Graph(path), -1 - sender, -1 - receiver)


def test_stress_counts_the_copies_on_each_link() -> None:
    routers = network()
    pairs = [(0, receiver) for receiver in range(1, PEERS)]
    stress = routers.stress(pairs)
    assert stress[-1, routers.router_of[0]] == PEERS - 1
    assert all(stress[-1 - receiver, routers.router_of[receiver]] == 1 for _, receiver in pairs)
    assert stress == sum((routers.stress([pair]) for pair in pairs), Counter())


def test_too_many_routers_are_refused() -> None:
    with pytest.raises(UseError, match=naming("1,010,000", "10,000")):
        network(domains=100, transit=100, stubs=10, stub=10)
