"""RINGS: the nearest on both sides, against sorted lists."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from vizpub.model.arrays import Int32s
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.poldercast.cyclon import Cyclon, CyclonParameters
from vizpub.simulators.protocols.poldercast.rings import Rings, RingsParameters
from vizpub.simulators.protocols.poldercast.views import AGE, PEER, bytes_of, insert
from vizpub.simulators.protocols.poldercast.views_overlay import (
    Capacities,
    OverlayState,
    known_entries,
)
from vizpub.simulators.protocols.poldercast.views_rings import (
    answer_rings,
    distance,
    learn,
    offer,
    open_rings,
    rank,
)

SECOND = 1_000_000
PEERS, TOPICS = 30, 130
SEEDS = range(20)
NOBODY: Int32s = np.empty((2, 0), np.int32)


def steps(position: Int32s, begin: int, end: int) -> int:
    return int(position[end] - position[begin]) % len(position)


def ring_of(position: Int32s, owner: int, others: set[int], side: int) -> list[int]:
    """The row of the nearest others on both sides."""
    after = sorted(others - {owner}, key=lambda other: steps(position, owner, other))
    before = after[::-1]
    empty = [-1] * side
    return (after + empty)[:side] + (before + empty)[:side]


def message(peers: list[int], ages: list[int]) -> Int32s:
    return np.array([peers, ages], np.int32).reshape(2, len(peers))


def overlay_of(random: Random) -> OverlayState:
    overlay = OverlayState(PEERS, TOPICS, Capacities(4, 6, 2), random)
    for peer in range(PEERS):
        topics = {0, *random.sample(range(TOPICS), random.randrange(40))}
        overlay.join(peer, sorted(topics))
    return overlay


class TestRing:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_ring_holds_the_nearest_on_both_sides(self, seed: int) -> None:
        random = Random(seed)
        position = np.array(random.sample(range(PEERS), PEERS), np.int32)
        for owner in range(PEERS):
            rings = np.full((1, 2, 6), -1, np.int32)
            offered = set()
            for other in random.choices([p for p in range(PEERS) if p != owner], k=12):
                offered.add(other)
                offer(rings, 0, position, owner, other, 5)
                assert rings[0, PEER].tolist() == ring_of(position, owner, offered, 3)

    def test_entry_heard_of_again_keeps_the_lowest_age(self) -> None:
        rings, position = np.full((1, 2, 4), -1, np.int32), np.arange(9, dtype=np.int32)
        for age in (7, 3, 5):
            offer(rings, 0, position, 0, 4, age)
        assert rings[0].tolist() == [[4, -1, 4, -1], [3, -1, 3, -1]]

    def test_ring_positions_wrap_around(self) -> None:
        position = np.array([2, 0, 1], np.int32)
        assert distance(position, 1, 0) == 2
        assert distance(position, 0, 1) == 1

    @pytest.mark.parametrize("seed", SEEDS)
    def test_topic_rank_equals_its_place_among_the_topics(self, seed: int) -> None:
        overlay = overlay_of(Random(seed))
        for peer in range(PEERS):
            for place, topic in enumerate(overlay.topics[peer]):
                assert rank(overlay.profiles[peer], topic) == place

    @pytest.mark.parametrize("seed", SEEDS)
    def test_learned_peers_enter_the_rings_of_shared_topics(self, seed: int) -> None:
        random = Random(seed)
        overlay = overlay_of(random)
        for peer in range(PEERS):
            heard = random.sample(range(PEERS), 9)
            learn(overlay.packed, peer, message(heard, [1] * 9))
            for topic, row in zip(overlay.topics[peer], overlay.rings_of(peer), strict=True):
                subscribers = {other for other in heard if topic in overlay.topics[other]}
                assert row[PEER].tolist() == ring_of(overlay.position, peer, subscribers, 2)


class TestExchange:
    @pytest.fixture
    def overlay(self) -> OverlayState:
        random = Random(7)
        overlay = overlay_of(random)
        for peer in range(PEERS):
            for views in (overlay.cyclon, overlay.vicinity):
                for other in random.sample(range(PEERS), 4):
                    insert(views, peer, other)
            ages = [random.randrange(1, 9) for _ in range(12)]
            learn(overlay.packed, peer, message(random.sample(range(PEERS), 12), ages))
        return overlay

    @staticmethod
    def expected_for(overlay: OverlayState, peer: int, target: int) -> set[int]:
        everybody = {peer, *known_entries(overlay.packed, peer, NOBODY)[PEER].tolist()}
        found = {peer}
        for topic in {*overlay.topics[peer]} & {*overlay.topics[target]}:
            subscribers = {other for other in everybody if topic in overlay.topics[other]}
            found |= {*ring_of(overlay.position, target, subscribers, 2)} - {-1}
        return found

    def test_exchange_gives_each_side_the_peers_nearest_to_it(self, overlay: OverlayState) -> None:
        for peer in range(PEERS):
            target, sent, size = open_rings(overlay.packed, peer)
            assert sent[:, 0].tolist() == [peer, 0]
            assert {*sent[PEER].tolist()} == self.expected_for(overlay, peer, target)
            assert sent.shape[1] == len({*sent[PEER].tolist()})
            assert size == bytes_of(overlay.entry_bytes, sent)
            expected = self.expected_for(overlay, target, peer)
            answer, _ = answer_rings(overlay.packed, target, sent)
            assert answer[:, 0].tolist() == [target, 0]
            assert {*answer[PEER].tolist()} == expected
        assert (overlay.place == -1).all()

    def test_oldest_neighbour_is_asked_but_not_twice_in_succession(
        self, overlay: OverlayState
    ) -> None:
        first, _, _ = open_rings(overlay.packed, 3)
        ring = overlay.rings_of(3)
        assert ring[:, AGE][ring[:, PEER] == first].max() == ring[:, AGE].max()
        second, _, _ = open_rings(overlay.packed, 3)
        assert second != first
        # It stays where it is until it is known to be gone.
        assert first in overlay.rings_of(3)[:, PEER]

    def test_only_neighbour_is_asked_again(self) -> None:
        overlay = OverlayState(2, 1, Capacities(ring=1), Random(1))
        for peer in (0, 1):
            overlay.join(peer, [0])
        learn(overlay.packed, 0, message([1], [0]))
        assert [open_rings(overlay.packed, 0)[0] for _ in range(2)] == [1, 1]

    def test_unsubscribed_peer_leaves_the_ring_of_that_topic(self, overlay: OverlayState) -> None:
        left = int(overlay.rings_of(3)[0, PEER, 0])
        overlay.unsubscribe(left, 0)
        open_rings(overlay.packed, 3)
        assert left not in overlay.rings_of(3)[0, PEER]


class TestOverCyclon:
    """Without VICINITY, one topic."""

    @pytest.fixture
    def running(self) -> tuple[Simulation, Rings]:
        net = Simulation(100, 1, lambda sender, to: 2_000)
        overlay = OverlayState(100, 1, Capacities(cyclon=8, ring=2), net.random)
        cyclon = Cyclon(net, CyclonParameters(gossip=4), overlay=overlay)
        rings = Rings(net, RingsParameters(), overlay)
        for peer in range(100):
            net.come_up(peer)
            overlay.join(peer, [0])
            cyclon.join(peer)
        net.run(25 * SECOND)
        return net, rings

    def test_ring_becomes_complete(self, running: tuple[Simulation, Rings]) -> None:
        net, rings = running
        found = [next(iter(rings.links(peer))) for peer in range(net.size)]
        rings.complete(range(net.size))
        assert found == [next(iter(rings.links(peer))) for peer in range(net.size)]
        order = sorted(range(net.size), key=rings.overlay.position.__getitem__)
        place = order.index(17)
        near = [order[(place + step) % 100] for step in (1, 2, -1, -2)]
        assert found[17] == ("rings", 0, near)

    def test_ring_becomes_complete_again_after_crashes(
        self, running: tuple[Simulation, Rings]
    ) -> None:
        net, rings = running
        for peer in range(0, 100, 4):
            net.go_down(peer)
        net.run(net.now + 30 * SECOND)
        up = [peer for peer in range(net.size) if net.up[peer]]
        found = [next(iter(rings.links(peer))) for peer in up]
        rings.complete(up)
        assert found == [next(iter(rings.links(peer))) for peer in up]

    def test_few_subscribers_on_both_sides_are_linked_once(self) -> None:
        net = Simulation(3, 1, lambda sender, to: 2_000)
        overlay = OverlayState(3, 2, Capacities(ring=2), net.random)
        rings = Rings(net, RingsParameters(), overlay)
        for peer, topics in enumerate(([0, 1], [0, 1], [0])):
            overlay.join(peer, topics)
        rings.complete(range(3))
        of_two, of_one = rings.links(0)
        assert sorted(of_two.peers) == [1, 2]
        assert (of_one.topic, of_one.peers) == (1, [1])


def test_rings_without_other_layers_begin_with_a_contact() -> None:
    net = Simulation(2, 1, lambda sender, to: 2_000)
    overlay = OverlayState(2, 1, Capacities(ring=1), net.random)
    rings = Rings(net, RingsParameters(), overlay)
    for peer in (0, 1):
        net.come_up(peer)
        overlay.join(peer, [0])
    net.run(3 * SECOND)
    assert [[*links.peers] for peer in (0, 1) for links in rings.links(peer)] == [[1], [0]]
