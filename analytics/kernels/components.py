"""Weak and strong components, each named by its smallest peer."""

from __future__ import annotations

import numpy as np

from vizpub.analytics.kernels.adjacency import Peers, row
from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Int32s, Int64s


@compiled("(uint32[::1], uint32)")
def _find_root(parent: Peers, v: int) -> int:
    """The root of v's tree; halves the path on the way."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@compiled("(int64[::1], uint32[::1])")
def weak_components(ptr: Int64s, idx: Peers) -> Peers:
    """The smallest peer of each peer's weak component, uint32[n], by union-find.

    `ptr`, `idx`: outgoing rows (or either way). The smaller root becomes the root of both,
    so a root is the smallest peer of its tree; with path halving O(links · log n).
    Tarjan and van Leeuwen, Worst-case analysis of set union algorithms, 1984.
    """
    n = ptr.size - 1
    parent, trees = np.arange(n).astype(np.uint32), n
    for v in range(n):
        if trees == 1:
            break
        for k in row(ptr, v):
            a, b = _find_root(parent, v), _find_root(parent, idx[k])
            trees -= a != b
            parent[max(a, b)] = min(a, b)
    for v in range(n):
        parent[v] = _find_root(parent, v)
    return parent


@compiled("(uint32[::1], int32[::1], int64, uint32)")
def _pop_component(stack: Peers, component: Int32s, top: int, v: int) -> int:
    """Pop the stack down to v, name these peers by the smallest; returns the new height."""
    bottom = top - 1
    while stack[bottom] != v:
        bottom -= 1
    component[stack[bottom:top]] = stack[bottom:top].min()
    return bottom


@compiled("(int64[::1], uint32[::1])")
def strong_components(ptr: Int64s, idx: Peers) -> Int32s:
    """The smallest peer of each peer's strong component, int32[n]. O(n + links).

    `ptr`, `idx`: outgoing rows. Tarjan, Depth-first search and linear graph algorithms, 1972,
    with an explicit path instead of recursion.
    """
    n = ptr.size - 1
    component = np.full(n, -1, np.int32)
    order = np.full(n, -1, np.int32)
    low = np.empty(n, np.int32)
    following = ptr[:-1].copy()
    path, stack = np.empty(n, np.uint32), np.empty(n, np.uint32)
    depth, top, visited = 0, 0, 0
    for start in range(n):
        if order[start] >= 0:
            continue
        path[0], depth = start, 1
        while depth > 0:
            v = path[depth - 1]
            if order[v] < 0:
                order[v] = low[v] = visited
                stack[top] = v
                visited += 1
                top += 1
            if following[v] < ptr[v + 1]:
                w = idx[following[v]]
                following[v] += 1
                if order[w] < 0:
                    path[depth] = w
                    depth += 1
                elif component[w] < 0:
                    low[v] = min(low[v], order[w])
                continue
            if low[v] == order[v]:
                top = _pop_component(stack, component, top, v)
            depth -= 1
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[v])
    return component
