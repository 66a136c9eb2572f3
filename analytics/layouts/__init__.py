"""Positions of all peers of a run, the same at every time: on a circle, or by forces.

Equal input gives equal positions, on one kind of machine to the last bit. `VERSION` changes
whenever a layout gives other positions than before.
"""

from __future__ import annotations

import numpy as np

from vizpub.model.arrays import Floats

LAYOUT_NAMES = ("force", "circle")
VERSION = 1


def circle_layout(count: int) -> Floats:
    """Positions on the unit circle, anticlockwise from the right; shape (count, 2)."""
    angle = 2 * np.pi * np.arange(count) / max(count, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
