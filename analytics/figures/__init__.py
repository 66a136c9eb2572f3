"""Figures of metrics, from Arrow tables: no Spark, no window, no global state.

Every function gives a matplotlib Figure; `save` writes it so that the same figure is the
same SVG or PDF, byte by byte. `canvas` has what all of them share.
"""

from analytics.figures.canvas import FORMATS, PALETTE, save
from analytics.figures.messages import coverage
from analytics.figures.overlay import ROLE_COLOURS, overlay_snapshot
from analytics.figures.values import distribution, series

__all__ = [
    "FORMATS",
    "PALETTE",
    "ROLE_COLOURS",
    "coverage",
    "distribution",
    "overlay_snapshot",
    "save",
    "series",
]
