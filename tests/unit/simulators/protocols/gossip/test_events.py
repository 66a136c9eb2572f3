"""The compiled dissemination against full simulations, and against the paper's Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Publication
from vizpub.simulators.protocols.broadcast.topologies import PoissonGraph, RandomGraph, join_ends
from vizpub.simulators.protocols.gossip.events import (
    COUNTS,
    Adjacency,
    Bools,
    Spreading,
    adjacency,
    disseminate,
)
from vizpub.simulators.protocols.gossip.parameters import GossipParameters
from vizpub.simulators.protocols.gossip.system import Gossip

TOPIC = 0


class Counted:
    """Observes a full simulation: COUNTS of each event."""

    def __init__(self, wants: Bools) -> None:
        self.wants, self.of = wants, dict[int, dict[str, int]]()
        self.got: dict[int, dict[int, int]] = {}

    def on_sent(self, peer: int, copy: Copy, targets: Sequence[int]) -> None:
        message = copy.publication.message
        self._first(peer, copy)
        counts = self.of.setdefault(message, dict.fromkeys(COUNTS, 0))
        counts["sent"] += len(targets)
        counts["passed"] += sum(not self.wants[to] for to in targets)

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        self._first(peer, copy)

    def _first(self, peer: int, copy: Copy) -> None:
        self.got.setdefault(copy.publication.message, {}).setdefault(peer, copy.hops)


def in_full(seed: int, topology: str, ttl: int | None, gamma: float = 0.3) -> None:
    """Simulate 30 events in full and compiled, and compare all counts."""
    peers = 300
    net = Simulation(peers, seed, lambda sender, to: 2_000)
    system = Gossip(net, GossipParameters(topology, gamma, ttl))
    wants = np.random.default_rng(seed).random(peers) < 0.2
    net.observer = seen = Counted(wants)
    for peer in range(peers):
        net.come_up(peer)
        system.join(peer, (TOPIC,) if wants[peer] else ())
    net.run(1_000_000)
    publishers = np.random.default_rng(seed + 1).integers(0, peers, 30)
    for message, publisher in enumerate(publishers.tolist()):
        system.publish(publisher, Publication(message, TOPIC, publisher, 10))
        net.run(net.now + 1_000_000)
    edges = np.array(
        [(peer, other) for peer in range(peers) for other in system.tables.planned[peer]]
    )
    how = Spreading(gamma, system.ttl, seed)
    counts = disseminate(adjacency(edges, peers), wants, how, publishers)
    for message in range(30):
        ours = {name: int(counts[name][message]) for name in COUNTS}
        hops = seen.got[message]
        theirs = seen.of[message] | {
            "receivers": len(hops),
            "subscribers": sum(bool(wants[peer]) for peer in hops),
            "hops": max(hops.values()),
            "offered": ours["offered"],  # what is not sent is not observed
        }
        assert ours == theirs, f"seed {seed}, event {message}"
    assert counts["receivers"].max() > 20


@pytest.mark.parametrize("topology", ["poisson:4", "scale-free:2,lowest=2"])
@pytest.mark.parametrize("ttl", [None, 3])
def test_counts_are_those_of_a_full_simulation(topology: str, ttl: int | None) -> None:
    in_full(11, topology, ttl)


def by_hand(graph: nx.Graph, publisher: int) -> set[int]:
    """Who is reached by flooding."""
    return set(nx.node_connected_component(graph, publisher))


def made(graph: RandomGraph, peers: int, seed: int) -> Adjacency:
    numbers = np.random.default_rng(seed)
    return adjacency(join_ends(graph.degrees(peers, numbers), numbers), peers)


def drawn(network: Adjacency) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(network.peers))
    one = np.repeat(np.arange(network.peers), network.degrees)
    graph.add_edges_from(zip(one.tolist(), network.others.tolist(), strict=True))
    return graph


class TestFlooding:
    def test_gamma_1_reaches_exactly_the_component(self) -> None:
        network = made(PoissonGraph(1.5), 500, 3)
        graph = drawn(network)
        publishers = np.arange(0, 500, 7)
        counts = disseminate(network, np.zeros(500, np.bool_), Spreading(1, 500, 1), publishers)
        components = [by_hand(graph, publisher) for publisher in publishers.tolist()]
        assert counts["receivers"].tolist() == list(map(len, components))
        links = [graph.subgraph(one).number_of_edges() for one in components]
        sent = [2 * m - len(c) + 1 for m, c in zip(links, components, strict=True)]
        assert counts["sent"].tolist() == sent

    def test_ttl_ends_the_event_at_that_distance(self) -> None:
        network = made(PoissonGraph(3), 400, 5)
        graph = drawn(network)
        publishers = np.flatnonzero(network.degrees > 2)[:3]
        counts = disseminate(network, np.zeros(400, np.bool_), Spreading(1, 3, 1), publishers)
        within = [len(nx.ego_graph(graph, publisher, 3)) for publisher in publishers]
        assert counts["receivers"].tolist() == within
        assert counts["hops"].tolist() == [3, 3, 3]

    def test_gamma_0_stays_among_subscribers(self) -> None:
        network = made(PoissonGraph(6), 400, 5)
        wants = np.random.default_rng(1).random(400) < 0.3
        graph = drawn(network)
        publishers = np.flatnonzero(wants)[:20]
        of_them = graph.subgraph(np.flatnonzero(wants).tolist())
        counts = disseminate(network, wants, Spreading(0, 400, 1), publishers)
        expected = [len(by_hand(of_them, one)) for one in publishers.tolist()]
        assert counts["receivers"].tolist() == counts["subscribers"].tolist() == expected
        assert counts["passed"].tolist() == [0] * 20


def test_copies_to_others_are_a_share_of_gamma() -> None:
    network = made(PoissonGraph(5), 20_000, 9)
    wants = np.random.default_rng(2).random(20_000) < 0.1
    publishers = np.random.default_rng(3).integers(0, 20_000, 20)
    counts = disseminate(network, wants, Spreading(0.4, 100, 7), publishers)
    offered, passed = int(counts["offered"].sum()), int(counts["passed"].sum())
    error = (0.4 * 0.6 / offered) ** 0.5
    assert passed / offered == pytest.approx(0.4, abs=4 * error)
    assert offered > 100_000


def test_adjacency_is_that_of_networkx() -> None:
    edges = np.random.default_rng(1).integers(0, 30, (80, 2))
    graph = nx.Graph(edges.tolist())
    graph.add_nodes_from(range(30))
    graph.remove_edges_from(nx.selfloop_edges(graph))
    network = adjacency(edges, 30)
    for peer in range(30):
        others = network.others[network.begins[peer] : network.begins[peer + 1]]
        assert others.tolist() == sorted(nx.all_neighbors(graph, peer))


def test_peers_without_links_keep_their_events() -> None:
    network = adjacency(np.empty((0, 2), np.int64), 3)
    counts = disseminate(network, np.array([True, False, True]), Spreading(1, 5, 1), np.arange(3))
    assert counts["receivers"].tolist() == [1, 1, 1]
    assert counts["subscribers"].tolist() == [1, 0, 1]
    assert counts["sent"].tolist() == [0, 0, 0]
