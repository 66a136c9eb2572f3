"""Figures of metrics, from Arrow tables: no Spark, no window, no global state.

In: Arrow tables. Out: matplotlib Figures. `save` writes a figure; the same figure gives the same
SVG or PDF, byte by byte. `styles` has their style, size and colours.
"""

from vizpub.analytics.figures.canvas import FORMATS, save
from vizpub.analytics.figures.distributions import density, distribution
from vizpub.analytics.figures.films import FILM_FORMATS, Film, write_film
from vizpub.analytics.figures.messages import coverage
from vizpub.analytics.figures.overlay import (
    MOST_BY_FORCE,
    OVERLAY_LAYOUTS,
    ROLE_COLOURS,
    overlay_snapshot,
    overlay_snapshots,
)
from vizpub.analytics.figures.series import series
from vizpub.analytics.figures.styles import (
    PALETTE,
    FigureOptions,
    colours_of,
    figure_style,
    relabel,
)
from vizpub.analytics.figures.survival import survival
from vizpub.analytics.figures.tree import LAYOUTS, dissemination_tree

__all__ = [
    "FILM_FORMATS",
    "FORMATS",
    "LAYOUTS",
    "MOST_BY_FORCE",
    "OVERLAY_LAYOUTS",
    "PALETTE",
    "ROLE_COLOURS",
    "FigureOptions",
    "Film",
    "colours_of",
    "coverage",
    "density",
    "dissemination_tree",
    "distribution",
    "figure_style",
    "overlay_snapshot",
    "overlay_snapshots",
    "relabel",
    "save",
    "series",
    "survival",
    "write_film",
]
