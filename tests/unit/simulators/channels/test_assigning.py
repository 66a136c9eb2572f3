"""Channels of clients by each rule."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

from tests.support.channels import layout
from vizpub.simulators.channels.assigning import ListenerTable, assign_channels
from vizpub.simulators.channels.parameters import Assignment

RULES: tuple[Assignment, ...] = get_args(Assignment)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("clients", "listen"), [(1, 1), (40, 3), (40, 8), (3, 2)])
def test_clients_get_as_many_different_channels_as_they_may(
    rule: str, clients: int, listen: int
) -> None:
    given = layout(clients, 4, assignment=rule, listen=listen)
    assert given.listens.shape == (clients, 8)
    assert (given.listens.sum(axis=1) == listen).all()
    assert [sorted(set(own)) for own in given.channels_of.tolist()] == given.channels_of.tolist()


def test_channels_dealt_in_turn_have_the_same_number_of_clients() -> None:
    given = layout(37, 4, assignment="rr", listen=3)
    counts = given.listens.sum(axis=0)
    assert counts.max() - counts.min() <= 1


def test_random_channels_are_all_as_likely() -> None:
    given = layout(4000, 4, assignment="random", listen=2)
    counts = given.listens.sum(axis=0)
    assert abs(counts - 1000).max() < 5 * np.sqrt(4000 * 0.25 * 0.75)


def test_channels_by_pages_follow_their_products() -> None:
    """Pages 0 to 3 have PC .4, .6, .2, .1: 1, 0, 2, 3 in turn go to the least summed P."""
    wants = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=bool)
    probability = np.array([0.4, 0.3, 0.2, 0.1])
    found = assign_channels("pc", wants, probability, (2, 1), np.random.default_rng(0))
    # Page 1 to channel 0; page 0 to channel 1, but client 0 has no room; page 2 to 0 (.3 < .4);
    # page 3 to 1 (.4 < .5).
    assert found.argmax(axis=1).tolist() == [0, 0, 0, 1]


def test_channels_by_pages_even_the_load_better_than_random_ones() -> None:
    spread, profile = {}, "clustered:clusters=1,size=5"
    for rule in ("pc", "random"):
        of_seeds = []
        for seed in range(1, 9):
            given = layout(100, seed, assignment=rule, pages="zipf:1", profile=profile, listen=5)
            assert given.static_mapping is not None
            total = given.probability @ given.static_mapping
            of_seeds.append(total.std() / total.mean())
        spread[rule] = np.mean(of_seeds)
    assert spread["pc"] < spread["random"]


def test_similar_clients_come_together() -> None:
    """Two kinds of clients and two channels: once both are begun, each takes its own kind."""
    wants = np.zeros((20, 4), dtype=bool)
    wants[:10, :2] = wants[10:, 2:] = True
    probability = np.full(4, 0.25)
    for seed in range(20):
        random = np.random.default_rng(seed)
        found = assign_channels("lc", wants, probability, (2, 1), random)
        first, second = found[:10].sum(axis=0), found[10:].sum(axis=0)
        if min(*first, *second) == 0:
            assert sorted([tuple(first), tuple(second)]) == [(0, 10), (10, 0)]
    both = [
        assign_channels("lc", wants, probability, (2, 1), np.random.default_rng(seed))[:10].sum(
            axis=0
        )
        for seed in range(20)
    ]
    assert any(0 in counts for counts in both)


def test_channels_of_similar_clients_take_turns() -> None:
    given = layout(40, 4, assignment="lc", listen=1)
    counts = sorted(given.listens.sum(axis=0).tolist())
    assert all(later - one <= 1 for one, later in pairwise(counts))


def test_full_client_gets_no_further_channel() -> None:
    listening = ListenerTable(1, 3, 1)
    assert listening.add(0, 2)
    assert not listening.add(0, 1)
    assert not listening.able(1).size
