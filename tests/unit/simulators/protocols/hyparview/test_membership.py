"""HyParView: its views, and what they look like as graphs."""

from __future__ import annotations

from random import Random
from typing import Any

import networkx as nx
import pytest

from tests.support.overlays import LATENCY_US, Overlay, hyparview
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters
from vizpub.simulators.protocols.hyparview.system import HyParView

CHURN_SEEDS = (1, 2)


def check_views(overlay: Overlay) -> None:
    """What holds at all times, whatever is on its way."""
    active, passive = overlay.links("active"), overlay.links("passive")
    for peer in overlay.up:
        assert len(active[peer]) <= 5
        assert len(passive[peer]) <= 30
        held = [*active[peer], *passive[peer], peer]
        assert len({*held}) == len(held)  # no self-link, nobody twice or in both views


def check_settled(overlay: Overlay) -> None:
    """What holds when nothing is on its way."""
    graph = overlay.graph("active")
    assert {*graph} == {*overlay.up}
    assert nx.reciprocity(graph) == 1
    assert nx.is_weakly_connected(graph)


@pytest.fixture(scope="module")
def grown() -> Overlay:
    return hyparview(400)


class TestShape:
    def test_active_view_is_full_symmetric_and_connected(self, grown: Overlay) -> None:
        check_views(grown)
        check_settled(grown)
        full = [peer for peer, others in grown.links("active").items() if len(others) == 5]
        assert len(full) >= 0.98 * 400

    def test_views_hold_a_random_graph(self, grown: Overlay) -> None:
        """Paths are as long as in a random regular graph; joins make clusters in none."""
        graph = grown.graph("active").to_undirected()
        expected = nx.random_regular_graph(5, 400, seed=1)
        paths = nx.average_shortest_path_length(graph)
        assert paths == pytest.approx(nx.average_shortest_path_length(expected), abs=0.1)
        assert nx.average_clustering(graph) < 0.02

    def test_passive_views_are_full_and_name_all_peers(self, grown: Overlay) -> None:
        passive = grown.links("passive")
        assert {len(others) for others in passive.values()} == {30}
        assert {other for others in passive.values() for other in others} == {*grown.up}

    @pytest.mark.parametrize("contact", ["one", "random"])
    def test_peers_that_join_at_once_make_one_overlay(self, contact: str) -> None:
        overlay = hyparview(200, gap_us=100, cycles=15, contact=contact)
        check_views(overlay)
        check_settled(overlay)

    def test_same_seed_gives_the_same_views(self) -> None:
        one, other, different = (hyparview(60, seed) for seed in (4, 4, 5))
        assert one.links("passive") == other.links("passive")
        assert one.links("active") == other.links("active") != different.links("active")

    @pytest.mark.long
    def test_overlay_of_10000_peers_has_the_published_shape(self) -> None:
        """6.39 of the paper and of a plain program; hops of the last delivery 9."""
        overlay = hyparview(10_000, cycles=50)
        check_settled(overlay)
        active = overlay.links("active")
        assert sum(len(others) == 5 for others in active.values()) > 9_900
        graph = overlay.graph("active").to_undirected()
        starts = Random(1).sample(overlay.up, 100)
        lengths = [nx.single_source_shortest_path_length(graph, start) for start in starts]
        total = sum(sum(length.values()) for length in lengths)
        assert total / len(starts) / 9_999 == pytest.approx(6.39, abs=0.1)
        last = [max(hops for _, _, hops in overlay.publish(start)) for start in starts[:5]]
        assert sum(last) / 5 == pytest.approx(9, abs=1)


@pytest.mark.parametrize("walk", [0, 1, 2, 6])
def test_shuffle_is_answered_after_the_steps_of_its_walk(walk: int) -> None:
    """On a ring of ten a walk goes one way only, and each receiver takes one off its steps."""
    net = Simulation(10, 1, lambda sender, to: LATENCY_US)
    views = HyParView(net, HyParViewParameters(shuffle_walk=walk)).views
    views.active = [[(peer - 1) % 10, (peer + 1) % 10] for peer in range(10)]
    sent: list[tuple[object, int, int, Any]] = []
    net.send = lambda kind, sender, to, payload, size: sent.append((kind, sender, to, payload))  # type: ignore[method-assign]
    views.on_tick(0)
    steps = 0
    while (message := sent.pop())[0] == views.shuffles:
        _, sender, peer, shuffle = message
        views.on_shuffle(peer, sender, shuffle)
        steps += 1
    assert message[0] == views.replies
    assert steps == max(walk, 1)
    assert min(peer, 10 - peer) == min(steps, 10 - steps)


