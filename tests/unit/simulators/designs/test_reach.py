"""What is counted while centres are chosen, beside sets of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.designs import equal
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.reach import as_bits, count_losses, largest_topic, reached_nodes
from vizpub.simulators.designs.stars import Interests


def left_of(interests: Interests, seed: int) -> np.ndarray:
    """Some topics that are left."""
    return np.random.default_rng(seed).random(len(interests.subscribers)) < 0.6


def near(interests: Interests, node: int, left: np.ndarray) -> set[int]:
    """Who shares a topic with the node that is left, itself among them."""
    own = [topic for topic in interests.of[node] if left[topic]]
    return {other for topic in own for other in interests.subscribers[topic]}


@pytest.mark.parametrize("seed", range(5))
def test_reached_nodes_are_those_that_share_a_topic(seed: int) -> None:
    print(f"seed {seed}")
    interests = equal(300, 60, 4, seed)
    flat, left = FlatInterests.of(interests), left_of(interests, seed)
    rows = np.full(60, -1, dtype=np.int64)
    bits = as_bits(flat.firsts, flat.subscribers, rows, 5)
    union = np.empty(5, dtype=np.uint64)
    for node in range(300):
        found = reached_nodes(node, *flat.arrays, left, rows, bits, union)
        assert found == len(near(interests, node, left))
        sizes = [len(interests.subscribers[t]) for t in interests.of[node] if left[t]]
        assert largest_topic(node, *flat.arrays, left) == max(sizes, default=0)


@pytest.mark.parametrize("seed", range(5))
def test_overlap_falls_by_those_who_share_another_topic(seed: int) -> None:
    """It is the topics' subscribers less the nodes that they reach, before and after."""
    print(f"seed {seed}")
    interests = equal(300, 60, 4, seed)
    flat, left = FlatInterests.of(interests), left_of(interests, seed)
    heads = np.tile(np.array([-1, 0], dtype=np.int32), (60, 1))
    chains, losses = np.empty((1200, 2), np.int32), np.empty((1200, 2), np.int64)

    def overlap(node: int) -> int:
        own = [topic for topic in interests.of[node] if left[topic]]
        sizes = sum(len(interests.subscribers[topic]) for topic in own)
        return sizes - len(near(interests, node, left))

    kept = 0
    for topic in np.flatnonzero(left).tolist():
        of_it = interests.subscribers[topic]
        before = np.array([overlap(node) for node in of_it])
        left[topic] = False
        if count_losses(topic, *flat.arrays, left, heads, chains, losses):
            kept += 1
            after = np.array([overlap(node) for node in of_it])
            assert losses[: len(of_it), 0].tolist() == (before - after).tolist()
        assert (heads == [-1, 0]).all()
    assert kept
