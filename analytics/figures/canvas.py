"""Shared by all figures: writing them, panels, and values."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.figures.labels import escape
from vizpub.analytics.figures.styles import current_options, figure_style
from vizpub.model.errors import UseError
from vizpub.model.wording import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

NOTHING_TO_PLOT = "there is nothing to plot"
NO_FORMAT = "is not a format for figures"
TOO_SMALL = "the figure has no room for its axes in"

FORMATS = ("png", "svg", "pdf")
PANEL_HEIGHT = 2.2


def save(figure: Figure, out: Path | IO[bytes], form: str) -> None:
    """Write the figure as `png`, `svg` or `pdf`, without dates. Raises: UseError."""
    if form not in FORMATS:
        raise UseError(f"'{form}' {NO_FORMAT}; use {', '.join(FORMATS)}")
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with figure_style(), without_glyph_warnings(), warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied")
        try:
            figure.savefig(out, format=form, metadata=undated[form])
        except UserWarning:
            size = "{:.3g} × {:.3g} in".format(*figure.get_size_inches())
            raise UseError(f"{TOO_SMALL} {size}; give a larger --size") from None


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Draw characters that the font lacks as boxes, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def panels(
    count: int, title: str, height: float = PANEL_HEIGHT, *, square: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels below one another, each `height` inches high at the standard
    width. The panels of a narrow figure are lower, those of a square picture in proportion.
    """
    figure = new_figure(max(height * count, 3.0), title, square=square)
    return figure, list(figure.subplots(count, 1, squeeze=False)[:, 0])


def panel_grid(figure: Figure, count: int, abreast: int) -> list[Axes]:
    """Panels of a figure in rows of `abreast`; the rest of the last row stays empty."""
    grid = list(figure.subplots(math.ceil(count / abreast), abreast, squeeze=False).flat)
    for panel in grid[count:]:
        panel.set_axis_off()
    return grid[:count]


def new_figure(height: float, title: str, *, square: bool = False) -> Figure:
    """An empty figure with a title, `height` inches high at the standard width."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    options = current_options()
    shrunk = height * (options.scale if square else min(options.scale, 1.0) ** 0.5)
    figure = Figure(figsize=(options.inches, options.height or shrunk))
    text = title if options.title is None else options.title
    if text:
        characters = max(int(72 * options.inches / (0.6 * 1.2 * rcParams["font.size"])), 12)
        figure.suptitle(escape(textwrap.fill(shorten(text, 3 * characters), characters)))
    return figure


def add_height(figure: Figure, inches: float) -> None:
    """Make a figure higher, unless its height was chosen."""
    if current_options().height is None:
        figure.set_figheight(figure.get_figheight() + inches)


def split_by(table: pa.Table, by: str | None) -> list[tuple[str, pa.Table]]:
    """The rows of each value of column `by`, in order of appearance; null = all rows, named ''.

    Whole numbers are named with their column: `interval 12`.
    """
    if by is None:
        return [("", table)]
    values = pc.unique(table[by])
    prefix = f"{by} " if pa.types.is_integer(values.type) else ""
    return [(f"{prefix}{value}", table.filter(pc.field(by) == value)) for value in values]


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """The values of a column as doubles; null = NaN."""
    values: np.ndarray = column.cast(pa.float64()).fill_null(math.nan).to_numpy()
    return values


def use_whole_ticks(axis: Axis) -> None:
    """Put ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def limit_share(panel: Axes, unit: str) -> None:
    """Limit the axis of a share to 0 and 1; Student's intervals may exceed them."""
    if unit == "share":
        low, high = panel.get_ylim()
        panel.set_ylim(max(low, -0.03), min(high, 1.03))


def isolated_points(values: np.ndarray) -> np.ndarray:
    """Positions of values between two unknown ones, which no line connects."""
    is_known = np.pad(~np.isnan(values), 1)
    return np.flatnonzero(is_known[1:-1] & ~is_known[:-2] & ~is_known[2:])


def mark_if_unknown(panel: Axes, values: np.ndarray) -> None:
    """Write 'unknown' into the panel if no value is known."""
    if not len(values) or np.isnan(values).all():
        panel.set_yticks([])
        panel.text(0.5, 0.5, "unknown", transform=panel.transAxes, ha="center", va="center")


def require_data(data: Any) -> None:
    """Raises: UseError if it is empty or 0."""
    if not data:
        raise UseError(NOTHING_TO_PLOT)
