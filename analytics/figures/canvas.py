"""Shared by all figures: style, colours, panels, and the format of values and names.

The colours by Okabe and Ito suit colour-blind readers (jfly.uni-koeln.de/color, 2008).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.columns import Column
from vizpub.model.errors import UseError
from vizpub.model.metrics import METRICS
from vizpub.model.tables import RECEPTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

NOTHING_TO_PLOT = "there is nothing to plot"
NO_FORMAT = "is not a format for figures"

FORMATS = ("png", "svg", "pdf")
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#7F8C8D"
PANEL_HEIGHT = 2.2
_WIDTH = 7.0
_TITLE = 80
"""Characters that fit into a title."""
_DRAWN = {ord("$"): r"\$", 0xFEFF: None}
"""Escapes: matplotlib reads $ as mathematics, and cannot write U+FEFF to a PDF."""
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "vizpub",
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
}


def save(figure: Figure, out: Path | IO[bytes], form: str) -> None:
    """Write the figure as `png`, `svg` or `pdf`, without dates. Raises: UseError."""
    if form not in FORMATS:
        raise UseError(f"'{form}' {NO_FORMAT}; use {', '.join(FORMATS)}")
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with figure_style(), without_glyph_warnings():
        figure.savefig(out, format=form, metadata=undated[form])


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Draw characters that the font lacks as boxes, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


@contextmanager
def figure_style() -> Iterator[None]:
    """Use our style in the block; matplotlib's global style is not changed."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        yield


def panels(count: int, title: str, height: float = PANEL_HEIGHT) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels below one another, each `height` inches high."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, max(height * count, 3.0)))
    if title:
        figure.suptitle(shorten(title, _TITLE))
    return figure, list(figure.subplots(count, 1, squeeze=False)[:, 0])


def colours() -> Iterator[str]:
    """The palette, repeated without end."""
    while True:
        yield from PALETTE


def shades_of(count: int) -> list[Any]:
    """`count` colours: the palette, or steps of a scale if there are more."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0, 0.9, count)))


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


def shorten(name: str, width: int = 24) -> str:
    """A name cut in its middle to at most `width` characters, as `plain` text."""
    return escape(truncate(name, width))


def truncate(name: str, width: int = 24) -> str:
    """A name cut in its middle to at most `width` characters."""
    return name if len(name) <= width else f"{name[:8]}…{name[9 - width :]}"


def escape(text: str) -> str:
    """The text, escaped so that matplotlib draws it unchanged."""
    hidden = " " if text.startswith("_") else ""  # legends skip names that begin with _
    return hidden + text.translate(_DRAWN)


def require_data(data: Any) -> None:
    """Raises: UseError if it is empty or 0."""
    if not data:
        raise UseError(NOTHING_TO_PLOT)


def values_and_label(table: pa.Table, name: str) -> tuple[np.ndarray, str]:
    """The values of a column as doubles (null = NaN), and its name with the unit."""
    values, unit = numbers(table[name]), _unit(table, name)
    if unit == "µs":
        return values / 1000, f"{name.replace('_us', '')} (ms)"
    return values, f"{name} ({unit})" if unit else name


def _unit(table: pa.Table, name: str) -> str:
    metadata = table.schema.field(name).metadata or {}  # of own metrics
    if b"unit" in metadata:
        return str(metadata[b"unit"].decode())
    columns: Iterable[Column] = (c for t in (*METRICS, RECEPTIONS) for c in t if c.name == name)
    return next((column.unit for column in columns), "µs" if name.endswith("_us") else "")


def is_whole(table: pa.Table, name: str) -> bool:
    """Return True if the values are drawn as whole numbers (µs are drawn as ms)."""
    return pa.types.is_integer(table.schema.field(name).type) and _unit(table, name) != "µs"
