"""The coins of copies: uniform, and independent of one another."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, pearsonr

from vizpub.simulators.protocols.gossip.coins import coin, event_key, mix_bits


def test_mixing_is_a_permutation_of_words() -> None:
    words = range(2**16)
    assert len({mix_bits(word << 16) for word in words}) == 2**16
    assert {type(mix_bits(word)) for word in (0, 2**32 - 1)} == {int}
    assert all(0 <= mix_bits(word) < 2**32 for word in (0, 1, 2**31, 2**32 - 1))


@pytest.mark.parametrize("seed", [0, 1, 2**40 + 3])
def test_coins_of_an_event_are_uniform(seed: int) -> None:
    key = event_key(seed, 5)
    tossed = [coin(key, peer, other) for peer in range(100) for other in range(100, 200)]
    assert kstest(tossed, "uniform").pvalue > 0.001, f"seed {seed}"


def test_coins_of_neighbouring_numbers_do_not_depend_on_each_other() -> None:
    key, next_key = event_key(1, 7), event_key(1, 8)
    pairs = np.array(
        [
            (coin(key, i, j), coin(key, j, i), coin(key, i, j + 1), coin(next_key, i, j))
            for i in range(80)
            for j in range(100, 180)
        ]
    )
    for column in (1, 2, 3):
        assert pearsonr(pairs[:, 0], pairs[:, column]).pvalue > 0.001
