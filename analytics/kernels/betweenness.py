"""Betweenness of the directed overlay: exact from every source, or estimated from some."""

from __future__ import annotations

import numpy as np

from analytics.kernels.compiled import Floats, Int32s, Int64s, compiled


@compiled("(int64[::1], int32[::1], int32, int32[::1], int32[::1], float64[::1])")
def _count_paths(
    ptr: Int64s, idx: Int32s, source: int, hops: Int32s, order: Int32s, paths: Floats
) -> int:
    """Breadth-first from the source: hops, shortest paths, and who was reached in which order."""
    hops[source], paths[source], order[0] = 0, 1, source
    done, reached = 0, 1
    while done < reached:
        v = order[done]
        done += 1
        for k in range(ptr[v], ptr[v + 1]):
            w = idx[k]
            if hops[w] < 0:
                hops[w] = hops[v] + 1
                order[reached] = w
                reached += 1
            if hops[w] == hops[v] + 1:
                paths[w] += paths[v]
    return reached


@compiled("(int64[::1], int32[::1], int32[::1])")
def dependencies(ptr: Int64s, idx: Int32s, sources: Int32s) -> tuple[Floats, Floats]:
    """Sum and sum of squares, over `sources`, of how much each source depends on each peer.

    `ptr`, `idx`: outgoing rows; float64[n] each. The dependency of s on v is the share of the
    shortest paths from s through v, summed over their targets; over all sources it adds up to
    betweenness by ordered pairs, not normalised. O(sources · (n + links)). Brandes, A faster
    algorithm for betweenness centrality, 2001, algorithm 1; path counts are float64.
    """
    n = ptr.size - 1
    total, squares = np.zeros(n), np.zeros(n)
    hops, order = np.empty(n, np.int32), np.empty(n, np.int32)
    paths, dependency = np.empty(n), np.empty(n)
    for source in sources:
        hops[:] = -1
        paths[:] = 0
        reached = _count_paths(ptr, idx, source, hops, order, paths)
        for i in range(reached - 1, 0, -1):
            v = order[i]
            share = 0.0
            for k in range(ptr[v], ptr[v + 1]):
                if hops[idx[k]] == hops[v] + 1:
                    share += (1 + dependency[idx[k]]) / paths[idx[k]]
            dependency[v] = share * paths[v]
            total[v] += dependency[v]
            squares[v] += dependency[v] ** 2
    return total, squares


def betweenness(
    ptr: Int64s, idx: Int32s, budget: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """`(betweenness, its standard error)`, float64[n] each; the error is 0 where it is exact.

    Exact while n · (n + links) is within `budget`. Beyond it, as many sources as the budget
    allows (at least 2) are drawn by `rng` without replacement and stand for all; the standard
    error is that of a total under such sampling. Brandes and Pich, Centrality estimation in
    large networks, 2007.
    """
    n, work = ptr.size - 1, ptr.size - 1 + idx.size
    k = n if n * work <= budget else max(2, int(budget // work))
    if k >= n:
        return dependencies(ptr, idx, np.arange(n, dtype=np.int32))[0], np.zeros(n)
    sources = rng.choice(n, k, replace=False).astype(np.int32)
    total, squares = dependencies(ptr, idx, sources)
    variance = np.maximum(squares - total**2 / k, 0) / (k - 1)
    return total * (n / k), n * np.sqrt(variance / k * (1 - k / n))
