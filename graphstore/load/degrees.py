"""The degrees of peers over a run, and the labels for them; with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vizpub.graphstore.load.batches import Batch, sampled_spans
from vizpub.model.clock import Clock

Ints = np.ndarray[Any, np.dtype[np.int64]]

DEGREE_CLASSES = {low: f"Degree{low}" for low in (0, 1, 2, 4, 8, 16, 32, 64)}
"""Labels of peers by the lowest mean degree of the class."""


def hub_peers(degrees: Ints) -> list[int]:
    """Return the top 1 % of the peers by `summed_degrees`, at least one; none without links."""
    ranked: list[int] = np.argsort(-degrees, kind="stable")[: np.count_nonzero(degrees)].tolist()
    return ranked[: max(1, len(degrees) // 100)]


def degree_classes(degrees: Ints, intervals: int) -> dict[str, list[int]]:
    """Return the peers of each class of mean degree over the run; no classes without links.

    `degrees` are `summed_degrees`. Classes are powers of two, so that they mean the same in
    every run: DEGREE_CLASSES[8] has the means from 8 to below 16, the last one all from 64 on.
    """
    if not degrees.any():
        return {}
    lowest = np.array(list(DEGREE_CLASSES))
    classes = lowest[np.searchsorted(lowest, degrees // intervals, side="right") - 1]
    return {label: np.flatnonzero(classes == low).tolist() for low, label in DEGREE_CLASSES.items()}


def summed_degrees(batches: Sequence[Batch], peers: int, clock: Clock) -> Ints:
    """Sum the degree of each peer, by its dense index, over the run's intervals.

    The degree of an interval is the number of distinct peers linked either way.
    """
    if not batches:
        return np.zeros(peers, np.int64)
    links = pa.Table.from_batches(batches)
    src, dst = (links[name].to_numpy().astype(np.int64) for name in ("src", "dst"))
    first, last = sampled_spans(links["valid_from"].to_numpy(), links["valid_to"].to_numpy(), clock)
    sampled = first <= last
    low, high = np.minimum(src, dst)[sampled], np.maximum(src, dst)[sampled]
    low, high, intervals = _covered_intervals(low, high, first[sampled], last[sampled])
    ends = np.concatenate((low, high))
    # Sums of whole numbers, exact in doubles.
    return np.bincount(ends, np.tile(intervals, 2), peers).astype(np.int64)


def _covered_intervals(low: Ints, high: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """Return distinct pairs, and the intervals in which any period of each pair holds."""
    order = np.lexsort((first, high, low))
    low, high, first, last = low[order], high[order], first[order], last[order]
    new = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))[: len(low)]
    # A pair's periods stand one after the other, each pair on a stretch of its own,
    # so that one running maximum shows how far the earlier periods reach.
    stretch = (np.cumsum(new) - 1) * (int(last.max(initial=0)) + 2)
    reach = np.maximum.accumulate(stretch + last + 1)
    previous_reach = np.append(0, reach[:-1])[: len(low)]
    added = np.maximum(0, stretch + last + 1 - np.maximum(previous_reach, stretch + first))
    starts = np.flatnonzero(new)
    return low[starts], high[starts], np.add.reduceat(added, starts) if len(starts) else added
