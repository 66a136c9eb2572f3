"""PageRank of the directed overlay."""

from __future__ import annotations

import numpy as np

from vizpub.analytics.kernels.adjacency import Peers, row
from vizpub.analytics.options import DAMPING
from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Floats, Int64s

_CHANGE = 1e-10
_ROUNDS = 200
"""Rounds that suffice for any overlay: the change shrinks by the damping in each."""


@compiled("(int64[::1], int64[::1], uint32[::1])")
def pagerank(ptr: Int64s, in_ptr: Int64s, in_idx: Peers) -> Floats:
    """Stationary distribution of a random walk along the links, float64[n] of sum 1.

    `ptr`: of outgoing rows; `in_ptr`, `in_idx`: incoming rows. With probability 0.85 the walk takes
    one of the outgoing links; otherwise, or if there is none, it goes to any peer. Power iteration
    until the ranks change by less than 1e-10 in total, so their error is below 6e-10. Page, Brin,
    Motwani and Winograd, The PageRank citation ranking, 1999. O(n + links) per round.
    """
    n = ptr.size - 1
    rank, carried = np.full(n, 1 / max(n, 1)), np.zeros(n)
    for _ in range(_ROUNDS):
        idle = 0.0
        for v in range(n):
            links = ptr[v + 1] - ptr[v]
            if links > 0:
                carried[v] = DAMPING * rank[v] / links
            else:
                idle += rank[v]
        anywhere = (1 - DAMPING + DAMPING * idle) / n if n else 0.0
        change = 0.0
        for v in range(n):
            gained = anywhere
            for k in row(in_ptr, v):
                gained += carried[in_idx[k]]
            change += abs(gained - rank[v])
            rank[v] = gained
        if change < _CHANGE:
            break
    return rank
