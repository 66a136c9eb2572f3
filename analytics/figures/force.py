"""Positions of peers by forces: links pull their ends together, peers push each other away.

Fruchterman and Reingold (1991), with a pull to the centre that keeps parts without a link between
them in the picture. Every pair of peers is looked at in every step.
"""

from __future__ import annotations

import numpy as np

_STEPS = 150
_WARM = 0.15
"""Longest move of the first step; the picture is about 2 wide, and moves get shorter."""
_TO_CENTRE = 0.3
"""Relative to the pull of a link of the same length."""


def places_by_force(count: int, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """Positions of `count` peers within the unit circle; shape (count, 2).

    `src` and `dst` are the ends of links, by place among the peers. Equal links give equal
    positions. Memory and time grow with the square of `count`.
    """
    if count < 2:
        return np.zeros((count, 2))
    # Each pair of peers with a link in either direction, once.
    ends = np.sort(np.stack([src, dst], axis=1).astype(int), axis=1)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    places = np.random.default_rng(0).uniform(-1, 1, (count, 2))
    wanted = 1.6 / np.sqrt(count)
    for step in range(_STEPS):
        force = _push(places, wanted) + _pull(places, ends, wanted)
        length = np.maximum(np.hypot(*force.T), 1e-9)
        longest = _WARM * (1 - step / _STEPS)
        places += force * (np.minimum(length, longest) / length)[:, None]
    places -= (places.max(axis=0) + places.min(axis=0)) / 2
    scaled: np.ndarray = places / max(np.hypot(*places.T).max(), 1e-9)
    return scaled


def _push(places: np.ndarray, wanted: float) -> np.ndarray:
    """Force by which all other peers push each peer away; shape (peers, 2)."""
    x, y = (axis[:, None] - axis[None, :] for axis in places.T)
    strength = wanted**2 / np.maximum(x**2 + y**2, 1e-6)
    force: np.ndarray = np.stack([(x * strength).sum(axis=1), (y * strength).sum(axis=1)], axis=1)
    return force


def _pull(places: np.ndarray, ends: np.ndarray, wanted: float) -> np.ndarray:
    """Force by which its links, and the centre, pull each peer; shape (peers, 2)."""
    across = places[ends[:, 1]] - places[ends[:, 0]]
    strength = across * np.hypot(*across.T)[:, None] / wanted
    force: np.ndarray = -_TO_CENTRE * places * np.hypot(*places.T)[:, None] / wanted
    np.add.at(force, ends[:, 0], strength)
    np.subtract.at(force, ends[:, 1], strength)
    return force
