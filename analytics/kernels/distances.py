"""Distances from every peer to every peer it reaches, by bit-parallel breadth-first search.

Each peer has a row of bits, one per target. In each hop the rows of its neighbours are added; a bit
that is set in hop h is a target h hops away. After Then et al., The More the Merrier: Efficient
Multi-Source Graph Traversal, VLDB 2014, with the targets as lanes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from vizpub.analytics.kernels.adjacency import Peers, Rows, neighbour_bits
from vizpub.machine.compiled import compiled, population
from vizpub.model.arrays import Int32s, Int64s, Words

_Distances = tuple[Int64s, Int32s, Int32s]
"""Per peer: sum of the distances to the peers it reaches, their number, the largest distance."""

_BAND = 64
"""Words of a row: 4,096 targets at once, so that two rows per peer stay small for any n."""

_EARLY = 8
"""Neighbours after which to check whether a row is full."""

_SHORT = 8
"""A row of so many words is joined in the time it takes to ask whether it has to be."""

# Per peer, in int32[3, n]: number of targets of the band in its row, largest possible number, and
# the hop in which it last grew.
_KNOWN, _MOST, _GROWN = 0, 1, 2


@compiled("(uint64[:, ::1], uint32[::1], uint64[:, ::1], uint64[:, ::1], UniTuple(int64, 3))")
def _join_rows(
    rows: Words, idx: Peers, base: Words, out: Words, where: tuple[int, int, int]
) -> int:
    """Set row v of `out` to that of `base` joined with all rows `idx[begin:end]`, where `where`
    is (begin, end, v). How many bits it has then."""
    begin, end, v = where
    width = rows.shape[1]
    for word in range(width):
        out[v, word] = base[v, word]
    # By fours, the row is read and written a quarter as often.
    fours = end - (end - begin) % 4
    for k in range(begin, fours, 4):
        a, b, c, d = idx[k], idx[k + 1], idx[k + 2], idx[k + 3]
        for word in range(width):
            out[v, word] |= rows[a, word] | rows[b, word] | rows[c, word] | rows[d, word]
    for k in range(fours, end):
        for word in range(width):
            out[v, word] |= rows[idx[k], word]
    bits = 0
    for word in range(width):
        bits += population(out[v, word])
    return bits


@compiled("(int64[::1], uint32[::1], int32[::1], int64, int64, int32[:, ::1])")
def _first_hop(
    ptr: Int64s, idx: Peers, lane: Int32s, first: int, width: int, state: Int32s
) -> tuple[Words, Int32s]:
    """Rows of one band of lanes after one hop, including the peers themselves, and the number
    of other peers in each. `ptr`, `idx`: rows of the lanes next to each peer; `lane`: its own
    lane or -1."""
    n = ptr.size - 1
    counts, most = state[_KNOWN], state[_MOST]
    within, anybody = neighbour_bits(ptr, idx, first, width), np.zeros((1, width), np.uint64)
    gained = np.zeros(n, np.int32)
    everybody = np.arange(n).astype(np.uint32)
    # Without links to a target no other peer reaches it.
    reachable = _join_rows(within, everybody, anybody, anybody, (0, n, 0))
    for v in range(n):
        gained[v] = _join_rows(within, everybody, within, within, (0, 0, v))
    for v in range(n):
        counts[v], most[v] = gained[v], reachable
        bit = lane[v] - 64 * first
        if 0 <= bit < 64 * width:
            own_bit = np.uint64(1) << np.uint64(bit & 63)
            within[v, bit >> 6] |= own_bit
            counts[v] += 1
            most[v] += anybody[0, bit >> 6] & own_bit == 0
    state[_GROWN] = 1
    return within, gained


@njit(inline="always")
def _is_near_growth(ptr: Int64s, idx: Peers, v: int, grown: Int32s, hops: int) -> bool:
    """Return True if a neighbour's row grew in the previous hop (or already in this one)."""
    k, end = ptr[v], ptr[v + 1]
    while k < end and grown[idx[k]] < hops - 1:
        k += 1
    return bool(k < end)


