"""A Pastry overlay after all peers have joined, made from global knowledge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vizpub.simulators.protocols.pastry.overlay import PastryOverlay

_Words = npt.NDArray[np.uint64]
_Indexes = npt.NDArray[np.int64]


def place(overlay: PastryOverlay, peers: Sequence[int]) -> None:
    """Give these peers the state that they would have after joining; other peers are down.

    Leaf sets are exact. An entry of a routing table is a random fitting peer, drawn uniformly by
    the network's generator, which is the result of joins if all latencies are equal. No message
    is sent. The peers are ready, but applications are not notified.
    """
    order = sorted(peers, key=overlay.ring.ids.__getitem__)
    half = overlay.nodes[order[0]].leaves.half
    for place_, peer in enumerate(order):
        node = overlay.keeping.reset(peer)
        node.is_placed = node.is_ready = True
        for step in range(1, min(half, len(order) - 1) + 1):
            node.leaves.add(order[(place_ + step) % len(order)])
            node.leaves.add(order[place_ - step])
    _fill_tables(overlay, np.array(order))


def _fill_tables(overlay: PastryOverlay, order: _Indexes) -> None:
    ring = overlay.ring
    ids = np.array([ring.ids[peer] for peer in order], np.uint64)
    random = np.random.default_rng(overlay.net.random.getrandbits(64))
    for shared in range(ring.bits // ring.b):
        rest = np.uint64(ring.bits - ring.b * (shared + 1))
        width, is_any = np.uint64(ring.b), False
        for digit in range(1 << ring.b):
            # The prefixes of all ids, with this last digit.
            first = (ids >> rest >> width << width | np.uint64(digit)) << rest
            positions = _draw_positions(ids, first, rest, random)
            own_digit = (ids >> rest & np.uint64((1 << ring.b) - 1)) == digit
            for at in np.flatnonzero((positions >= 0) & ~own_digit):
                overlay.nodes[order[at]].table[shared << ring.b | digit] = int(order[positions[at]])
                is_any = True
        if not is_any:
            return


def _draw_positions(
    ids: _Words, first: _Words, rest: np.uint64, random: np.random.Generator
) -> _Indexes:
    """For each range of 2^rest ids from `first`, the position of a random id in it; -1 if empty."""
    low = np.searchsorted(ids, first)
    high = np.searchsorted(ids, first | (np.uint64(1) << rest) - np.uint64(1), side="right")
    return np.where(high > low, low + random.integers(0, np.maximum(high - low, 1)), -1)
