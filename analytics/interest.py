"""Subscriptions at a given tick, and intervals in which peers do not report receptions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vizpub.analytics.messages.hops import LARGEST, Flags, first_and_second, pairs
from vizpub.model.arrays import Int64s


class Interest:
    """Subscriptions; those of a peer and topic do not overlap. O(subscriptions) memory."""

    def __init__(self, topic: Int64s, peer: Int64s, valid_from: Int64s, valid_to: Int64s) -> None:
        of_pair = np.lexsort((valid_from, peer, topic))
        self._pairs = pairs(topic, peer)[of_pair]
        self._begins, self._ends = valid_from[of_pair], valid_to[of_pair]
        self._topics = np.sort(topic)
        self._all_begins = valid_from[np.lexsort((valid_from, topic))]
        self._all_ends = valid_to[np.lexsort((valid_to, topic))]

    def of(self, topic: Int64s, peer: Int64s, tick: Int64s) -> Flags:
        """Whether each peer subscribes to that topic at that tick; false where one is -1."""
        low, high = _places(self._pairs, pairs(topic, peer))
        last = _beyond(self._begins, low, high, tick) - 1
        begun = last >= low
        begun[begun] = tick[begun] < self._ends[last[begun]]
        return begun & (topic >= 0)

    def turned(self, topic: Int64s, peer: Int64s, tick: Int64s) -> Flags:
        """Whether the subscription of each peer to that topic begins or ends at that tick."""
        low, high = _places(self._pairs, pairs(topic, peer))
        last = _beyond(self._begins, low, high, tick) - 1
        turned = last >= low
        begin, end = self._begins[last[turned]], self._ends[last[turned]]
        turned[turned] = (begin == tick[turned]) | (end == tick[turned])
        return turned & (topic >= 0)

    def count(self, topic: Int64s, tick: Int64s) -> Int64s:
        """Number of subscribers of each topic at that tick, without listing them."""
        low, high = _places(self._topics, topic)
        begun = _beyond(self._all_begins, low, high, tick)
        return begun - _beyond(self._all_ends, low, high, tick)

    def alive(self, topic: Int64s, tick: Int64s, at_once: int) -> Iterator[tuple[Int64s, Int64s]]:
        """The subscribers of each of the topics at that tick: (positions in `topic`, peers), in
        parts of about `at_once` subscriptions, or all those of one topic.
        """
        for place, row in _spread(*_of_first(self._pairs, topic), at_once):
            here = (self._begins[row] <= tick[place]) & (tick[place] < self._ends[row])
            yield place[here], first_and_second(self._pairs[row[here]])[1]


class Silence:
    """Peers and intervals whose receptions are not reported."""

    def __init__(self, interval: Int64s, peer: Int64s) -> None:
        self._pairs = np.unique(pairs(interval, peer))

    def of(self, interval: Int64s, peer: Int64s) -> Flags:
        """Whether the receptions of each peer in that interval are unknown."""
        low, high = _places(self._pairs, pairs(interval, peer))
        return high > low

    def in_each(self, interval: Int64s, at_once: int) -> Iterator[tuple[Int64s, Int64s]]:
        """The silent peers of each of the intervals: (positions in `interval`, peers), in parts of
        about `at_once` pairs, or all those of one interval.
        """
        for place, row in _spread(*_of_first(self._pairs, interval), at_once):
            yield place, first_and_second(self._pairs[row])[1]


def _of_first(ordered: Int64s, wanted: Int64s) -> tuple[Int64s, Int64s]:
    """Positions `[low, high)` of the pairs with each of the wanted first numbers."""
    least, most = (pairs(wanted, np.full_like(wanted, second)) for second in (0, LARGEST))
    return np.searchsorted(ordered, least), np.searchsorted(ordered, most, "right")


def _spread(low: Int64s, high: Int64s, at_once: int) -> Iterator[tuple[Int64s, Int64s]]:
    """All numbers of each `[low, high)`: (positions in `low`, numbers), in parts of about `at_once`
    numbers, or all those of one range.
    """
    counts = high - low
    ends = np.cumsum(counts)
    cuts = np.searchsorted(ends, np.arange(at_once, counts.sum(), at_once))
    for rows in np.split(np.arange(low.size), cuts):
        place = np.repeat(rows, counts[rows])
        begins = ends[rows] - counts[rows]
        offset = np.arange(place.size) - np.repeat(begins - begins[:1], counts[rows])
        yield place, low[place] + offset


def _places(ordered: Int64s, wanted: Int64s) -> tuple[Int64s, Int64s]:
    """Positions `[low, high)` of each of the wanted numbers."""
    return np.searchsorted(ordered, wanted), np.searchsorted(ordered, wanted, "right")


def _beyond(values: Int64s, low: Int64s, high: Int64s, limit: Int64s) -> Int64s:
    """First position of each `[low, high)` whose value exceeds the limit, or `high`. The `values`
    of a range ascend.
    """
    low, high = low.copy(), high.copy()
    while (rest := np.flatnonzero(low < high)).size:
        middle = (low[rest] + high[rest]) // 2
        is_beyond = values[middle] > limit[rest]
        high[rest[is_beyond]] = middle[is_beyond]
        low[rest[~is_beyond]] = middle[~is_beyond] + 1
    return low
