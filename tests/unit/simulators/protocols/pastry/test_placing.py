"""The state that is made from knowledge of everybody."""

from __future__ import annotations

import random

import pytest

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.pastry.overlay import PastryOverlay
from vizpub.simulators.protocols.pastry.parameters import PastryParameters
from vizpub.simulators.protocols.pastry.placing import place
from vizpub.simulators.protocols.routing import Upcalls


def overlay_of(size: int, seed: int = 1, **parameters: int) -> PastryOverlay:
    net = Simulation(size, seed, lambda sender, receiver: 10_000)
    return PastryOverlay(net, PastryParameters(**parameters), 0, Upcalls())


def closest(overlay: PastryOverlay, peers: list[int], key: int) -> int:
    ids = overlay.ring.ids
    return min(peers, key=lambda peer: overlay.ring.distance(ids[peer], key))


@pytest.mark.parametrize("b", [1, 3, 4, 5])
def test_placed_tables_have_an_entry_for_every_possible_slot(b: int) -> None:
    overlay = overlay_of(300, b=b)
    peers = random.Random(2).sample(range(300), 200)
    place(overlay, peers)
    for peer in peers[:20]:
        node = overlay.nodes[peer]
        wanted = {node.slot(overlay.ring.ids[other]) for other in peers if other != peer}
        assert node.table.keys() == wanted
        assert all(node.slot(overlay.ring.ids[other]) == s for s, other in node.table.items())
        assert set(node.table.values()) <= set(peers)


@pytest.mark.parametrize("size", [1, 2, 9, 17, 40])
def test_placed_leaf_sets_are_exact(size: int) -> None:
    overlay = overlay_of(size)
    place(overlay, range(size))
    ids = overlay.ring.ids
    for peer in range(size):
        others = [other for other in range(size) if other != peer]
        right = sorted(others, key=lambda other: (ids[other] - ids[peer]) % 2**64)
        assert overlay.nodes[peer].leaves.right == right[:8]
        assert overlay.nodes[peer].leaves.left == right[::-1][:8]


@pytest.mark.parametrize("size", [5, 30, 300])
def test_routes_end_at_the_closest_peer(size: int) -> None:
    overlay = overlay_of(size)
    place(overlay, range(size))
    drawn = random.Random(3)
    for _ in range(500):
        key = drawn.getrandbits(64)
        path = overlay.route(drawn.randrange(size), key)
        assert path[-1] == closest(overlay, list(range(size)), key)
        assert len(set(path)) == len(path)


@pytest.mark.parametrize(
    ("size", "hops"),
    [
        (1_000, 2.52),
        pytest.param(10_000, 3.26, marks=pytest.mark.long),
        pytest.param(100_000, 4.02, marks=pytest.mark.long),
    ],
)
def test_mean_hops_equal_those_of_the_paper(size: int, hops: float) -> None:
    """b = 4, l = 16; Rowstron and Druschel 2001, figure 4, and recomputed independently."""
    overlay = overlay_of(size)
    place(overlay, range(size))
    drawn = random.Random(4)
    routes = [overlay.route(drawn.randrange(size), drawn.getrandbits(64)) for _ in range(5_000)]
    mean = sum(len(path) - 1 for path in routes) / len(routes)
    print(f"{size} peers: {mean:.3f} hops")
    assert mean == pytest.approx(hops, abs=0.15)
