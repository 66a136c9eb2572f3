"""Positions of a run's peers, kept in the user's cache from one look at the run to the next."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from vizpub.analytics import layouts
from vizpub.explorer.history import History, OverlayPart
from vizpub.explorer.periods import join_periods
from vizpub.machine.jvm.artifacts import cache_path
from vizpub.model.arrays import Floats, Int32s
from vizpub.model.errors import UnknownName

_MOST = 64
"""Layouts in the cache at most; those that were not used for longest go first."""


def places(history: History, layout: str) -> Floats:
    """The positions of the run's peers within the unit circle; shape (peers, 2).

    Raises: UnknownName for another layout; by force, UseError where links are unknown.
    """
    if layout not in layouts.LAYOUT_NAMES:
        raise UnknownName("layout", layout, layouts.LAYOUT_NAMES)
    if layout == "circle":
        return layouts.circle_layout(history.size)
    run = history.run
    key = f"{run.facts.tables}\n{layout}\n{layouts.VERSION}"
    if run.clock != run.facts.clock:
        key += f"\n{run.clock.first} to {run.clock.last}"
    file = cache_path() / "layouts" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npy"
    if (cached := _read_cached(file, history.size)) is not None:
        return cached
    from vizpub.analytics.layouts.force import force_layout

    run.facts.check_known("links")
    return _cache(file, force_layout(history.size, *weighted_pairs(history)))


def weighted_pairs(history: History) -> tuple[Int32s, Int32s, Floats]:
    """The pairs of peers with a link at any time, in either direction: `src` < `dst`, and the share
    of the run's time in which there is one.
    """
    pairs, size = history.pairs(OverlayPart()), max(history.size, 1)
    low, high = np.minimum(pairs.src, pairs.dst), np.maximum(pairs.src, pairs.dst)
    either = join_periods(low.astype(np.int64) * size + high, pairs.begin, pairs.end)
    clock = history.run.clock
    first = clock.first * clock.ticks_per_interval
    last = clock.sampling_tick(clock.last) + 1
    ticks = np.append(np.clip(history.times, first, last), last)
    lasting: Floats = (ticks[either.end] - ticks[either.begin]) / (last - first)
    key, of = np.unique(either.key, return_inverse=True)
    share: Floats = np.bincount(of, lasting, key.size).astype(np.float64)
    some = share > 0
    key = key[some]
    return (key // size).astype(np.int32), (key % size).astype(np.int32), share[some]


def _read_cached(file: Path, count: int) -> Floats | None:
    """The positions in the cache; null where there are none, or something else."""
    try:
        positions: Floats = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if positions.shape != (count, 2) or positions.dtype != np.float64:
        return None
    with suppress(OSError):
        os.utime(file)
    return positions


def _cache(file: Path, positions: Floats) -> Floats:
    """Write positions into the cache, if that can be done, and return them."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=file.parent, suffix=".new", delete=False) as new:
            np.save(new, positions, allow_pickle=False)
        Path(new.name).replace(file)
        cached = file.parent.glob("*.npy")
        newest_first = sorted(cached, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in newest_first[_MOST:]:
            path.unlink(missing_ok=True)
    return positions
