"""Who is subscribed and who is silent, against lists that are looked through."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from vizpub.analytics.interest import Interest, Silence

LARGEST = 2**31 - 1
Spans = list[tuple[int, int, int, int]]


def interest(spans: Spans) -> Interest:
    return Interest(*np.array(spans, np.int64).reshape(-1, 4).T)


def random_spans(rng: np.random.Generator) -> Spans:
    """topic, peer, valid_from, valid_to: of a topic and peer disjoint, some of them touch."""
    spans = []
    for topic in (0, 1, 3, LARGEST):
        for peer in (0, 2, 3, 7, LARGEST):
            cuts = sorted({int(x) for x in rng.integers(0, 30, 6)})
            ends = list(pairwise(cuts))
            spans += [(topic, peer, *ends[i]) for i in rng.permutation(len(ends))[:3]]
    return [spans[i] for i in rng.permutation(len(spans))]


@pytest.mark.parametrize("seed", range(3))
def test_interest_equals_lists_that_are_looked_through(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spans = random_spans(rng)
    asked = [
        (topic, peer, tick)
        for topic in (-1, 0, 1, 2, 3, LARGEST)
        for peer in (-1, 0, 1, 2, 3, 7, LARGEST)
        for tick in range(-1, 32)
    ]
    alive = {
        (t, p, at) for t, p, valid_from, valid_to in spans for at in range(valid_from, valid_to)
    }
    topic, peer, tick = np.array(asked).T
    found = interest(spans)
    assert found.is_subscribed(topic, peer, tick).tolist() == [one in alive for one in asked]
    turns = {(t, p, at) for t, p, *span in spans for at in span}
    assert found.is_changing(topic, peer, tick).tolist() == [one in turns for one in asked]
    counts = [sum((t, p) == (one[0], one[2]) for t, _, p in alive) for one in asked]
    assert found.count_subscribers(topic, tick).tolist() == counts
    assert len(set(counts)) > 3


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_subscribers_of_topics_equal_lists_that_are_looked_through(at_once: int) -> None:
    """At ticks at which subscriptions begin and end, and all between."""
    spans = random_spans(np.random.default_rng(4))
    asked = [(topic, tick) for tick in range(-1, 32) for topic in (3, -1, 0, 2, LARGEST)]
    topic, tick = np.array(asked, np.int64).T
    parts = list(interest(spans).subscribers(topic, tick, at_once))
    found = [pair for at, peer in parts for pair in zip(at.tolist(), peer.tolist(), strict=True)]
    expected = [
        (at, peer)
        for at, (wanted, when) in enumerate(asked)
        for of, peer, valid_from, valid_to in sorted(spans)
        if of == wanted and valid_from <= when < valid_to
    ]
    assert found == expected
    assert {peer for _, peer in expected} == {0, 2, 3, 7, LARGEST}


def test_interest_without_subscriptions_is_none() -> None:
    nobody, some = interest([]), np.array([-1, 0, 5])
    assert nobody.is_subscribed(some, some, some).tolist() == [False] * 3
    assert nobody.is_changing(some, some, some).tolist() == [False] * 3
    assert nobody.count_subscribers(some, some).tolist() == [0] * 3


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_silent_peers_of_intervals_equal_lists_that_are_looked_through(at_once: int) -> None:
    rng = np.random.default_rng(5)
    silent = [(int(i), int(p)) for i, p in rng.integers(0, 8, (30, 2))]
    silent += [(3, LARGEST), (LARGEST, LARGEST)]
    silence = Silence(*np.array(silent).T)
    asked = np.array([5, 0, 3, 9, 3, LARGEST, 1, 2, 2, 4, 6, 7])
    parts = list(silence.silent_peers(asked, at_once))
    found = [pair for at, peer in parts for pair in zip(at.tolist(), peer.tolist(), strict=True)]
    assert found == [(at, p) for at, i in enumerate(asked) for j, p in sorted({*silent}) if i == j]
    most = max(np.bincount(np.array(sorted({*silent}))[:-1, 0]))
    assert max(at.size for at, _ in parts) < at_once + most
    peers = np.array([0, 3, 7, LARGEST])
    for interval in asked.tolist():
        here = silence.is_silent(np.full(4, interval), peers).tolist()
        assert here == [(interval, peer) in silent for peer in peers.tolist()]


def test_silence_of_nobody_is_none() -> None:
    silence, some = Silence(*np.empty((2, 0), np.int64)), np.array([0, 4])
    assert [(at.tolist(), peer.tolist()) for at, peer in silence.silent_peers(some, 9)] == [
        ([], [])
    ]
    assert silence.is_silent(some, some).tolist() == [False, False]
