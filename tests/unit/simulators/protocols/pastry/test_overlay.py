"""Peers that come, go and die by the protocol, against the ids of those who are up."""

from __future__ import annotations

import random

import pytest

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.pastry.overlay import PastryOverlay
from vizpub.simulators.protocols.pastry.parameters import PastryParameters
from vizpub.simulators.protocols.pastry.placing import place
from vizpub.simulators.protocols.routing import Upcalls

INTERVAL = 1_000_000
"""µs: the period of leaf set probes."""


class World:
    """An overlay in its network; peers come up within half an interval."""

    def __init__(self, size: int, seed: int = 1, latency_us: int = 10_000, loss: float = 0) -> None:
        print(f"seed {seed}")
        self.net = Simulation(size, seed, lambda sender, receiver: latency_us, loss=loss)
        self.overlay = PastryOverlay(self.net, PastryParameters(), 0, Upcalls())
        self.random = random.Random(seed)

    def come_up(self, peers: list[int]) -> None:
        for peer in peers:
            self.net.at(
                self.net.now + self.random.randrange(INTERVAL // 2),
                lambda peer=peer: (self.net.come_up(peer), self.overlay.join(peer)),
            )

    def placed(self) -> World:
        for peer in range(self.net.size):
            self.net.come_up(peer)
        place(self.overlay, self.net.present)
        return self

    def crash(self, peers: list[int]) -> None:
        for peer in peers:
            self.net.go_down(peer)
            self.overlay.go_down(peer)

    def run(self, intervals: int) -> None:
        self.net.run(self.net.now + intervals * INTERVAL)

    def wrong(self) -> int:
        """Peers that are up and whose leaf sets are not those of the ids of all who are up."""
        ids, up = self.overlay.ring.ids, list(self.net.present)
        order, half = sorted(up, key=ids.__getitem__), min(8, len(up) - 1)
        count = 0
        for place_, peer in enumerate(order):
            right = [order[(place_ + step) % len(order)] for step in range(1, half + 1)]
            left = [order[place_ - step] for step in range(1, half + 1)]
            leaves = self.overlay.nodes[peer].leaves
            count += (leaves.right, leaves.left) != (right, left)
        return count

    def mean_hops(self, routes: int = 2_000) -> float:
        """Over random routes, each of which must end at the closest."""
        ids, ring, up = self.overlay.ring.ids, self.overlay.ring, list(self.net.present)
        hops = 0
        for _ in range(routes):
            key = self.random.getrandbits(64)
            path = self.overlay.route(self.random.choice(up), key)
            assert path[-1] == min(up, key=lambda peer: ring.distance(ids[peer], key))
            hops += len(path) - 1
        return hops / routes


@pytest.mark.parametrize(
    ("size", "latency_us", "intervals"),
    [
        (1, 10, 1),
        (2, 10_000, 1),
        (20, 10_000, 1),
        (200, 10_000, 3),
        (100, 100_000, 6),
        pytest.param(1_000, 10_000, 3, marks=pytest.mark.long),
        pytest.param(300, 100_000, 6, marks=pytest.mark.long),
    ],
)
def test_peers_that_join_at_once_get_correct_leaf_sets(
    size: int, latency_us: int, intervals: int
) -> None:
    """All within half an interval. At 10 ms a message, within 3 intervals for 1,000 peers."""
    world = World(size, latency_us=latency_us)
    world.come_up(list(range(size)))
    world.run(intervals)
    assert all(node.is_ready for node in world.overlay.nodes)
    assert world.wrong() == 0


@pytest.mark.parametrize("size", [300, pytest.param(1_000, marks=pytest.mark.long)])
def test_routes_after_joining_are_as_short_as_placed_ones(size: int) -> None:
    """Those of placed peers are held to the published ones in test_placing.py."""
    world, made = World(size), World(size).placed()
    world.come_up(list(range(size)))
    world.run(20)
    joined, placed = world.mean_hops(), made.mean_hops()
    print(f"joined {joined:.3f}, made {placed:.3f} hops")
    if size == 1_000:
        assert joined == pytest.approx(2.52, abs=0.15)
    assert joined == pytest.approx(placed, abs=0.15)


@pytest.mark.parametrize("share", [pytest.param(0.3, marks=pytest.mark.long), 0.5])
def test_leaf_sets_are_mended_after_many_peers_crash(share: float) -> None:
    """Within 10 periods, in which a peer probes its left neighbour once."""
    size = 300
    world = World(size).placed()
    world.crash(world.random.sample(range(size), int(share * size)))
    assert world.wrong() >= size / 2
    world.run(10)
    assert world.wrong() == 0


def test_leaving_peers_are_forgotten_within_four_intervals() -> None:
    world = World(200).placed()
    leavers = world.random.sample(range(200), 40)
    told = {(other, peer) for peer in leavers for other in world.overlay.nodes[peer].known_peers()}
    for peer in leavers:
        world.overlay.leave(peer)
    world.crash(leavers)
    world.run(4)
    assert world.wrong() == 0
    assert not any(world.overlay.nodes[other].knows(peer) for other, peer in told)


def test_returning_peers_are_back_in_correct_leaf_sets() -> None:
    world = World(200).placed()
    dead = world.random.sample(range(200), 60)
    world.crash(dead)
    world.run(2)
    world.come_up(dead[:30])
    world.run(12)
    assert len(world.net.present) == 170
    assert world.wrong() == 0


def test_separate_rings_merge_into_one() -> None:
    """The bootstrap service leads from one into the other, once in `table_period`."""
    world = World(60)
    for peer in range(60):
        world.net.come_up(peer)
    place(world.overlay, range(30, 60))
    others = [world.overlay.nodes[peer] for peer in range(30, 60)]
    place(world.overlay, range(30))
    for peer, node in enumerate(others, 30):
        world.overlay.keeping.nodes[peer] = node
    assert world.wrong() == 60
    world.run(60)
    assert world.wrong() == 0


@pytest.mark.parametrize("size", [100, pytest.param(300, marks=pytest.mark.long)])
def test_lost_messages_leave_at_most_a_hundredth_of_leaf_sets_wrong(size: int) -> None:
    world = World(size, loss=0.05)
    world.come_up(list(range(size)))
    world.run(40)
    assert all(node.is_ready for node in world.overlay.nodes)
    assert world.wrong() <= size / 100
    world.crash(world.random.sample(range(size), size * 3 // 10))
    world.run(40)
    assert world.wrong() <= size / 100


def test_overlay_regrows_from_the_only_peer_left() -> None:
    world = World(30).placed()
    world.crash(list(range(1, 30)))
    world.run(8)
    assert world.overlay.nodes[0].leaves.view.members == ()
    world.come_up([5, 6])
    world.run(20)
    assert world.wrong() == 0


def test_links_are_told_once_in_each_layer() -> None:
    world = World(100)
    world.come_up(list(range(100)))
    world.run(30)
    for peer in range(100):
        links = list(world.overlay.links(peer))
        assert [link.layer for link in links] == ["leafset", "routing", "neighbourhood"]
        for link in links:
            assert link.topic is None
            assert len(link.peers) == len(set(link.peers)) > 0
            assert peer not in link.peers
        assert len(links[0].peers) == 16
        assert len(links[2].peers) <= 32