class TestChurn:
    @pytest.mark.parametrize("seed", CHURN_SEEDS)
    @pytest.mark.parametrize("failures", ["at-once", "on-send"])
    def test_views_hold_through_random_churn(self, seed: int, failures: str) -> None:
        print(f"seed {seed}")
        random = Random(seed)
        overlay = hyparview(80, seed, failures=failures)
        down: list[int] = []
        for _ in range(60):
            if down and random.random() < 0.5:
                overlay.join(down.pop(random.randrange(len(down))))
            else:
                peer = random.choice(overlay.up)
                random.choice([overlay.kill, overlay.leave])(peer)
                down.append(peer)
            overlay.wait(random.choice([0.001, 0.015, 0.3]))
            check_views(overlay)
        overlay.wait(30)
        check_views(overlay)
        check_settled(overlay)

    def test_lost_messages_leave_no_link_of_one_end(self) -> None:
        """After losses end. Uniform latencies let messages overtake each other."""
        delays = Random(3)
        net = Simulation(60, 3, lambda sender, to: delays.randrange(1_000, 60_000), loss=0.05)
        overlay = Overlay(net, HyParView(net, HyParViewParameters()))
        overlay.join_all(20_000)
        overlay.wait(20)
        net._loss = 0.0
        overlay.wait(20)
        check_views(overlay)
        check_settled(overlay)

    def test_leaving_peer_is_forgotten_by_its_neighbours(self) -> None:
        overlay = hyparview(60)
        (gone, neighbours), *_ = overlay.links("active").items()
        overlay.leave(gone)
        overlay.wait(3 * LATENCY_US / 1e6)
        for peer in neighbours:
            assert gone not in overlay.links("active")[peer] + overlay.links("passive")[peer]

    def test_lone_peer_finds_others_that_join_later(self) -> None:
        net = Simulation(3, 1, lambda sender, to: LATENCY_US)
        overlay = Overlay(net, HyParView(net, HyParViewParameters()))
        overlay.join(0)
        overlay.wait(3)
        assert overlay.links("active") == {0: []}
        overlay.join(1)
        overlay.kill(0)
        overlay.join(2)
        overlay.wait(3)
        assert overlay.links("active") == {1: [2], 2: [1]}


class TestFailures:
    @pytest.mark.parametrize(
        ("killed", "reached"),
        [pytest.param(0.5, 0.99, marks=pytest.mark.long), (0.8, 0.99), (0.9, 0.97)],
    )
    def test_broadcast_reaches_the_rest_after_repairs(self, killed: float, reached: float) -> None:
        overlay = hyparview(400)
        for peer in Random(2).sample(overlay.up, round(400 * killed)):
            overlay.kill(peer)
        overlay.wait(5)
        assert overlay.reached(overlay.up[0]) >= reached

    def test_failures_noticed_on_send_cost_the_first_broadcasts(self) -> None:
        """A first flood collapses at 80 %, and repairs itself what later ones use."""
        shares = {}
        for failures in ("at-once", "on-send"):
            overlay = hyparview(400, failures=failures)
            for peer in Random(2).sample(overlay.up, 320):
                overlay.kill(peer)
            overlay.wait(0.1)
            shares[failures] = [overlay.reached(overlay.up[k]) for k in range(20)]
        assert shares["on-send"][0] < 0.3
        assert shares["at-once"][0] > 2 * shares["on-send"][0]
        assert min(shares["at-once"][5:] + shares["on-send"][15:]) >= 79 / 80  # all but one

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("killed", "reached"), [(0.3, 0.99), (0.6, 0.99), (0.8, 0.99), (0.9, 0.97), (0.95, 0.8)]
    )
    def test_broadcast_among_10000_peers_survives_failures(
        self, killed: float, reached: float
    ) -> None:
        overlay = hyparview(10_000, cycles=30)
        for peer in Random(2).sample(overlay.up, round(10_000 * killed)):
            overlay.kill(peer)
        overlay.wait(10)
        share = sum(overlay.reached(peer) for peer in overlay.up[:5]) / 5
        print(f"{killed}: {share}")
        assert share >= reached
