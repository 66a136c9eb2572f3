"""Rows of neighbours: outgoing from a list of links, incoming and either way from outgoing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Int32s, Int64s, Words

Peers = npt.NDArray[np.uint32]
"""Numbers of peers. Unsigned, as compiled code checks whether a signed index counts from the end,
which takes longer than the look-up."""

Rows = tuple[Int64s, Peers]
"""`(ptr, idx)`: int64[n + 1] and uint32[links]."""


@njit(inline="always")
def row(ptr: Int64s, v: int) -> range:
    """Positions in `idx` of the neighbours of v, in unsigned numbers (see `Peers`)."""
    return range(np.uint64(ptr[v]), np.uint64(ptr[v + 1]))


@compiled("(int64, int32[::1], int32[::1], int32[::1], int32[::1])")
def outgoing(n: int, rank: Int32s, src: Int32s, dst: Int32s, alive: Int32s) -> Rows:
    """Outgoing rows of the links `alive` (positions in src and dst, ordered by (src, dst)).

    `rank` maps a peer's index to its position among the n peers of this snapshot, in the same
    order; -1 if it is absent. Links to itself or with an absent end are left out. O(n + links).
    """
    ptr = np.zeros(n + 1, np.int64)
    idx = np.empty(alive.size, np.uint32)
    count = 0
    for link in alive:
        source, target = rank[src[link]], rank[dst[link]]
        if source >= 0 and target >= 0 and source != target:
            ptr[source + 1] += 1
            idx[count] = target
            count += 1
    for v in range(n):
        ptr[v + 1] += ptr[v]
    return ptr, idx[:count]


@compiled("(int64[::1], uint32[::1])")
def reverse(ptr: Int64s, idx: Peers) -> Rows:
    """The rows of the reversed links: incoming from outgoing ones. O(n + links)."""
    n = ptr.size - 1
    reversed_ptr = np.zeros(n + 1, np.int64)
    for v in idx:
        reversed_ptr[v + 1] += 1
    for v in range(n):
        reversed_ptr[v + 1] += reversed_ptr[v]
    place = reversed_ptr[:-1].copy()
    reversed_idx = np.empty_like(idx)
    for v in range(n):
        for k in row(ptr, v):
            reversed_idx[np.uint64(place[idx[k]])] = v
            place[idx[k]] += 1
    return reversed_ptr, reversed_idx


@compiled("(int64[::1], uint32[::1], int64[::1], uint32[::1])")
def union(a_ptr: Int64s, a_idx: Peers, b_ptr: Int64s, b_idx: Peers) -> Rows:
    """Rows of the links in either: the undirected rows of outgoing and incoming. O(n + links).

    A row is the row of a, then the others of b.
    """
    n = a_ptr.size - 1
    ptr = np.zeros(n + 1, np.int64)
    idx = np.empty(a_idx.size + b_idx.size, np.uint32)
    count = 0
    for v in range(n):
        for k in row(a_ptr, v):
            idx[np.uint64(count)] = a_idx[k]
            count += 1
        i, j = np.uint64(a_ptr[v]), np.uint64(b_ptr[v])
        a_end, b_end = np.uint64(a_ptr[v + 1]), np.uint64(b_ptr[v + 1])
        while i < a_end and j < b_end:
            a, b = a_idx[i], b_idx[j]
            idx[np.uint64(count)] = b
            count += b < a
            i += np.uint64(a <= b)
            j += np.uint64(b <= a)
        for k in range(j, b_end):
            idx[np.uint64(count)] = b_idx[k]
            count += 1
        ptr[v + 1] = count
    return ptr, idx[:count]


@compiled("(int64[::1], uint32[::1], int64, int64)")
def neighbour_bits(ptr: Int64s, idx: Peers, first: int, width: int) -> Words:
    """uint64[n, width]: bit w % 64 of word w // 64 - first is set if w is a neighbour. O(links)."""
    bits = np.zeros((ptr.size - 1, width), np.uint64)
    for v in range(ptr.size - 1):
        for k in row(ptr, v):
            word = np.int64(idx[k] >> np.uint32(6)) - first
            if 0 <= word < width:
                bits[v, word] |= np.uint64(1) << np.uint64(idx[k] & np.uint32(63))
    return bits
