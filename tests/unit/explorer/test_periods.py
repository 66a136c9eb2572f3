"""Periods of many things, against sets of the times at which each holds."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from vizpub.explorer.periods import (
    RankedPeriods,
    common,
    distinct,
    intersect,
    join_periods,
    ranks,
    subtract,
    unite,
)
from vizpub.model.clock import OPEN

_SIZE, _END = 12, 60
Times = dict[int, set[int]]


def drawn(seed: int, count: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    begin = rng.integers(0, _END - 1, count)
    return rng.integers(0, _SIZE, count), begin, begin + rng.integers(1, 5, count)


def held(key: np.ndarray, begin: np.ndarray, end: np.ndarray) -> Times:
    """The ranks at which each key holds."""
    found: Times = defaultdict(set)
    for of, first, last in zip(key.tolist(), begin.tolist(), end.tolist(), strict=True):
        found[of] |= set(range(first, last))
    return dict(found)


def holding(periods: RankedPeriods) -> Times:
    return held(periods.key, periods.begin, periods.end)


@pytest.mark.parametrize("seed", range(5))
def test_joined_periods_hold_when_any_did_and_do_not_touch(seed: int) -> None:
    found = join_periods(*drawn(seed))
    assert holding(found) == held(*drawn(seed))
    same = found.key[1:] == found.key[:-1]
    assert (np.diff(found.key) >= 0).all()
    assert (found.begin[1:] > found.end[:-1])[same].all()


@pytest.mark.parametrize("seed", range(5))
def test_common_parts_are_those_of_both(seed: int) -> None:
    one, peers = join_periods(*drawn(seed, 60)), join_periods(*drawn(seed + 50, 40))
    peer = (one.key * 5) % _SIZE
    place, found = common(one, peers, peer)
    assert (np.diff(place) >= 0).all()
    of_peer = holding(peers)
    expected = {
        key: times & of_peer.get(key * 5 % _SIZE, set()) for key, times in holding(one).items()
    }
    assert holding(found) == {key: times for key, times in expected.items() if times}


def test_united_and_shared_are_or_and_and() -> None:
    parts = [join_periods(*drawn(seed, 80)) for seed in (1, 2, 3)]
    each = [holding(part) for part in parts]
    any_of = {k: set.union(*(t.get(k, set()) for t in each)) for k in range(_SIZE)}
    all_of = {k: set.intersection(*(t.get(k, set()) for t in each)) for k in range(_SIZE)}
    assert holding(unite(parts)) == {k: t for k, t in any_of.items() if t}
    assert holding(intersect(parts)) == {k: t for k, t in all_of.items() if t}


@pytest.mark.parametrize("seed", range(5))
def test_difference_holds_where_only_the_first_does(seed: int) -> None:
    one, other = join_periods(*drawn(seed, 60)), join_periods(*drawn(seed + 50, 60))
    rest, taken = subtract(one, other), holding(other)
    expected = {key: times - taken.get(key, set()) for key, times in holding(one).items()}
    assert holding(rest) == {key: times for key, times in expected.items() if times}
    assert (np.diff(rest.key) >= 0).all()


def test_empty_input_gives_no_periods() -> None:
    none = np.empty(0, np.int64)
    assert len(join_periods(none, none, none)) == 0
    assert len(unite([])) == 0
    some = join_periods(*drawn(1))
    assert len(subtract(unite([]), some)) == 0
    assert holding(subtract(some, unite([]))) == holding(some)


def test_ranks_tell_a_microsecond_after_an_hour() -> None:
    """Where numbers of 24 bits do not."""
    hour = 3_600_000_000
    ticks = np.array([0, hour, hour + 1, OPEN])
    times = distinct(ticks)
    begin, end = ranks(times, ticks[1:2])[0], ranks(times, ticks[2:3])[0]
    # The page compares with the place of the last begin or end up to a tick.
    places = times.searchsorted([hour - 1, hour, hour + 1], side="right") - 1
    assert [begin <= place < end for place in places] == [False, True, False]
    assert ranks(times, ticks[3:])[0] == times.size
