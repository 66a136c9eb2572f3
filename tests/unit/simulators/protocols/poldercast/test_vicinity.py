"""VICINITY: the nearest, against brute force."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from vizpub.model.arrays import Int32s
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import HEADER_BYTES
from vizpub.simulators.protocols.poldercast.cyclon import Cyclon, CyclonParameters
from vizpub.simulators.protocols.poldercast.vicinity import Vicinity, VicinityParameters
from vizpub.simulators.protocols.poldercast.views import (
    PEER,
    bytes_of,
    entries,
    insert,
)
from vizpub.simulators.protocols.poldercast.views_overlay import (
    Capacities,
    OverlayState,
    known_entries,
)
from vizpub.simulators.protocols.poldercast.views_rings import learn
from vizpub.simulators.protocols.poldercast.views_vicinity import (
    answer_nearest,
    fill_with_nearest,
    merge_nearest,
    open_nearest,
)

SECOND = 1_000_000
PEERS, TOPICS = 30, 130
SEEDS = range(20)


def overlay_of(random: Random) -> OverlayState:
    """An overlay where everybody knows some by every layer."""
    overlay = OverlayState(PEERS, TOPICS, Capacities(4, 6, 2), random)
    for peer in range(PEERS):
        overlay.join(peer, sorted(random.sample(range(TOPICS), random.randrange(40))))
    for peer in range(PEERS):
        for views in (overlay.cyclon, overlay.vicinity):
            for other in random.sample(range(PEERS), 3):
                insert(views, peer, other)
        ages = [random.randrange(9) for _ in range(8)]
        heard = np.array([random.sample(range(PEERS), 8), ages], np.int32)
        learn(overlay.packed, peer, heard)
    return overlay


def nearness(overlay: OverlayState, target: int, other: int, age: int) -> tuple[int, int, int]:
    """What the module says of it, in its order."""
    shared = {*overlay.topics[target]} & {*overlay.topics[other]}
    rings = overlay.rings_of(target)[:, PEER].tolist()
    lacks = {t: row.count(-1) for t, row in zip(overlay.topics[target], rings, strict=True)}
    return sum(lacks[topic] for topic in shared), len(shared), -age


def nearest(overlay: OverlayState, target: int, candidates: Int32s, count: int) -> list[int]:
    pairs = [(p, age) for p, age in zip(*candidates.tolist(), strict=True) if p != target]
    ordered = sorted(pairs, key=lambda pair: nearness(overlay, target, *pair), reverse=True)
    return [peer for peer, _ in ordered[:count]]


NOBODY: Int32s = np.empty((2, 0), np.int32)


class TestNearest:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_nearest_candidates_equal_brute_force(self, seed: int) -> None:
        overlay = overlay_of(Random(seed))
        for target in range(PEERS):
            candidates = known_entries(overlay.packed, (target + 1) % PEERS, NOBODY)
            chosen = np.full((2, 7), -1, np.int32)
            end = fill_with_nearest(overlay.packed, target, candidates, chosen, 1)
            assert chosen[PEER, 1:end].tolist() == nearest(overlay, target, candidates, 6)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_merge_keeps_the_nearest_of_all(self, seed: int) -> None:
        random = Random(seed)
        overlay = overlay_of(random)
        for peer in range(PEERS):
            received = np.array([random.sample(range(PEERS), 5), [2] * 5], np.int32)
            candidates = known_entries(overlay.packed, peer, received)
            expected = nearest(overlay, peer, candidates, 6)
            merge_nearest(overlay.packed, peer, received)
            assert entries(overlay.vicinity[peer]) == expected

    def test_topic_without_ring_neighbours_counts_more_than_many_with(self) -> None:
        overlay = OverlayState(4, 10, Capacities(2, 1, 1), Random(1))
        for peer, topics in enumerate(([0, 1, 2, 3], [1, 2, 3], [0], [1, 2, 3])):
            overlay.join(peer, topics)
        learn(overlay.packed, 0, np.array([[3], [0]], np.int32))
        merge_nearest(overlay.packed, 0, np.array([[1, 2], [0, 0]], np.int32))
        assert entries(overlay.vicinity[0]) == [2]


class TestExchange:
    def test_oldest_peer_is_asked_and_leaves_the_view(self) -> None:
        overlay = overlay_of(Random(3))
        overlay.vicinity[5, :, :3] = [[7, 8, 9], [1, 4, 2]]
        target, message, size = open_nearest(overlay.packed, 5, 4)
        assert target == 8
        assert 8 not in entries(overlay.vicinity[5])
        assert message[:, 0].tolist() == [5, 0]
        expected = nearest(overlay, 8, known_entries(overlay.packed, 5, NOBODY), 3)
        assert message[PEER, 1:].tolist() == expected
        topics = sum(len(overlay.topics[peer]) for peer in message[PEER].tolist())
        assert size == HEADER_BYTES + 4 * (16 + 2) + 5 * topics

    def test_answer_holds_what_was_known_before_the_message(self) -> None:
        overlay = overlay_of(Random(4))
        received = np.array([[6, 20, 21, 22], [0, 1, 1, 1]], np.int32)
        expected = nearest(overlay, 6, known_entries(overlay.packed, 2, NOBODY), 3)
        answer, size = answer_nearest(overlay.packed, 2, received, 4)
        assert answer[PEER].tolist() == [2, *expected]
        assert size == bytes_of(overlay.entry_bytes, answer)

    def test_cyclon_peer_is_asked_when_the_view_is_empty(self) -> None:
        overlay = overlay_of(Random(5))
        overlay.vicinity[5] = -1
        assert open_nearest(overlay.packed, 5, 4)[0] in entries(overlay.cyclon[5])
        overlay.cyclon[5] = -1
        assert open_nearest(overlay.packed, 5, 4)[0] == -1


class TestOverCyclon:
    """Without rings, over random links."""

    @pytest.fixture
    def running(self) -> tuple[Simulation, Vicinity]:
        """Five groups of twelve peers with a topic of their own, and one topic that all have."""
        net = Simulation(60, 1, lambda sender, to: 2_000)
        overlay = OverlayState(60, 6, Capacities(cyclon=6, vicinity=8), net.random)
        cyclon = Cyclon(net, CyclonParameters(gossip=3), overlay=overlay)
        vicinity = Vicinity(net, VicinityParameters(gossip=5), overlay)
        for peer in range(60):
            net.come_up(peer)
            overlay.join(peer, [peer % 5, 5])
            cyclon.join(peer)
        net.run(30 * SECOND)
        return net, vicinity

    def test_peers_find_others_that_share_most_topics(
        self, running: tuple[Simulation, Vicinity]
    ) -> None:
        net, vicinity = running
        for peer in range(net.size):
            ((layer, topic, view),) = vicinity.links(peer)
            assert (layer, topic) == ("vicinity", None)
            assert len({*view}) == len(view) >= 7
            assert peer not in view
            assert {other % 5 for other in view} == {peer % 5}

    def test_crashed_peers_are_forgotten(self, running: tuple[Simulation, Vicinity]) -> None:
        """Four views' lengths later, at the latest."""
        net, vicinity = running
        crashed = range(0, 60, 4)
        for peer in crashed:
            net.go_down(peer)
        net.run(net.now + 32 * SECOND)
        views = vicinity.overlay.vicinity[[peer for peer in range(60) if net.up[peer]]]
        assert not {*crashed} & {*views[:, PEER].flatten().tolist()}


def test_vicinity_without_other_layers_begins_with_a_contact() -> None:
    net = Simulation(2, 1, lambda sender, to: 2_000)
    overlay = OverlayState(2, 1, Capacities(vicinity=3), net.random)
    vicinity = Vicinity(net, VicinityParameters(), overlay)
    for peer in (0, 1):
        net.come_up(peer)
        overlay.join(peer, [0])
    net.run(3 * SECOND)
    assert [[*links.peers] for peer in (0, 1) for links in vicinity.links(peer)] == [[1], [0]]
