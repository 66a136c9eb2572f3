"""Betweenness of the directed overlay: exact from every source, or estimated from some.

Brandes, A faster algorithm for betweenness centrality, 2001, algorithm 1, in two forms with the
same result: one source at a time, and 32 sources side by side, hop by hop over all peers. The
second is faster if the diameter is small, as in most overlays; on a long path it visits every peer
for each hop. Path counts are float64.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from vizpub.analytics.kernels.adjacency import Peers, reverse, row
from vizpub.analytics.options import LEAST_SOURCES
from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Floats, Int32s, Int64s

_LANES = 32
_SHALLOW, _FEW = 10, 16_384
"""Hops up to which lanes are faster, measured on random overlays and rings of neighbours, and the
number of peers whose lanes fit into the cache: with more, up to half the hops."""


@compiled("(int64[::1], uint32[::1], uint32, int32[::1], uint32[::1], float64[::1])")
def _count_paths(
    ptr: Int64s, idx: Peers, source: int, hops: Int32s, order: Peers, paths: Floats
) -> int:
    """Breadth-first search from the source: hops, shortest paths, and the order of visits."""
    hops[:], paths[:] = -1, 0
    hops[source], paths[source], order[0] = 0, 1, source
    done, reached = 0, 1
    while done < reached:
        v = order[done]
        done += 1
        for k in row(ptr, v):
            w = idx[k]
            if hops[w] < 0:
                hops[w] = hops[v] + 1
                order[reached] = w
                reached += 1
            if hops[w] == hops[v] + 1:
                paths[w] += paths[v]
    return reached


@compiled("(int64[::1], uint32[::1], uint32[::1])")
def _dependencies_by_source(ptr: Int64s, idx: Peers, sources: Peers) -> Floats:
    """`dependencies` of one source after the other. O(sources · (n + links))."""
    n = ptr.size - 1
    sums = np.zeros((2, n))
    hops, order = np.empty(n, np.int32), np.empty(n, np.uint32)
    paths, dependency = np.empty(n), np.empty(n)
    for source in sources:
        reached = _count_paths(ptr, idx, source, hops, order, paths)
        for i in range(reached - 1, 0, -1):
            v = order[i]
            share = 0.0
            for k in row(ptr, v):
                if hops[idx[k]] == hops[v] + 1:
                    share += (1 + dependency[idx[k]]) / paths[idx[k]]
            dependency[v] = share * paths[v]
            sums[0, v] += dependency[v]
            sums[1, v] += dependency[v] ** 2
    return sums


@njit(inline="always")
def _add_rows(rows: Floats, chosen: Peers, total: Floats) -> None:
    """Set `total` to the sum of those rows, four at a time: it is the innermost loop."""
    total[:] = 0
    fours = chosen.size // 4 * 4
    for k in range(0, fours, 4):
        a, b, c, d = rows[chosen[k]], rows[chosen[k + 1]], rows[chosen[k + 2]], rows[chosen[k + 3]]
        for lane in range(_LANES):
            total[lane] += (a[lane] + b[lane]) + (c[lane] + d[lane])
    for k in range(fours, chosen.size):
        a = rows[chosen[k]]
        for lane in range(_LANES):
            total[lane] += a[lane]


_LANED = "(int64[::1], uint32[::1], int64, int32[:, ::1], float64[:, :, ::1])"
# Of 32 sources at once, one row of lanes per peer: hops int32[n, lanes], and in one array
# float64[5, n, lanes] the paths, two work areas, and the sum and sum of squares.


@compiled(_LANED)
def _count_paths_in_lanes(
    in_ptr: Int64s, in_idx: Peers, remaining: int, hops: Int32s, lanes: Floats
) -> int:
    """Compute hops and paths; returns the largest distance. They (and `front`) initially hold the
    sources only, -1 and 0 elsewhere.

    In each hop, every peer adds the paths of its predecessors that were reached in the previous hop
    (`front`, 0 elsewhere). `left`: largest possible number of peers to reach, over all sources.
    """
    paths, front, wave = lanes[0], lanes[1], lanes[2]
    hop, gained = 0, 1
    while remaining > 0 and gained > 0:
        hop, gained = hop + 1, 0
        for v in range(paths.shape[0]):
            row, mine, at = wave[v], paths[v], hops[v]
            _add_rows(front, in_idx[in_ptr[v] : in_ptr[v + 1]], row)
            for lane in range(_LANES):
                is_reached = (at[lane] < 0) & (row[lane] > 0)
                row[lane] = row[lane] if is_reached else 0.0
                mine[lane] += row[lane]
                at[lane] = hop if is_reached else at[lane]
                gained += is_reached
        remaining -= gained
        front, wave = wave, front
    return hop if gained else hop - 1


@compiled(_LANED)
def _add_dependencies(ptr: Int64s, idx: Peers, depth: int, hops: Int32s, lanes: Floats) -> None:
    """Add the dependencies of all lanes to the sums, from the farthest hop inwards.

    Every peer adds, from its successors one hop further, 1 plus the dependency on them, per
    shortest path (`carried`, 0 elsewhere).
    """
    paths, carried, inner = lanes[0], lanes[1], lanes[2]
    carried[:] = 0
    for hop in range(depth, 0, -1):
        for v in range(paths.shape[0]):
            row, mine, at = inner[v], paths[v], hops[v]
            _add_rows(carried, idx[ptr[v] : ptr[v + 1]], row)
            total, squares = lanes[3, v], lanes[4, v]
            for lane in range(_LANES):
                is_here = at[lane] == hop
                dependency = row[lane] * mine[lane] if is_here else 0.0
                total[lane] += dependency
                squares[lane] += dependency * dependency
                row[lane] = (1 + dependency) / mine[lane] if is_here else 0.0
        carried, inner = inner, carried


@compiled("(int64[::1], uint32[::1], uint32[::1])")
def _dependencies_in_lanes(ptr: Int64s, idx: Peers, sources: Peers) -> Floats:
    """`dependencies` by 32 sources at once, a sum per lane: float64[2, n, lanes].

    O(hops · sources · (n + links)), in vector instructions.
    """
    n = ptr.size - 1
    hops, lanes = np.empty((n, _LANES), np.int32), np.zeros((5, n, _LANES))
    in_ptr, in_idx = reverse(ptr, idx)
    linked = in_ptr[1:] > in_ptr[:-1]
    for first in range(0, sources.size, _LANES):
        hops[:], lanes[:2] = -1, 0
        lane_sources = sources[first : first + _LANES]
        for lane in range(lane_sources.size):
            hops[lane_sources[lane], lane] = 0
            lanes[:2, lane_sources[lane], lane] = 1
        # Peers with incoming links can be reached, except for the source.
        remaining = lane_sources.size * linked.sum() - linked[lane_sources].sum()
        depth = _count_paths_in_lanes(in_ptr, in_idx, remaining, hops, lanes)
        _add_dependencies(ptr, idx, depth, hops, lanes)
    return lanes[3:]


def dependencies(ptr: Int64s, idx: Peers, sources: Peers, hops: int) -> Floats:
    """Sum and sum of squares, over `sources`, of the dependency of each source on each peer.

    `ptr`, `idx`: outgoing rows; `hops`: about the largest distance; returns float64[2, n].
    The dependency of s on v is the share of the shortest paths from s through v, summed over
    their targets; over all sources it adds up to betweenness by ordered pairs, not normalised.
    """
    if hops <= (_SHALLOW if ptr.size <= _FEW else _SHALLOW // 2):
        sums: Floats = _dependencies_in_lanes(ptr, idx, sources).sum(axis=2)
        return sums
    return _dependencies_by_source(ptr, idx, sources)


def betweenness(
    ptr: Int64s, idx: Peers, hops: int, budget: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """`(betweenness, its standard error)`, float64[n] each; the error is 0 where it is exact.

    `ptr`, `idx`: outgoing rows; `hops`: about the largest distance. Exact while
    n · (n + links) is within `budget`. Beyond it, as many sources as the budget allows (at
    least 2) are drawn by `rng` without replacement; the standard error is that of a total under
    such sampling. Brandes and Pich, Centrality estimation in large networks, 2007.
    """
    n, work = ptr.size - 1, ptr.size - 1 + idx.size
    k = n if n * work <= budget else max(LEAST_SOURCES, int(budget // work))
    if k >= n:
        return dependencies(ptr, idx, np.arange(n, dtype=np.uint32), hops)[0], np.zeros(n)
    sources = rng.choice(n, k, replace=False).astype(np.uint32)
    total, squares = dependencies(ptr, idx, sources, hops)
    variance = np.maximum(squares - total**2 / k, 0) / (k - 1)
    return total * (n / k), n * np.sqrt(variance / k * (1 - k / n))
