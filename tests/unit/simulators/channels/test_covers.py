"""Covers of interested clients beside all subsets of channels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.support.channels import layout
from tests.support.words import naming
from vizpub.model.errors import UseError
from vizpub.simulators.channels.covers import RULES, cover, smallest
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.protocols.poldercast.views import seed_state

SEEDS = range(12)


def drawn(seed: int, clients: int = 12, channels: int = 7, listen: int = 2) -> np.ndarray:
    """bool[clients, channels] with `listen` channels of each client."""
    random = np.random.default_rng(seed)
    found = np.zeros((clients, channels), dtype=bool)
    for client in range(clients):
        found[client, random.permutation(channels)[:listen]] = True
    return found


def covered(rule: str, listens: np.ndarray, seed: int, waiting: object = 0) -> list[int]:
    channels_of = np.nonzero(listens)[1].reshape(len(listens), -1).astype(np.int64)
    chosen = np.zeros(listens.shape[1], np.int64)
    idle = np.zeros(listens.shape[1], np.int64) + np.asarray(waiting, np.int64)
    clients, reach = np.arange(len(listens)), listens.sum(axis=0).astype(np.int64)
    draws = seed_state(stream(seed, "covers"))
    count = cover(RULES[rule], clients, channels_of, reach, idle, draws, chosen)
    return chosen[:count].tolist()


def least(listens: np.ndarray) -> int:
    """The size of a smallest cover, by trying all."""
    channels = range(listens.shape[1])
    return next(
        size
        for size in range(len(channels) + 1)
        if any(listens[:, list(some)].any(axis=1).all() for some in combinations(channels, size))
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_smallest_cover_is_that_of_all_subsets(seed: int) -> None:
    listens = drawn(seed)
    found = smallest(listens)
    assert listens[:, found].any(axis=1).all()
    assert len(found) == least(listens)


def test_cover_that_is_too_hard_is_refused() -> None:
    with pytest.raises(UseError, match=naming(100, 400, "offline-c")):
        smallest(drawn(1, 400, 100, 5), seconds=0.1)


def test_smallest_cover_of_no_client_is_empty() -> None:
    assert smallest(np.zeros((0, 4), dtype=bool)) == []


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", SEEDS)
def test_covers_reach_every_client_with_channels_that_help(seed: int, rule: str) -> None:
    listens = drawn(seed)
    found = covered(rule, listens, seed)
    assert len(set(found)) == len(found)
    left = np.ones(len(listens), dtype=bool)
    for channel in found:
        assert (left & listens[:, channel]).any(), "a channel that reached nobody new"
        if rule != "random":
            assert (left & listens[:, channel]).sum() == listens[left].sum(axis=0).max()
        left &= ~listens[:, channel]
    assert not left.any()


@pytest.mark.parametrize("seed", SEEDS)
def test_greedy_cover_is_within_its_bound(seed: int) -> None:
    """At most H(most clients of a channel) times the smallest (Chvátal 1979)."""
    listens = drawn(seed, 24, 9, 3)
    best, greedy = len(smallest(listens)), len(covered("c", listens, seed))
    bound = sum(1 / k for k in range(1, int(listens.sum(axis=0).max()) + 1))
    assert best <= greedy <= bound * best


def test_greedy_covers_are_smaller_than_random_ones_on_average() -> None:
    sizes = {
        rule: np.mean([len(covered(rule, drawn(s, 30, 12, 3), s)) for s in range(100)])
        for rule in ("c", "random")
    }
    assert sizes["c"] <= sizes["random"]


def test_covers_prefer_the_least_loaded_of_tied_channels() -> None:
    listens = np.ones((5, 4), dtype=bool)
    for seed in SEEDS:
        assert covered("cd", listens, seed, waiting=[3, 2, 1, 2]) == [2]
    assert {covered("c", listens, seed, waiting=[3, 2, 1, 2])[0] for seed in range(60)} == set(
        range(4)
    )


@pytest.mark.parametrize("mapping", ["offline-c", "perfect-c"])
def test_clients_on_all_channels_need_one_channel_a_page(mapping: str) -> None:
    given = layout(30, 2, channels=5, listen=5, mapping=mapping)
    assert given.static_mapping is not None
    wanted = given.wants.any(axis=0)
    assert (given.static_mapping.sum(axis=1) == wanted).all()
