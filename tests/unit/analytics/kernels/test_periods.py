"""Spans in order and who is alive, for small numbers and for those no single key holds."""

from __future__ import annotations

import numpy as np
import pytest

from vizpub.analytics.kernels.periods import clipped_periods

WINDOW = range(2, 12)


@pytest.mark.parametrize("scale", [1, 2**27])
def test_clipped_periods_are_ordered_unique_and_alive_when_due(scale: int) -> None:
    rng = np.random.default_rng(1)
    pairs = scale * rng.integers(0, 16, (2, 300))
    start = rng.integers(-2, 14, 300)
    stop = start + rng.integers(0, 5, 300)
    spans = clipped_periods((pairs[0], pairs[1]), (start, stop), WINDOW)

    rows = list(zip(*(x.tolist() for x in (spans.a, spans.b, spans.start)), strict=True))
    assert rows == sorted(set(rows))
    for interval, alive in zip(WINDOW, spans.alive(WINDOW), strict=True):
        there = (start <= interval) & (interval < stop)
        expected = sorted(set(zip(*(end[there].tolist() for end in pairs), strict=True)))
        assert list(zip(spans.a[alive].tolist(), spans.b[alive].tolist(), strict=True)) == expected
