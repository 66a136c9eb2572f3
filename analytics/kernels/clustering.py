"""Local clustering of the undirected overlay: on rows of bits, or link by link if it is sparse.

Both count triangles exactly; the length of a row of bits decides which is faster.
"""

from __future__ import annotations

import numpy as np

from vizpub.analytics.kernels.adjacency import Peers, Rows, neighbour_bits, row
from vizpub.machine.compiled import compiled, population
from vizpub.model.arrays import Floats, Int64s, Words

_BAND = 64
"""Words of a row: 4,096 peers at once, so that a row per peer stays small for any n."""
_WORDS_PER_LINK = 6
"""Words of two rows that are compared in the time of looking up one neighbour."""


@compiled("(int64[::1], uint32[::1], uint64[:, ::1], int64[::1])")
def _count_common(ptr: Int64s, idx: Peers, rows: Words, corners: Int64s) -> None:
    """Add to both ends of each link the number of neighbours of the band that they share."""
    for v in range(rows.shape[0]):
        for k in row(ptr, v):
            neighbour = idx[k]
            if neighbour > v:
                shared = 0
                for word in range(rows.shape[1]):
                    shared += population(rows[v, word] & rows[neighbour, word])
                corners[v] += shared
                corners[neighbour] += shared


@compiled("(int64[::1], uint32[::1])")
def corners_by_bits(ptr: Int64s, idx: Peers) -> Int64s:
    """Twice the triangles of each peer. O(links · n / 64) word operations, 0.5 KiB per peer."""
    n = ptr.size - 1
    corners = np.zeros(n, np.int64)
    words = (n + 63) // 64
    for first in range(0, words, _BAND):
        rows = neighbour_bits(ptr, idx, first, min(_BAND, words - first))
        _count_common(ptr, idx, rows, corners)
    return corners


@compiled("(int64[::1], uint32[::1])")
def _rows_upwards(ptr: Int64s, idx: Peers) -> Rows:
    """The rows of the neighbours with more neighbours (or as many, and a larger number)."""
    n = ptr.size - 1
    up_ptr, up_idx = np.zeros(n + 1, np.int64), np.empty(idx.size // 2 + 1, np.uint32)
    count = 0
    for v in range(n):
        degree = ptr[v + 1] - ptr[v]
        for k in row(ptr, v):
            neighbour = idx[k]
            theirs = ptr[neighbour + np.uint32(1)] - ptr[neighbour]
            if theirs > degree or (theirs == degree and neighbour > v):
                up_idx[count] = neighbour
                count += 1
        up_ptr[v + 1] = count
    return up_ptr, up_idx[:count]


@compiled("(int64[::1], uint32[::1])")
def corners_by_links(ptr: Int64s, idx: Peers) -> Int64s:
    """Twice the triangles of each peer, each found from its corner with the fewest neighbours.

    No row upwards is longer than √(2 · links), however many neighbours a hub has:
    O(links · √links). Latapy, Main-memory triangle computations for very large (sparse
    (power-law)) graphs, 2008, algorithm new-listing's ancestor forward.
    """
    n = ptr.size - 1
    corners, seen_from = np.zeros(n, np.int64), np.full(n, -1, np.int32)
    up_ptr, up_idx = _rows_upwards(ptr, idx)
    for v in range(n):
        for k in row(up_ptr, v):
            seen_from[up_idx[k]] = v
        for k in row(up_ptr, v):
            neighbour, shared = up_idx[k], 0
            for j in row(up_ptr, neighbour):
                if seen_from[up_idx[j]] == v:
                    corners[up_idx[j]] += 2
                    shared += 2
            corners[neighbour] += shared
            corners[v] += shared
    return corners


def clustering(ptr: Int64s, idx: Peers) -> Floats:
    """Links among a peer's neighbours over all possible ones, float64[n]; 0 below 2 neighbours.

    `ptr`, `idx`: rows either way. Watts and Strogatz, Collective dynamics of small-world
    networks, 1998; the same as networkx.
    """
    n, degree = ptr.size - 1, np.diff(ptr)
    is_dense = n / 64 * n <= _WORDS_PER_LINK * idx.size / 2
    corners = corners_by_bits(ptr, idx) if is_dense else corners_by_links(ptr, idx)
    local: Floats = corners / np.maximum(degree * (degree - 1), 1)
    return local
