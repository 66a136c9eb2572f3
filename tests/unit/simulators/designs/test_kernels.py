"""Compiled algorithms beside the plain ones, and the law by which their subscriptions are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.designs import drawn, equal, example_2, example_3
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.kernels import RULES, centres_of, edges_of
from vizpub.simulators.designs.reach import count_losses
from vizpub.simulators.designs.stars import RULES as PLAIN
from vizpub.simulators.designs.stars import Interests, Stars, refine_stars
from vizpub.simulators.protocols.broadcast.topologies import neighbours_in


def skewed(seed: int) -> Interests:
    """Some topics that most nodes have: these are kept as bits."""
    flat = FlatInterests.draw(300, 300, 5, seed, exponent=1.0)
    return interests_of(flat, 300)


def sparse(seed: int) -> Interests:
    """Few who share two topics, so that counts are kept where a topic goes, but for the largest."""
    flat = FlatInterests.draw(2000, 500, 5, seed, exponent=(None, 0.5, 1.0)[seed % 3])
    return interests_of(flat, 500)


def interests_of(flat: FlatInterests, topics: int) -> Interests:
    return Interests([own.tolist() for own in np.split(flat.topics, flat.begins[1:-1])], topics)


INPUTS = {
    "second example": lambda: example_2(6),
    "third example": example_3,
    **{f"drawn {seed}": lambda seed=seed: drawn(60, 25, 6, seed) for seed in range(8)},
    **{f"equal {seed}": lambda seed=seed: equal(250, 60, 8, seed) for seed in range(4)},
    **{f"skewed {seed}": lambda seed=seed: skewed(seed) for seed in range(4)},
    **{f"sparse {seed}": lambda seed=seed: sparse(seed) for seed in range(3)},
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("rule", RULES)
def test_centres_and_degrees_are_those_of_the_plain_algorithm(rule: str, name: str) -> None:
    interests = INPUTS[name]()
    flat = FlatInterests.of(interests)
    plain = Stars(interests, PLAIN[rule](interests))
    for refined in (False, True):
        if refined:
            refine_stars(plain)
        centres = centres_of(flat, rule, refined=refined)
        found = {topic: node for topic, node in enumerate(centres.tolist()) if node >= 0}
        assert found == plain.centres
        edges = [tuple(sorted(edge)) for edge in edges_of(flat, centres).tolist()]
        assert len(edges) == len(set(edges))
        assert neighbours_in(edges, interests.nodes) == plain.neighbours


def test_large_topics_are_among_the_inputs() -> None:
    """More subscribers than words of 64 nodes: otherwise no topic would be kept as bits."""
    sizes = [len(of_it) for of_it in skewed(0).subscribers]
    assert sum(size > 5 for size in sizes) > 20
    assert sum(1 < size <= 5 for size in sizes) > 20


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_kept_for_some_topics_among_the_inputs(seed: int) -> None:
    """Otherwise nothing above would see that they are."""
    flat = FlatInterests.of(sparse(seed))
    number, left = len(flat.firsts) - 1, np.ones(len(flat.firsts) - 1, dtype=bool)
    heads = np.tile(np.array([-1, 0], dtype=np.int32), (number, 1))
    chains = np.empty((len(flat.topics), 2), np.int32)
    losses = np.empty((len(flat.topics), 2), np.int64)
    kept = []
    for topic in range(number):
        left[topic] = False
        kept.append(count_losses(topic, *flat.arrays, left, heads, chains, losses))
    assert sum(kept) > number / 2
    assert all(kept) == (seed == 0)


def test_arrays_hold_the_subscriptions() -> None:
    interests = drawn(30, 10, 5, seed=2)
    flat = FlatInterests.of(interests)
    assert interests_of(flat, 10).of == interests.of
    by_topic = np.split(flat.subscribers, flat.firsts[1:-1])
    assert [own.tolist() for own in by_topic] == interests.subscribers


def test_topics_are_drawn_by_their_weights() -> None:
    """A single draw has the weights as its law; of two, the second has what the first leaves."""
    weights = np.array([1, 1 / 2, 1 / 3, 1 / 4])
    weights /= weights.sum()
    one = FlatInterests.draw(40_000, 4, 1, 1, exponent=1.0)
    np.testing.assert_allclose(np.diff(one.firsts) / 40_000, weights, atol=0.01)
    both = FlatInterests.draw(40_000, 4, 2, 1, exponent=1.0)
    second = [
        weights[i] + sum(weights[j] * weights[i] / (1 - weights[j]) for j in range(4) if j != i)
        for i in range(4)
    ]
    np.testing.assert_allclose(np.diff(both.firsts) / 40_000, second, atol=0.01)
    assert (np.diff(both.topics.reshape(-1, 2)) > 0).all()
