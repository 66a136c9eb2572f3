"""From validity periods to the pairs that are valid in each interval, with one sort."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Int32s, Int64s, Integers


@dataclass(frozen=True)
class Periods:
    """Pairs `(a, b)` in order with their validity periods `[start, stop)`, without overlaps."""

    a: Int32s
    b: Int32s
    start: Int32s
    stop: Int32s

    def alive(self, window: range) -> Iterator[Int32s]:
        """For each interval of the window: the positions of the periods valid in it, ascending.

        No period may start before the window. Each list is made from the previous one: beginning
        periods are merged in, ended ones dropped. O(valid + beginning) per interval.
        """
        places = np.arange(self.start.size, dtype=np.int32)
        order = _sort_order(self.start - window.start, places).astype(np.int32)
        bounds = np.searchsorted(self.start[order], np.arange(window.start, window.stop + 1))
        alive = np.empty(0, np.int32)
        for interval, begin, end in zip(window, bounds[:-1], bounds[1:], strict=True):
            alive = _merge_alive(alive, order[begin:end], self.stop, interval)
            yield alive


def clipped_periods(
    pairs: tuple[Integers, Integers], ends: tuple[Integers, ...], window: range
) -> Periods:
    """The periods `[start, stop)` of the pairs `(a, b)`, clipped to `window`.

    They may come in any order and repeat: overlapping or touching periods of a pair become one.
    Numbers may be of any integer type; ends beyond int32 are clipped too.
    """
    start = np.maximum(ends[0], window.start)
    stop = np.minimum(ends[1], window.stop)
    inside = np.flatnonzero(start < stop)
    order = inside[_sort_order(pairs[0][inside], pairs[1][inside], start[inside] - window.start)]
    return Periods(
        *_join_touching(*(column[order].astype(np.int32) for column in (*pairs, start, stop)))
    )


def _sort_order(*columns: Integers) -> Int64s:
    """The order by the first column, then the second and so on; none has negative numbers.

    Packed into one number each if they fit: sorting that is ten times as fast.
    """
    widths = [int(column.max(initial=0)).bit_length() for column in columns]
    if sum(widths) > 63:
        return np.lexsort(columns[::-1])
    key = np.zeros(columns[0].size, np.int64)
    for column, width in zip(columns, widths, strict=True):
        key = (key << width) | column
    return np.argsort(key)


@compiled("(int32[::1], int32[::1], int32[::1], int32[::1])")
def _join_touching(a: Int32s, b: Int32s, start: Int32s, stop: Int32s) -> tuple[Int32s, ...]:
    """Join overlapping and touching periods of a pair; they are ordered by (a, b, start)."""
    count = 0
    for i in range(a.size):
        last = count - 1
        if count and a[i] == a[last] and b[i] == b[last] and start[i] <= stop[last]:
            stop[last] = max(stop[last], stop[i])
        else:
            a[count], b[count], start[count], stop[count] = a[i], b[i], start[i], stop[i]
            count += 1
    return a[:count].copy(), b[:count].copy(), start[:count].copy(), stop[:count].copy()


@compiled("(int32[::1], int32[::1], int32[::1], int32)")
def _merge_alive(alive: Int32s, entering: Int32s, stop: Int32s, interval: int) -> Int32s:
    """Merge both ascending lists, without the periods that have ended by this interval."""
    merged = np.empty(alive.size + entering.size, np.int32)
    i, j, count = np.uint64(0), np.uint64(0), 0
    while i < alive.size and j < entering.size:
        keeps_alive = alive[i] < entering[j]
        merged[np.uint64(count)] = span = alive[i] if keeps_alive else entering[j]
        i += np.uint64(keeps_alive)
        j += np.uint64(not keeps_alive)
        count += stop[np.uint32(span)] > interval
    for rest in (alive[i:], entering[j:]):
        for span in rest:
            merged[np.uint64(count)] = span
            count += stop[np.uint32(span)] > interval
    return merged[:count]
