"""Subscriptions at a given tick, and intervals in which peers do not report receptions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vizpub.analytics.messages.hops import LARGEST, Flags, first_and_second, pairs
from vizpub.model.arrays import Int64s


class Interest:
    """Subscriptions; those of a peer and topic do not overlap. O(subscriptions) memory."""

    def __init__(self, topic: Int64s, peer: Int64s, valid_from: Int64s, valid_to: Int64s) -> None:
        order = np.lexsort((valid_from, peer, topic))
        self._pairs = pairs(topic, peer)[order]
        self._begins, self._ends = valid_from[order], valid_to[order]
        self._topics = np.sort(topic)
        self._all_begins = valid_from[np.lexsort((valid_from, topic))]
        self._all_ends = valid_to[np.lexsort((valid_to, topic))]

    def is_subscribed(self, topic: Int64s, peer: Int64s, tick: Int64s) -> Flags:
        """Flag each peer that subscribes to that topic at that tick; false where one is -1."""
        low, high = _ranges_of(self._pairs, pairs(topic, peer))
        last = _beyond(self._begins, low, high, tick) - 1
        holds = last >= low
        holds[holds] = tick[holds] < self._ends[last[holds]]
        return holds & (topic >= 0)

    def is_changing(self, topic: Int64s, peer: Int64s, tick: Int64s) -> Flags:
        """Flag each peer whose subscription to that topic begins or ends at that tick."""
        low, high = _ranges_of(self._pairs, pairs(topic, peer))
        last = _beyond(self._begins, low, high, tick) - 1
        changes = last >= low
        begin, end = self._begins[last[changes]], self._ends[last[changes]]
        changes[changes] = (begin == tick[changes]) | (end == tick[changes])
        return changes & (topic >= 0)

    def count_subscribers(self, topic: Int64s, tick: Int64s) -> Int64s:
        """Number of subscribers of each topic at that tick, without listing them."""
        low, high = _ranges_of(self._topics, topic)
        begin_counts = _beyond(self._all_begins, low, high, tick)
        return begin_counts - _beyond(self._all_ends, low, high, tick)

    def subscribers(
        self, topic: Int64s, tick: Int64s, at_once: int
    ) -> Iterator[tuple[Int64s, Int64s]]:
        """The subscribers of each of the topics at that tick: (positions in `topic`, peers), in
        parts of about `at_once` subscriptions, or all those of one topic.
        """
        for position, row in _spread(*_ranges_of_first(self._pairs, topic), at_once):
            is_valid = (self._begins[row] <= tick[position]) & (tick[position] < self._ends[row])
            yield position[is_valid], first_and_second(self._pairs[row[is_valid]])[1]


class Silence:
    """Peers and intervals whose receptions are not reported."""

    def __init__(self, interval: Int64s, peer: Int64s) -> None:
        self._pairs = np.unique(pairs(interval, peer))

    def is_silent(self, interval: Int64s, peer: Int64s) -> Flags:
        """Flag each peer whose receptions in that interval are unknown."""
        low, high = _ranges_of(self._pairs, pairs(interval, peer))
        return high > low

    def silent_peers(self, interval: Int64s, at_once: int) -> Iterator[tuple[Int64s, Int64s]]:
        """The silent peers of each of the intervals: (positions in `interval`, peers), in parts of
        about `at_once` pairs, or all those of one interval.
        """
        for position, row in _spread(*_ranges_of_first(self._pairs, interval), at_once):
            yield position, first_and_second(self._pairs[row])[1]


def _ranges_of_first(sorted_pairs: Int64s, firsts: Int64s) -> tuple[Int64s, Int64s]:
    """Positions `[low, high)` of the pairs with each of the wanted first numbers."""
    least, most = (pairs(firsts, np.full_like(firsts, second)) for second in (0, LARGEST))
    return np.searchsorted(sorted_pairs, least), np.searchsorted(sorted_pairs, most, "right")


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


def _ranges_of(sorted_pairs: Int64s, pairs_: Int64s) -> tuple[Int64s, Int64s]:
    """Positions `[low, high)` of each of the wanted numbers."""
    return np.searchsorted(sorted_pairs, pairs_), np.searchsorted(sorted_pairs, pairs_, "right")


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
