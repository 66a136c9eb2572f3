"""The share of peers that messages reach: a line for each, and quantiles of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.arrays import Floats

STEPS = 500
"""Times at which the quantiles of many lines are taken."""

Line = tuple[Floats, Floats]
"""Times (or hops) since the publication, ascending from 0, and the share reached from then on."""


def lines_of(table: pa.Table, along: str = "delay_us") -> Iterator[tuple[str, Line]]:
    """Yield the name and the line of each message, of a table with `message_name`, `share` and this
    column, in which the rows of a message are next to each other and in order.
    """
    if not len(table):
        return
    names = table["message_name"].combine_chunks()
    at, share = (
        table[column].to_numpy().astype(np.float64, copy=False) for column in (along, "share")
    )
    starts = np.flatnonzero(np.append(True, pc.not_equal(names[1:], names[:-1]).to_numpy(False)))
    for first, end in pairwise([*starts.tolist(), len(names)]):
        yield names[first].as_py(), (at[first:end], share[first:end])


def shares_at(times: Floats, line: Line) -> Floats:
    """Return the share reached at each time, and before a line's first time that of it."""
    at, share = line
    shares: Floats = share[np.maximum(np.searchsorted(at, times, side="right") - 1, 0)]
    return shares


def end_of(lines: Sequence[Line]) -> float:
    """Return the time of the last step of the lines."""
    return float(max(at[-1] for at, _ in lines))


def quantiles(
    lines: Sequence[Line], shares: Sequence[float], end: float | None = None
) -> tuple[Floats, Floats]:
    """Return STEPS times up to `end` (null = that of the lines), and the quantiles of the lines at
    these; a row for each of the `shares`.
    """
    times = np.linspace(0, end_of(lines) if end is None else end, STEPS)
    rows = np.array([shares_at(times, line) for line in lines])
    edges: Floats = np.quantile(rows, shares, axis=0)
    return times, edges
