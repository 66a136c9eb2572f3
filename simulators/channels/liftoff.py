"""Where the channels overload: from the mapping (AnalyzeMapping), and by running it (UTAL)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vizpub.model.errors import UseError
from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.running import ChannelMeasurement, run

ON_THE_FLY = "chooses channels for every update"

THRESHOLD = 0.005
"""Copies that are left over, per time of one transmission, beyond which channels are overloaded."""
PRECISION = 0.002
"""Relative, of the gap."""


@dataclass(frozen=True)
class ChannelLoad:
    """What a static mapping puts on a channel."""

    channel: int
    pages: int
    """Wanted pages that it carries."""
    total_p: float
    """Their summed probability."""
    breaking_gap_us: float
    """Mean gap of updates at which it has no idle time left: below that it breaks."""


def analyze_mapping(layout: ChannelLayout) -> list[ChannelLoad]:
    """The channels of a static mapping (Mapper::AnalyzeMapping).

    Raises: UseError for a mapping that is made on the fly.
    """
    if layout.static_mapping is None:
        raise UseError(
            f"mapping '{layout.parameters.mapping}' {ON_THE_FLY}, so no "
            "channel has pages of its own: use offline-c, perfect-c or file:FILE"
        )
    wanted = np.asarray(layout.wants.any(axis=0))
    carried = layout.static_mapping & wanted[:, None]
    total = layout.probability @ carried
    busy = (layout.probability * layout.transmission) @ carried
    pages = carried.sum(axis=0)
    return [
        ChannelLoad(channel, int(pages[channel]), float(total[channel]), float(busy[channel]))
        for channel in range(layout.parameters.channels)
    ]


@dataclass(frozen=True)
class Liftoff:
    """The update time at liftoff (UTAL). Times are µs."""

    gap_us: float | None
    """Mean gap of updates at which the channels begin to be overloaded, at most `PRECISION` too
    large; null = they never are."""
    predicted_us: float | None
    """From the mapping; null where it is made on the fly."""
    at: ChannelMeasurement | None
    """The run at `gap_us`."""


def overload(measured: ChannelMeasurement) -> float:
    """Copies that are left over, per time of a transmission (GDFR in that unit)."""
    layout = measured.layout
    each = float(layout.probability @ layout.transmission / layout.probability.sum())
    return (measured.gdfr or 0.0) * each / 1e6


def liftoff(layout: ChannelLayout, updates: int, threshold: float = THRESHOLD) -> Liftoff:
    """Search the gap at which the overload passes the threshold, by bisection: updates of the same
    pages in the same order come ever closer.
    """
    predicted = None
    if layout.static_mapping is not None:
        predicted = max(channel.breaking_gap_us for channel in analyze_mapping(layout))
    # One channel that carried everything would be full at the second gap.
    full = (layout.probability * layout.transmission) @ layout.wants.any(axis=0)
    calm, step = (1.02 * predicted, 1.04) if predicted else (float(full), 2.0)
    if not calm:
        return Liftoff(None, predicted, None)
    busy, at = calm, _run(layout, updates, calm)
    while overload(at) > threshold:
        busy, calm = calm, calm * step
        at = _run(layout, updates, calm)
    while busy == calm or overload(_run(layout, updates, busy)) <= threshold:
        busy, step = busy / step, step**1.5
        if busy < 1:
            return Liftoff(None, predicted, None)
    while calm > busy * (1 + PRECISION):
        middle = float(np.sqrt(calm * busy))
        measured = _run(layout, updates, middle)
        if overload(measured) > threshold:
            busy = middle
        else:
            calm, at = middle, measured
    return Liftoff(calm, predicted, at)


def curve(
    layout: ChannelLayout, gaps_us: Sequence[float], updates: int
) -> list[ChannelMeasurement]:
    """Runs of the same updates at each of the gaps, for GDFR over the update rate."""
    return [_run(layout, updates, gap) for gap in gaps_us]


def _run(layout: ChannelLayout, updates: int, gap: float) -> ChannelMeasurement:
    return run(layout, layout.draw_updates(updates, gap))
