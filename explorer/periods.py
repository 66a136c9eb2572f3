"""Validity periods of many things at once, and what they have in common.

A page asks at each step which of them hold. It compares *ranks*, not ticks: the place of a begin or
an end among all of a run. A graphics card has numbers of 24 bits, and an hour in microseconds does
not fit into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vizpub.model.arrays import Int32s, Int64s, Integers
from vizpub.model.clock import OPEN
from vizpub.model.errors import UseError

MOST_RANKS = 2**24
"""Above it a graphics card takes two ranks for one."""
_NEVER = 2**31 - 1


class TooManyTimes(UseError):
    """A run changes at more times than the page tells apart."""


@dataclass(frozen=True)
class RankedPeriods:
    """Periods `[begin, end)` in ranks, of the things with these keys; ordered by key and begin.

    Those of one key neither overlap nor touch.
    """

    key: Int64s
    begin: Int32s
    end: Int32s

    def __len__(self) -> int:
        return self.key.size


def distinct(*ticks: Integers) -> Int64s:
    """All begins and ends of a run, ascending, without the open end: a tick's place is its rank."""
    times = np.unique(np.concatenate([np.empty(0, np.int64), *ticks]))
    closed: Int64s = times[times != OPEN]
    return closed


def ranks(times: Int64s, ticks: Integers) -> Int32s:
    """The ranks of begins or ends; an open end has the rank after the last."""
    return np.searchsorted(times, ticks).astype(np.int32)


def join_periods(key: Integers, begin: Integers, end: Integers) -> RankedPeriods:
    """The periods of each key, overlapping and touching ones as one. They may come in any order."""
    order = np.lexsort((begin, key))
    key, begin, end = (column[order].astype(np.int64) for column in (key, begin, end))
    if not key.size:
        return RankedPeriods(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))
    # One running maximum serves all keys if those of a later key are larger than all before.
    width = int(end.max()) + 1
    group = np.cumsum(np.concatenate([[0], key[1:] != key[:-1]])) * width
    reached = np.maximum.accumulate(group + end)
    first = np.concatenate([[True], group[1:] + begin[1:] > reached[:-1]])
    start = np.flatnonzero(first)
    last = np.concatenate([start[1:], [key.size]]) - 1
    return RankedPeriods(
        key[start].astype(np.int64),
        begin[start].astype(np.int32),
        (reached[last] - group[last]).astype(np.int32),
    )


def extend_periods(
    periods: RankedPeriods, rank: int, changed: tuple[Integers, Integers, Integers]
) -> RankedPeriods:
    """The periods of rows of which those that reached a rank have `changed` (key, begin, end)."""
    is_open = (periods.end >= rank) & (periods.begin < rank)
    ends = np.full(is_open.sum(), rank, np.int32)
    recent = join_periods(
        np.concatenate([periods.key[is_open], changed[0]]),
        np.concatenate([periods.begin[is_open], changed[1]]),
        np.concatenate([ends, changed[2]]),
    )
    closed = periods.end < rank
    key = np.concatenate([periods.key[closed], recent.key])
    order = np.argsort(key, kind="stable")  # of one key, recent periods begin after closed ones
    return RankedPeriods(
        key[order],
        np.concatenate([periods.begin[closed], recent.begin])[order],
        np.concatenate([periods.end[closed], recent.end])[order],
    )


def common(
    one: RankedPeriods, of_peer: RankedPeriods, peer: Integers
) -> tuple[Int64s, RankedPeriods]:
    """The parts of periods in which those of a peer hold too.

    `peer` is the peer of each period of `one`, `of_peer` has peers as keys. Also gives the place
    in `one` of each part, ascending.
    """
    first = np.searchsorted(of_peer.key, peer, side="left")
    count = np.searchsorted(of_peer.key, peer, side="right") - first
    place = np.repeat(np.arange(len(one)), count)
    within = np.arange(place.size) - np.repeat(np.cumsum(count) - count, count)
    place_of_peer = np.repeat(first, count) + within
    begin = np.maximum(one.begin[place], of_peer.begin[place_of_peer])
    end = np.minimum(one.end[place], of_peer.end[place_of_peer])
    real = begin < end
    return place[real], RankedPeriods(one.key[place[real]], begin[real], end[real])


def subtract(one: RankedPeriods, other: RankedPeriods) -> RankedPeriods:
    """The parts of the periods in which those of the same key in `other` do not hold."""
    keys = np.unique(one.key)
    same = np.isin(other.key, keys)
    # None holds before the first period of a key, between two, and after the last.
    begins = np.concatenate([np.zeros(keys.size, np.int32), other.end[same]])
    ends = np.concatenate([other.begin[same], np.full(keys.size, _NEVER, np.int32)])
    key_of_begin, key_of_end = (
        np.concatenate(pair) for pair in ((keys, other.key[same]), (other.key[same], keys))
    )
    by_begin, by_end = np.lexsort((begins, key_of_begin)), np.lexsort((ends, key_of_end))
    free = RankedPeriods(key_of_begin[by_begin], begins[by_begin], ends[by_end])
    _, rest = common(one, free, one.key)
    return rest


def unite(parts: Sequence[RankedPeriods]) -> RankedPeriods:
    """The periods in which any of the parts holds."""
    if not parts:
        return RankedPeriods(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))
    return join_periods(
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.begin for part in parts]),
        np.concatenate([part.end for part in parts]),
    )


def intersect(parts: Sequence[RankedPeriods]) -> RankedPeriods:
    """The periods in which all of the parts hold."""
    periods = parts[0]
    for part in parts[1:]:
        _, periods = common(periods, part, periods.key)
    return periods
