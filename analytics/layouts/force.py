"""Positions by forces: links pull their ends together, peers push each other away.

Fruchterman and Reingold (1991), with the push of far peers taken together (Barnes and Hut, 1986),
and a pull to the centre that keeps parts without a link between them in the picture. A step takes
time in proportion to n log n + links.
"""

from __future__ import annotations

import numpy as np

from vizpub.analytics.layouts.quadtree import push_forces
from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Floats, Int32s

_STEPS_OF_FEW, _STEPS_OF_MANY = 400, 120
_MANY = 20_000
"""Peers from which on the fewest steps are taken."""
_WARM = 0.15
"""Longest move of the first step; the picture is about 2 wide, and moves get shorter."""
_TO_CENTRE = 0.3
"""Relative to the pull of a link of the same length."""


def force_layout(count: int, src: Int32s, dst: Int32s, weight: Floats) -> Floats:
    """Positions of peers within the unit circle; shape (count, 2).

    `src` and `dst` are the ends of links, each pair of peers once, and `weight` in (0, 1] is the
    share of the time in which each is there.
    """
    if count < 2:
        return np.zeros((count, 2))
    place = np.random.default_rng(0).permutation(count)
    angle, radius = place * np.pi * (3 - np.sqrt(5)), np.sqrt((place + 0.5) / count)
    places = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    wanted = 1.6 / np.sqrt(count)
    share = min(count / _MANY, 1.0)
    steps = round(_STEPS_OF_FEW + (_STEPS_OF_MANY - _STEPS_OF_FEW) * share)
    for step in range(steps):
        force = push_forces(places, wanted)
        _pull(places, src, dst, weight, wanted, force)
        length = np.maximum(np.hypot(force[:, 0], force[:, 1]), 1e-9)
        longest = _WARM * (1 - step / steps)
        places += force * (np.minimum(length, longest) / length)[:, None]
    places -= (places.max(axis=0) + places.min(axis=0)) / 2
    scaled: Floats = places / max(np.hypot(places[:, 0], places[:, 1]).max(), 1e-9)
    return scaled


@compiled("(float64[:, ::1], int32[::1], int32[::1], float64[::1], float64, float64[:, ::1])")
def _pull(
    places: Floats, src: Int32s, dst: Int32s, weight: Floats, wanted: float, force: Floats
) -> None:
    """Add the forces by which links, and the centre, pull each peer."""
    for link in range(src.size):
        a, b = src[link], dst[link]
        x, y = places[b, 0] - places[a, 0], places[b, 1] - places[a, 1]
        strength = weight[link] * np.sqrt(x * x + y * y) / wanted
        force[a, 0] += x * strength
        force[a, 1] += y * strength
        force[b, 0] -= x * strength
        force[b, 1] -= y * strength
    for v in range(places.shape[0]):
        x, y = places[v, 0], places[v, 1]
        strength = _TO_CENTRE * np.sqrt(x * x + y * y) / wanted
        force[v, 0] -= x * strength
        force[v, 1] -= y * strength
