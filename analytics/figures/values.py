"""Columns of metrics: over the intervals, and how their values are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.figures.canvas import (
    colours,
    is_counted,
    keep_whole,
    measured,
    numbers,
    panels,
    require,
    say_if_unknown,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKED = 60
"""Up to so many points get a mark, so that one between two unknowns is seen."""
_LABEL = 28
"""A longer label than this is higher than its panel in one line."""


def series(table: pa.Table, columns: Sequence[str], title: str = "") -> Figure:
    """Metrics over the intervals: a panel for each column of `table` (with `interval`).

    A null leaves a gap. Raises: UseError where there is no row or no column.
    """
    require(table.num_rows and columns)
    with styled():
        figure, rows = panels(len(columns), title)
        for panel, column, colour in zip(rows, columns, colours(), strict=False):
            values, label = measured(table, column)
            marked = None if table.num_rows <= _MARKED else list(_alone(values))
            (line,) = panel.plot(numbers(table["interval"]), values, color=colour, lw=1.2)
            line.set(marker="o", markersize=3, markevery=marked)
            panel.set_ylabel(label if len(label) <= _LABEL else label.replace(" (", "\n("))
            if is_counted(table, column):
                keep_whole(panel.yaxis)
            say_if_unknown(panel, values)
        rows[-1].set_xlabel("interval")
        _share_x(rows)
        _show_all(rows[-1], numbers(table["interval"]))
        keep_whole(rows[-1].xaxis)
    return figure


def _alone(values: np.ndarray) -> np.ndarray:
    """Places of the values between two unknown ones: no line leads to or from them."""
    known = np.pad(~np.isnan(values), 1)
    return np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])


def distribution(
    table: pa.Table,
    columns: Sequence[str],
    title: str = "",
    *,
    complementary: bool = False,
) -> Figure:
    """How the values of each column are distributed; nulls are left out.

    The share of values ≤ x (ECDF); `complementary`: ≥ x (CCDF), both axes logarithmic
    where the values span more than a decade.

    Raises: UseError where there is no row or no column.
    """
    require(table.num_rows and columns)
    with styled():
        figure, rows = panels(len(columns), title)
        for panel, column, colour in zip(rows, columns, colours(), strict=False):
            values, label = measured(table, column)
            known = np.sort(values[~np.isnan(values)])
            say_if_unknown(panel, known)
            panel.set_xlabel(label)
            panel.set_ylabel("share ≥ x" if complementary else "share ≤ x")
            panel.set_title(f"{len(known):,} values", loc="right", fontsize=8)
            if not len(known):
                panel.set_xticks([])
                continue
            _draw_distribution(panel, known, colour, complementary)
            if is_counted(table, column) and panel.get_xscale() == "linear":
                keep_whole(panel.xaxis)
    return figure


def _draw_distribution(panel: Axes, known: np.ndarray, colour: str, complementary: bool) -> None:
    x, first, counts = np.unique(known, return_index=True, return_counts=True)
    if not complementary:
        share = (first + counts) / len(known)
        panel.step([x[0], *x], [0, *share], where="post", color=colour)
        panel.set_ylim(0, 1.02)
        return
    share = 1 - first / len(known)
    positive = x > 0
    if positive.any() and x.max() > 10 * x[positive].min():
        panel.set_xscale("log")
        panel.set_yscale("log")
        x, share = x[positive], share[positive]
    panel.plot(x, share, color=colour, marker="o", ms=3, lw=1, drawstyle="steps-pre")


def _share_x(rows: Sequence[Axes]) -> None:
    for panel in rows[:-1]:
        panel.sharex(rows[-1])
        panel.tick_params(labelbottom=False)


def _show_all(panel: Axes, x: np.ndarray) -> None:
    """The whole range of x, whether anything is known there or not."""
    margin = 0.05 * float(np.ptp(x)) or 0.5
    panel.set_xlim(x.min() - margin, x.max() + margin)
