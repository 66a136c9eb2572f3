"""The push by a tree of squares, against that of every pair."""

from __future__ import annotations

import numpy as np
import pytest

from vizpub.analytics.layouts.quadtree import push_forces


def exact(places: np.ndarray, wanted: float) -> np.ndarray:
    across = places[:, None] - places[None]
    square = np.maximum((across**2).sum(axis=2), 1e-6)
    force: np.ndarray = (across * wanted**2 / square[:, :, None]).sum(axis=1)
    return force


@pytest.mark.parametrize("count", [2, 3, 50, 400])
def test_push_is_nearly_that_of_every_pair(count: int) -> None:
    places = np.random.default_rng(count).uniform(-1, 1, (count, 2))
    found, expected = push_forces(places, 0.1), exact(places, 0.1)
    error = np.hypot(*(found - expected).T).mean()
    assert error < 0.05 * np.hypot(*expected.T).mean()


def test_peers_in_one_place_do_not_push_each_other() -> None:
    places = np.repeat([[0.25, 0.5], [0.25 + 1e-14, 0.5]], 30, axis=0)
    assert np.abs(push_forces(places, 0.1)).max() < 1e-3


def test_push_of_two_is_equal_and_opposite() -> None:
    found = push_forces(np.array([[0.0, 0.0], [1.0, 0.0]]), 1.0)
    np.testing.assert_allclose(found, [[-1, 0], [1, 0]])
