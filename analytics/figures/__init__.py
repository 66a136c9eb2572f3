"""Figures of metrics, from Arrow tables: no Spark, no window, no global state.

In: Arrow tables. Out: matplotlib Figures. `save` writes a figure; the same figure gives the same
SVG or PDF, byte by byte. `canvas` has the style that all figures share.
"""

from vizpub.analytics.figures.canvas import FORMATS, PALETTE, save
from vizpub.analytics.figures.distributions import density, distribution
from vizpub.analytics.figures.films import FILM_FORMATS, Film, write_film
from vizpub.analytics.figures.messages import coverage
from vizpub.analytics.figures.overlay import (
    MOST_BY_FORCE,
    OVERLAY_LAYOUTS,
    ROLE_COLOURS,
    overlay_snapshot,
)
from vizpub.analytics.figures.series import series
from vizpub.analytics.figures.tree import LAYOUTS, dissemination_tree

__all__ = [
    "FILM_FORMATS",
    "FORMATS",
    "LAYOUTS",
    "MOST_BY_FORCE",
    "OVERLAY_LAYOUTS",
    "PALETTE",
    "ROLE_COLOURS",
    "Film",
    "coverage",
    "density",
    "dissemination_tree",
    "distribution",
    "overlay_snapshot",
    "save",
    "series",
    "write_film",
]