@compiled("(int64[::1], uint32[::1], int64, uint64[:, ::1], uint64[:, ::1], int32[:, ::1])")
def _widen_rows(
    ptr: Int64s, idx: Peers, hops: int, within: Words, wider: Words, state: Int32s
) -> Int32s:
    """Fill `wider` with the rows within `hops` hops, from those within one hop less, and add the
    gains to `known`. The arrays agree on rows that did not grow in the previous hop."""
    counts, most, grown = state[_KNOWN], state[_MOST], state[_GROWN]
    gained, width = np.zeros(counts.size, np.int32), within.shape[1]
    for v in range(counts.size):
        # Joining a short row takes no longer than this check.
        if counts[v] == most[v] or (
            width > _SHORT and not _is_near_growth(ptr, idx, v, grown, hops)
        ):
            if grown[v] == hops - 1:
                _join_rows(within, idx, within, wider, (0, 0, v))
            continue
        k, end = ptr[v], ptr[v + 1]
        step = _EARLY if 4 * counts[v] > most[v] else end - k
        bits = _join_rows(within, idx, within, wider, (k, min(k + step, end), v))
        while bits < most[v] and k + step < end:
            k += step
            bits = _join_rows(within, idx, wider, wider, (k, min(k + step, end), v))
        if bits > counts[v]:
            gained[v] = bits - counts[v]
            counts[v], grown[v] = bits, hops
    return gained


@compiled("(int32[::1], int64, int64[:, ::1], int32[::1], int32[::1])")
def _add_gains(
    gained: Int32s, hops: int, sums: Int64s, reach: Int32s, eccentricity: Int32s
) -> bool:
    """Add the gains of one hop; returns whether there were any."""
    anything = np.int64(0)
    for v in range(gained.size):
        gain = np.int64(gained[v])
        sums[0, v] += hops * gain
        sums[1, v] += hops * hops * gain
        reach[v] += gain
        eccentricity[v] = hops if gain > 0 and hops > eccentricity[v] else eccentricity[v]
        anything |= gain
    return bool(anything > 0)


@compiled("(uint64[:, ::1], int64, int64, int64[:, ::1])")
def _add_gains_by_word(rows: Words, first: int, hops: int, groups: Int64s) -> None:
    """Add the gains of one hop to the distance sum of each word of lanes, and set its number of
    reached peers."""
    width = min(rows.shape[1], groups.shape[1] - first)
    bits = np.zeros(width, np.int64)
    for v in range(rows.shape[0]):
        for word in range(width):
            bits[word] += population(rows[v, word])
    for word in range(width):
        groups[0, first + word] += hops * (bits[word] - groups[1, first + word])
        groups[1, first + word] = bits[word]


_ROWS = "int64[::1], uint32[::1]"


@compiled(f"({_ROWS}, Tuple(({_ROWS})), int32[::1], int64, int64[:, ::1])")
def search_distances(
    ptr: Int64s, idx: Peers, lanes: Rows, lane: Int32s, targets: int, groups: Int64s
) -> tuple[Int64s, Int32s, Int32s]:
    """`(sums int64[2, n], reach int32[n], eccentricity int32[n])` of each peer.

    `ptr`, `idx`: rows to follow; `lane`: the number, below `targets`, of each peer that
    is a target, -1 of all others; `lanes`: the same rows with these numbers, of targets only.
    Sums are of the distances to the targets reached and of their squares. A peer does not count
    as reached by itself; eccentricity is -1 where it reaches none. `groups` is empty, or
    int64[2, words] of zeros above how many lanes each word of 64 has; on return it has the sum
    of the distances to the targets of each word, and how often they are reached, themselves
    included.

    O(diameter · links · targets / 64) word operations, 1 KiB per peer.
    """
    n, words = ptr.size - 1, (targets + 63) // 64
    sums, reach = np.zeros((2, n), np.int64), np.zeros(n, np.int32)
    eccentricity, state = np.full(n, -1, np.int32), np.empty((3, n), np.int32)
    for first in range(0, words, _BAND):
        width = min(_BAND, words - first)
        within, gained = _first_hop(*lanes, lane, first, width, state)
        wider, hops = np.empty_like(within), 1
        if groups.size:
            _add_gains_by_word(within, first, hops, groups)
        while _add_gains(gained, hops, sums, reach, eccentricity):
            hops += 1
            gained = _widen_rows(ptr, idx, hops, within, wider, state)
            within, wider = wider, within
            if groups.size:
                _add_gains_by_word(within, first, hops, groups)
    return sums, reach, eccentricity


@compiled(f"({_ROWS})")
def distances(ptr: Int64s, idx: Peers) -> _Distances:
    """`(distance_sum int64, reach int32, eccentricity int32)` of each peer along the rows given.

    `ptr`, `idx`: outgoing rows for directed distances, rows either way for undirected ones. A
    peer does not count as reached by itself; eccentricity is -1 where it reaches none.
    """
    n = ptr.size - 1
    everybody, ungrouped = np.arange(n).astype(np.int32), np.empty((2, 0), np.int64)
    sums, reach, eccentricity = search_distances(ptr, idx, (ptr, idx), everybody, n, ungrouped)
    return sums[0], reach, eccentricity
