"""A random overlay that changes a little from interval to interval, and its versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.sizes import Size
from vizpub.model.arrays import Int32s, Int64s
from vizpub.model.clock import OPEN

_STREAM = 0
"""The overlay's stream among the random streams of the seed."""


ROWS = pa.schema([(name, pa.int32()) for name in ("interval", "src", "dst")])


class Step(NamedTuple):
    """An interval, and the links that end with it."""

    interval: int
    targets: Int32s
    """[peers, links]: the peers that each peer links to, all different and none itself."""
    ended: pa.Table
    """src, dst, valid_from, valid_to of the links that are gone in the next interval; in the last
    interval all links, which stay open."""


def history(size: Size) -> Iterator[Step]:
    """The overlay in every interval. A replaced link does not come back at once, so the validity
    period of a link in its place is maximal."""
    rng = np.random.default_rng([size.seed, _STREAM])
    targets = np.full((size.peers, size.links), -1, np.int32)
    every = np.arange(targets.size)
    targets, since = _with_new(targets, every, rng), np.zeros(targets.size, np.int64)
    for interval in range(size.intervals - 1):
        places = np.sort(rng.choice(every, round(every.size * size.churn), replace=False))
        yield Step(interval, targets, _ending(targets, since, places, interval + 1))
        targets = _with_new(targets, places, rng)
        since[places] = interval + 1
    yield Step(size.intervals - 1, targets, _ending(targets, since, every, OPEN))


def _with_new(targets: Int32s, places: Int64s, rng: np.random.Generator) -> Int32s:
    """The targets with new ones in those places (flat, ascending), to which the peer has no link
    yet."""
    peers, links = targets.shape
    fresh = targets.copy()
    while places.size:
        rows = places // links
        drawn = rng.integers(peers, size=places.size, dtype=np.int32)
        is_taken = (targets[rows] == drawn[:, None]) | (fresh[rows] == drawn[:, None])
        free = ~is_taken.any(axis=1) & (drawn != rows)
        # Of places of one peer that drew the same, the first has it.
        _, first = np.unique(rows * peers + drawn, return_index=True)
        alone = np.zeros(places.size, bool)
        alone[first] = True
        fresh.flat[places[free & alone]] = drawn[free & alone]
        places = places[~(free & alone)]
    return fresh


def _ending(targets: Int32s, since: Int64s, places: Int64s, end: int) -> pa.Table:
    """src, dst, valid_from, valid_to of the links in those places."""
    return pa.table(
        {
            "src": pa.array(places // targets.shape[1], pa.int32()),
            "dst": pa.array(targets.flat[places], pa.int32()),
            "valid_from": pa.array(since[places], pa.int64()),
            "valid_to": pa.array(np.full(places.size, end), pa.int64()),
        }
    )


def rows(step: Step) -> pa.Table:
    """interval, src, dst of every link of the interval, in this order."""
    peers, links = step.targets.shape
    return pa.table(
        {
            "interval": np.full(peers * links, step.interval, np.int32),
            "src": np.repeat(np.arange(peers, dtype=np.int32), links),
            "dst": np.sort(step.targets, axis=1).ravel(),
        },
        schema=ROWS,
    )
