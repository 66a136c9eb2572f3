"""What layouts and runs of channels take.

The constants are of one core of a server of 2026, fitted to runs of 91 to 99,991 clients, 100 to
100,000 pages, and 2,000 to 5 million updates; estimates are within a factor of about 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.engine.costs import Costs

SEARCH_RUNS = 15
"""Runs of a bisection: 7 to 22."""
_PLACE_S, _PLACE_BYTES = 2e-7, 24
"""Of a client and page of a layout."""
_SIMILAR_S = 2e-8
"""Of two clients that the assignment lc compares."""
_COVER_S = 3e-6
"""Of a page, a client and a channel in the search for a least cover."""
_UPDATE_S, _UPDATE_BYTES = 5e-7, 50
_STATIC_S, _FLY_S = 8e-10, 3e-9
"""Of a client for an update, with a static mapping and one that is made on the fly."""


def channel_costs(layouts: Sequence[ChannelLayout], updates: int, runs: int) -> Costs:
    """Estimate the costs of so many runs of each layout, one layout after the other."""
    memory = max(one.clients * one.database.pages for one in layouts) * _PLACE_BYTES
    seconds = sum(_layout_seconds(one) + runs * updates * _update_seconds(one) for one in layouts)
    return Costs(seconds, memory + (updates * _UPDATE_BYTES if runs else 0))


def _layout_seconds(layout: ChannelLayout) -> float:
    places, parameters = layout.clients * layout.database.pages, layout.parameters
    seconds = places * _PLACE_S
    if parameters.assignment == "lc":
        seconds += layout.clients**2 * _SIMILAR_S
    if parameters.mapping == "perfect-c":
        seconds += places * parameters.channels * _COVER_S
    return seconds


def _update_seconds(layout: ChannelLayout) -> float:
    return _UPDATE_S + layout.clients * (_STATIC_S if layout.parameters.is_static else _FLY_S)
