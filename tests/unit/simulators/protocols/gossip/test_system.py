"""Gossip as a system: Algorithm 1, subscriptions at the neighbours, and repair."""

from __future__ import annotations

from pathlib import Path
from random import Random

import networkx as nx
import pytest

from tests.support.overlays import LATENCY_US, Overlay
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import RunningSimulation
from vizpub.simulators.protocols.gossip.parameters import GossipParameters
from vizpub.simulators.protocols.gossip.system import Gossip


def gossip(peers: int, topology: str, seed: int = 1, **chosen: object) -> Overlay:
    net = Simulation(peers, seed, lambda sender, to: LATENCY_US)
    overlay = Overlay(net, Gossip(net, GossipParameters(topology, **chosen)))  # type: ignore[arg-type]
    overlay.join_all(1)
    overlay.wait(1)
    return overlay


def tables(overlay: Overlay) -> list[dict[int, set[int]]]:
    assert isinstance(overlay.system, Gossip)
    return overlay.system.tables.known


@pytest.fixture
def star(tmp_path: Path) -> str:
    """Peer 0 is linked to 1, 2, 3 and 4."""
    path = tmp_path / "star.txt"
    path.write_text("0 1\n0 2\n0 3\n0 4\n", "utf-8")
    return f"file:{path}"


class TestSubscriptions:
    def test_neighbours_get_every_event_and_others_none_at_gamma_0(self, star: str) -> None:
        overlay = gossip(5, star, gamma=0.0)
        overlay.system.subscribe(2, 0)
        overlay.system.subscribe(4, 1)
        overlay.wait(1)
        assert overlay.publish(0) == [(2, 0, 1)]
        overlay.system.unsubscribe(2, 0)
        overlay.wait(1)
        assert overlay.publish(0) == []

    def test_change_takes_a_latency_to_reach_the_neighbours(self, star: str) -> None:
        overlay = gossip(5, star, gamma=0.0)
        overlay.system.subscribe(2, 0)
        assert overlay.publish(0) == []

    def test_neighbours_know_exactly_what_peers_subscribe_to(self) -> None:
        """After any changes of interest, while peers come and go."""
        chosen = {"peers": 60, "intervals": 40, "topology": "poisson:4"}
        world = {
            "workload": "bernoulli:0.3,topics=5",
            "interest": "exponential:5s,pause=2s",
            "churn": "exponential:20s,down=5s",
        }
        running = RunningSimulation(make_plan("gossip", chosen | world, 4))
        for interval in range(40):
            [*running.run_interval(interval)]
        assert isinstance(running.system, Gossip)
        assert running.changed > 50
        known, net = running.system.tables.known, running.network
        wrong = [
            (peer, other)
            for peer in net.present
            for other, topics in known[peer].items()
            if net.up[other] and topics != {*running.subscriptions.of(other)}
        ]
        assert len(wrong) <= 2  # what is under way


class TestEvents:
    def test_senders_are_neighbours_and_nothing_goes_back(self) -> None:
        overlay = gossip(200, "poisson:5", gamma=0.7)
        known = tables(overlay)
        senders: dict[int, int] = {3: 3}
        for peer, sender, _ in overlay.publish(3):
            assert sender in known[peer]
            assert senders[sender] != peer, "sent back to the first sender"
            senders.setdefault(peer, sender)
        assert len(senders) > 100

    def test_event_that_was_handled_is_not_sent_again(self) -> None:
        overlay = gossip(100, "poisson:5", gamma=1.0)
        sent: dict[int, int] = {}
        for _, sender, _ in overlay.publish(3):
            sent[sender] = sent.get(sender, 0) + 1
        known = tables(overlay)
        assert all(count <= len(known[sender]) for sender, count in sent.items())

    def test_cut_off_and_ttl_are_described(self) -> None:
        overlay = gossip(200, "scale-free:2.5,highest=20")
        described = overlay.system.header_facts()
        assert described["cut_off"] == 20
        assert described["highest_degree"] <= 20
        assert described["effective_ttl"] == 2 * described["estimated_diameter"]
        assert gossip(200, "poisson:5", ttl=3).system.header_facts()["effective_ttl"] == 3


class TestRepair:
    def test_links_of_lost_peers_are_replaced(self) -> None:
        overlay = gossip(300, "poisson:6", seed=2)
        before = sum(map(len, tables(overlay)))
        for peer in Random(5).sample(range(300), 100):
            overlay.kill(peer)
        overlay.wait(30)
        known = tables(overlay)
        assert all(other in overlay.up for peer in overlay.up for other in known[peer])
        degree = sum(len(known[peer]) for peer in overlay.up) / 200
        assert degree == pytest.approx(before / 300, rel=0.1)

    def test_links_are_symmetric_after_churn(self) -> None:
        overlay = gossip(200, "poisson:5", seed=3)
        random = Random(8)
        for _ in range(100):
            peer = random.randrange(200)
            if overlay.net.up[peer]:
                overlay.kill(peer)
            else:
                overlay.join(peer)
            overlay.wait(0.2)
        overlay.wait(20)
        for peer in overlay.up[::5]:
            overlay.publish(peer)  # who is taken for a neighbour says that it is none
        graph = overlay.graph("overlay")
        assert all(graph.has_edge(other, peer) for peer, other in graph.edges)
        degree = graph.number_of_edges() / len(overlay.up)
        assert degree == pytest.approx(5, rel=0.15)

    def test_peers_that_come_back_are_reached_again(self) -> None:
        overlay = gossip(200, "poisson:6", seed=3, gamma=1.0)
        for peer in range(0, 200, 2):
            overlay.kill(peer)
        overlay.wait(10)
        for peer in range(0, 200, 2):
            overlay.join(peer)
        overlay.wait(20)
        assert overlay.reached(1) > 0.97

    def test_peers_return_to_their_links_without_repair(self) -> None:
        overlay = gossip(100, "poisson:5", repair=None)
        before = nx.to_dict_of_lists(overlay.graph("overlay"))
        for peer in range(40):
            overlay.kill(peer)
        overlay.wait(5)
        for peer in range(40):
            overlay.join(peer)
        overlay.wait(5)
        assert nx.to_dict_of_lists(overlay.graph("overlay")) == before


def test_arrivals_take_their_place_in_the_topology() -> None:
    """Peers that come up for the first time, however late, have the links that were drawn."""
    net = Simulation(50, 1, lambda sender, to: LATENCY_US)
    system = Gossip(net, GossipParameters("poisson:4"))
    overlay = Overlay(net, system)
    overlay.join_all(100_000)
    overlay.wait(2)
    found = overlay.links("overlay")
    assert found == {peer: system.tables.planned[peer] for peer in range(50)}
