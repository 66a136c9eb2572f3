"""Rows of neighbours: outgoing from an alive list, incoming and either way from outgoing."""

from __future__ import annotations

import numpy as np

from model.compiled import Int32s, Int64s, Words, compiled

Rows = tuple[Int64s, Int32s]
"""`(ptr, idx)`: int64[n + 1] and int32[links]."""


@compiled("(int64, int32[::1], int32[::1], int32[::1], int32[::1])")
def outgoing(n: int, rank: Int32s, src: Int32s, dst: Int32s, alive: Int32s) -> Rows:
    """Outgoing rows of the links `alive` (positions in src and dst, ordered by (src, dst)).

    `rank` turns a peer's index into its place among the n of this snapshot, -1 where it is
    absent, and keeps their order. Links to itself or with an absent end are left out. O(n + links).
    """
    ptr = np.zeros(n + 1, np.int64)
    idx = np.empty(alive.size, np.int32)
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


@compiled("(int64[::1], int32[::1])")
def reverse(ptr: Int64s, idx: Int32s) -> Rows:
    """The rows of the same links turned round: incoming of outgoing. O(n + links)."""
    n = ptr.size - 1
    turned_ptr = np.zeros(n + 1, np.int64)
    for v in idx:
        turned_ptr[v + 1] += 1
    for v in range(n):
        turned_ptr[v + 1] += turned_ptr[v]
    place = turned_ptr[:-1].copy()
    turned_idx = np.empty_like(idx)
    for v in range(n):
        for k in range(ptr[v], ptr[v + 1]):
            turned_idx[place[idx[k]]] = v
            place[idx[k]] += 1
    return turned_ptr, turned_idx


@compiled("(int64[::1], int32[::1], int64[::1], int32[::1])")
def union(a_ptr: Int64s, a_idx: Int32s, b_ptr: Int64s, b_idx: Int32s) -> Rows:
    """Rows of the links in either: the undirected rows of outgoing and incoming. O(n + links)."""
    n = a_ptr.size - 1
    ptr = np.zeros(n + 1, np.int64)
    idx = np.empty(a_idx.size + b_idx.size, np.int32)
    count = 0
    for v in range(n):
        i, j = a_ptr[v], b_ptr[v]
        while i < a_ptr[v + 1] or j < b_ptr[v + 1]:
            take_a = j == b_ptr[v + 1] or (i < a_ptr[v + 1] and a_idx[i] <= b_idx[j])
            take_b = i == a_ptr[v + 1] or (j < b_ptr[v + 1] and b_idx[j] <= a_idx[i])
            idx[count] = a_idx[i] if take_a else b_idx[j]
            count += 1
            i += take_a
            j += take_b
        ptr[v + 1] = count
    return ptr, idx[:count]


@compiled("(int64[::1], int32[::1], int32[::1], int32[::1])")
def induced(ptr: Int64s, idx: Int32s, members: Int32s, place: Int32s) -> Rows:
    """Rows of the links between `members` (ascending), who are numbered anew in that order.

    `place` is room for n numbers, all -1 before and after: one per call would cost more than
    a small group's links.
    """
    for i in range(members.size):
        place[members[i]] = i
    inner_ptr = np.zeros(members.size + 1, np.int64)
    width = 0
    for v in members:
        width += ptr[v + 1] - ptr[v]
    inner_idx = np.empty(width, np.int32)
    count = 0
    for i in range(members.size):
        v = members[i]
        for k in range(ptr[v], ptr[v + 1]):
            if place[idx[k]] >= 0:
                inner_idx[count] = place[idx[k]]
                count += 1
        inner_ptr[i + 1] = count
    place[members] = -1
    return inner_ptr, inner_idx[:count]


@compiled("(int64[::1], int32[::1], int64, int64)")
def neighbour_bits(ptr: Int64s, idx: Int32s, first: int, width: int) -> Words:
    """uint64[n, width]: bit w % 64 of word w // 64 - first says that w is a neighbour. O(links)."""
    bits = np.zeros((ptr.size - 1, width), np.uint64)
    for v in range(ptr.size - 1):
        for k in range(ptr[v], ptr[v + 1]):
            word = idx[k] // 64 - first
            if 0 <= word < width:
                bits[v, word] |= np.uint64(1) << np.uint64(idx[k] % 64)
    return bits
