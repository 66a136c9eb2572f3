"""Metrics over the intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vizpub.analytics.figures.canvas import (
    PANEL_HEIGHT,
    isolated_points,
    mark_if_unknown,
    numbers,
    panels,
    require_data,
    split_by,
    use_whole_ticks,
)
from vizpub.analytics.figures.labels import is_whole, shorten, values_and_label, wrap
from vizpub.analytics.figures.styles import colours, figure_style, shades_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)))
"""Lines of runs, so that those that coincide are all visible."""
_MARKED = 60
"""Up to this many points have a mark, so that a point between two unknown ones is visible."""


def series(
    table: pa.Table,
    columns: Sequence[str],
    title: str = "",
    *,
    by: str | None = None,
    chosen: Mapping[str, str] | None = None,
) -> Figure:
    """Metrics over the intervals: a panel for each column of `table` (with `interval`).

    `by` is a column with a line for each value, in its `chosen` colour ('' = of all rows).
    A null leaves a gap.

    Raises: UseError if there is no row or no column.
    """
    require_data(table.num_rows and columns)
    lines = split_by(table, by)
    with figure_style():
        figure, rows = panels(len(columns), title)
        height = min(figure.get_figheight() / len(columns), PANEL_HEIGHT)
        for panel, column, colour in zip(rows, columns, colours(), strict=False):
            values, label = values_and_label(table, column)
            panel.set_ylabel(wrap(label, height))
            shades = [colour] if by is None else shades_of(len(lines))
            for (name, part), shade, dashes in zip(lines, shades, cycle(_DASHES), strict=False):
                style = {"color": (chosen or {}).get(name, shade), "label": shorten(name)}
                style |= {"ls": dashes} if chosen else {}
                _draw_line(panel, part, column, style)
            if is_whole(table, column):
                use_whole_ticks(panel.yaxis)
            mark_if_unknown(panel, values)
        figure.align_ylabels(rows)
        rows[-1].set_xlabel("interval")
        for panel in rows[:-1]:
            panel.sharex(rows[-1])
            panel.tick_params(labelbottom=False)
        # Show the whole range of x, even where values are unknown.
        x = numbers(table["interval"])
        margin = 0.05 * float(np.ptp(x)) or 0.5
        rows[-1].set_xlim(x.min() - margin, x.max() + margin)
        use_whole_ticks(rows[-1].xaxis)
        if by is not None:
            rows[0].legend()
    return figure


def _draw_line(panel: Axes, part: pa.Table, column: str, style: dict[str, Any]) -> None:
    values, _ = values_and_label(part, column)
    marked = None if part.num_rows <= _MARKED else list(isolated_points(values))
    (line,) = panel.plot(numbers(part["interval"]), values, **style)
    line.set(marker="o", markersize=3, markevery=marked)
