"""Where a peer sends a message, against the rules in their words."""

from __future__ import annotations

import random

import pytest

from vizpub.simulators.protocols.pastry.leaves import PastryRing
from vizpub.simulators.protocols.pastry.node import NOBODY, PastryNode

RING = PastryRing.of(400, 4, salt=11)
KEYS = [random.Random(5).getrandbits(64) for _ in range(300)]


def node_of(peer: int = 0, known: int = 400, near: int = 4) -> PastryNode:
    node = PastryNode(RING, peer, 16, near)
    for other in random.Random(1).sample(range(400), known):
        if other != peer:
            node.add(other)
    return node


@pytest.mark.parametrize("known", [400, 60, 10, 0])
def test_next_hop_comes_closer_to_the_key(known: int) -> None:
    """Closer is: a longer common prefix, or as long a one and a smaller distance; or the
    closest of the leaf set, where the journey ends.
    """
    node = node_of(known=known)
    for key in KEYS:
        to = node.next_hop(key)
        ids, own = RING.ids, RING.ids[0]
        if to != 0 and to not in node.leaves:
            shared = RING.shared_digits(ids[to], key)
            assert shared >= RING.shared_digits(own, key)
            assert shared > RING.shared_digits(own, key) or (
                RING.distance(ids[to], key) < RING.distance(own, key)
            )
        elif to in node.leaves:
            assert RING.distance(ids[to], key) < RING.distance(own, key) or (
                RING.shared_digits(ids[to], key) > RING.shared_digits(own, key)
            )


def test_node_with_all_leaves_routes_to_the_closest_peer() -> None:
    node = node_of(known=12)
    everybody = [0, *node.leaves.view.members]
    for key in KEYS:
        nearest = min(everybody, key=lambda peer: RING.distance(RING.ids[peer], key))
        assert node.next_hop(key) == nearest


def test_doubted_peers_are_bypassed_except_as_last_hop() -> None:
    node = node_of()
    for key in KEYS:
        to = node.next_hop(key)
        node.doubted = {to}
        if to == 0 or to in node.leaves:
            assert node.next_hop(key) == to
        else:
            other = node.next_hop(key)
            assert other not in (to, 0)
            node.doubted = {to, other}
            assert node.next_hop(key) not in (to, other, 0)
        node.doubted = set()


def test_joiner_is_not_routed_to_itself() -> None:
    node = node_of()
    for joiner in range(1, 400):
        to = node.next_hop(RING.ids[joiner], avoid=joiner)
        assert to not in (joiner, NOBODY)


def test_table_entry_shares_row_digits_and_has_the_next() -> None:
    node = node_of()
    own = f"{RING.ids[0]:016x}"
    assert len(node.table) > 20
    for slot, peer in node.table.items():
        shared, digit = slot >> 4, slot & 15
        other = f"{RING.ids[peer]:016x}"
        assert other[:shared] == own[:shared]
        assert int(other[shared], 16) == digit != int(own[shared], 16)


def test_neighbourhood_keeps_the_nearest_and_the_table_prefers_them() -> None:
    node = node_of(near=4)
    for peer in range(1, 30):
        node.measure(peer, 1000 - peer)
    assert set(node.near) == {26, 27, 28, 29}
    slot = node.slot(RING.ids[29])
    assert node.table[slot] == 29


def test_equally_near_peers_do_not_replace_entries() -> None:
    node = node_of(near=4)
    for peer in range(1, 9):
        node.measure(peer, 500)
    table = dict(node.table)
    for peer in range(1, 400):
        node.measure(peer, 500)
    assert node.table == table
    assert list(node.near) == [1, 2, 3, 4]


def test_removed_peer_is_no_longer_known() -> None:
    node = node_of(near=400)
    for peer in range(1, 400):
        node.measure(peer, 5)
    for peer in node.known_peers():
        node.remove(peer)
        assert not node.knows(peer)
    assert node.known_peers() == []
    assert node.next_hop(KEYS[0]) == 0
