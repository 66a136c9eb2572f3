"""Leaf sets and views against what everybody's ids say."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from vizpub.simulators.protocols.pastry.leaves import LeafSet, PastryRing

Ids = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40, unique=True)


def ring_of(ids: list[int]) -> PastryRing:
    return PastryRing(4, ids, salt=0)


def sides(ids: list[int], peer: int, half: int) -> tuple[list[int], list[int]]:
    """The nearest peers to the right and to the left, by sorting all."""
    others = [other for other in range(len(ids)) if other != peer]
    right = sorted(others, key=lambda other: (ids[other] - ids[peer]) % 2**64)
    return right[:half], right[::-1][:half]


def filled(ring: PastryRing, peer: int, half: int, others: list[int]) -> LeafSet:
    leaves = LeafSet(ring, peer, half)
    for other in others:
        leaves.add(other)
    return leaves


class TestRing:
    def test_ids_follow_the_salt_and_are_unique(self) -> None:
        first, again, other = (PastryRing.of(100, 4, salt) for salt in (7, 7, 8))
        assert first.ids == again.ids
        assert len({*first.ids, *other.ids}) == 200

    def test_ids_have_whole_digits(self) -> None:
        ring = PastryRing.of(1000, 5, 1)
        assert ring.bits == 60
        assert max(ring.ids) < 2**60
        assert max(ring.ids) > 0.9 * 2**60

    @given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
    def test_shared_digits_equal_those_of_the_hexadecimal_ids(self, a: int, b: int) -> None:
        left, right = f"{a:016x}", f"{b:016x}"
        common = next((i for i in range(16) if left[i] != right[i]), 16)
        assert ring_of([a, b]).shared_digits(a, b) == common

    def test_distance_is_the_shorter_way_round(self) -> None:
        ring = ring_of([0])
        assert ring.distance(2**64 - 1, 2) == ring.distance(2, 2**64 - 1) == 3


class TestLeafSet:
    @given(Ids, st.integers(1, 8), st.randoms())
    def test_nearest_peers_on_either_side_stay(
        self, ids: list[int], half: int, random: Random
    ) -> None:
        others = list(range(1, len(ids))) * 2
        random.shuffle(others)
        leaves = filled(ring_of(ids), 0, half, others)
        assert (leaves.right, leaves.left) == sides(ids, 0, half)
        for other in range(1, len(ids)):
            assert (other in leaves) == (other in leaves.right + leaves.left)

    @given(Ids, st.integers(1, 8), st.integers(0, 2**64 - 1))
    def test_closest_leaf_within_reach_is_the_closest_peer(
        self, ids: list[int], half: int, key: int
    ) -> None:
        ring = ring_of(ids)
        leaves = filled(ring, 0, half, list(range(1, len(ids))))
        offset = (key - ids[0]) % ring.size
        if offset <= leaves.right_reach or ring.size - offset <= leaves.left_reach:
            nearest = min(ring.distance(key, other) for other in ids)
            assert ring.distance(key, ids[leaves.closest(offset)]) == nearest

    @given(Ids, st.integers(1, 4), st.data())
    def test_removed_peer_makes_room_for_the_next(
        self, ids: list[int], half: int, data: st.DataObject
    ) -> None:
        leaves = filled(ring_of(ids), 0, half, list(range(1, len(ids))))
        gone = data.draw(st.sampled_from(range(len(ids))))
        was_in = gone in leaves
        right = [peer for peer in leaves.right if peer != gone]
        farthest = leaves.remove(gone)
        assert leaves.right == right
        assert gone not in leaves
        assert (leaves.fits(gone) or gone == 0) or not was_in
        assert set(farthest) <= {*leaves.right[-1:], *leaves.left[-1:]}
        for other in range(1, len(ids)):
            if other != gone:
                leaves.add(other)
        ids_left = [one for peer, one in enumerate(ids) if peer != gone or peer == 0]
        assert [ids[peer] for peer in leaves.right] == [
            ids_left[peer] for peer in sides(ids_left, 0, half)[0]
        ]

    def test_view_is_one_object_until_the_leaves_change(self) -> None:
        ring = PastryRing.of(50, 4, 3)
        leaves = filled(ring, 0, 4, list(range(1, 49)))
        before = leaves.view
        far = next(peer for peer in range(1, 49) if peer not in leaves)
        leaves.add(far)
        assert leaves.view is before
        leaves.remove(before.right[0])
        assert leaves.view is not before

    @given(Ids, st.integers(1, 4), st.randoms())
    def test_missing_peers_are_those_that_the_other_would_add(
        self, ids: list[int], half: int, random
    ) -> None:
        if len(ids) < 2:
            return
        ring = ring_of(ids)
        mine = filled(ring, 0, half, list(range(1, len(ids))))
        known = random.sample(range(len(ids)), random.randrange(len(ids)))
        theirs = filled(ring, 1, half, [peer for peer in known if peer != 1])
        missing = mine.missing_in(theirs.view, whose=1)
        for peer in mine.view.members:
            again = filled(ring, 1, half, [other for other in known if other != 1])
            assert (peer in missing) == (peer != 1 and again.add(peer))
