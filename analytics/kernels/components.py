"""Weak and strong components, each named by its smallest peer."""

from __future__ import annotations

import numpy as np

from model.compiled import Int32s, Int64s, compiled


@compiled("(int32[::1], int32)")
def _root(parent: Int32s, v: int) -> int:
    """The top of v's tree, halving the path on the way."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@compiled("(int64[::1], int32[::1])")
def weak_components(ptr: Int64s, idx: Int32s) -> Int32s:
    """The smallest peer of each peer's weak component, int32[n], by union-find.

    `ptr`, `idx`: outgoing rows (or either way). The smaller root always becomes the root of
    both, so that a root is the smallest of its tree; with path halving O(links · log n).
    Tarjan and van Leeuwen, Worst-case analysis of set union algorithms, 1984.
    """
    n = ptr.size - 1
    parent = np.arange(n).astype(np.int32)
    for v in range(n):
        for k in range(ptr[v], ptr[v + 1]):
            a, b = _root(parent, v), _root(parent, idx[k])
            parent[max(a, b)] = min(a, b)
    for v in range(n):
        parent[v] = _root(parent, v)
    return parent


@compiled("(int32[::1], int32[::1], int64, int32)")
def _pop_component(stack: Int32s, component: Int32s, top: int, v: int) -> int:
    """Take the stack down to v, name what comes off by its smallest; the stack's new height."""
    bottom = top - 1
    while stack[bottom] != v:
        bottom -= 1
    component[stack[bottom:top]] = stack[bottom:top].min()
    return bottom


@compiled("(int64[::1], int32[::1])")
def strong_components(ptr: Int64s, idx: Int32s) -> Int32s:
    """The smallest peer of each peer's strong component, int32[n]. O(n + links).

    `ptr`, `idx`: outgoing rows. Tarjan, Depth-first search and linear graph algorithms, 1972,
    with a path of its own in place of recursion.
    """
    n = ptr.size - 1
    component = np.full(n, -1, np.int32)
    order = np.full(n, -1, np.int32)
    low = np.empty(n, np.int32)
    following = ptr[:-1].copy()
    path, stack = np.empty(n, np.int32), np.empty(n, np.int32)
    depth, top, found = 0, 0, 0
    for start in range(n):
        if order[start] >= 0:
            continue
        path[0], depth = start, 1
        while depth > 0:
            v = path[depth - 1]
            if order[v] < 0:
                order[v] = low[v] = found
                stack[top] = v
                found += 1
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
