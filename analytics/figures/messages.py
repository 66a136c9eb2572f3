"""Coverage: how messages reach their eligible peers over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from vizpub.analytics.coverage import Line, lines_of, quantiles, shares_at
from vizpub.analytics.figures.canvas import (
    GREY,
    PALETTE,
    PANEL_HEIGHT,
    colours,
    figure_style,
    panels,
    require_data,
    shorten,
)
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMED = len(PALETTE)
"""More lines than this are drawn in one style, with their mean on top."""
_LINES = 100
"""More messages than this are drawn as bands of quantiles."""
_BANDS = ((0.05, 0.95, "90 %", "#BFDBEC"), (0.25, 0.75, "50 %", "#80B8D9"))
"""Quantiles at their edges, names, and colours: shades of the median's."""


def coverage(table: pa.Table, title: str = "") -> Figure:
    """Share of eligible peers that a message has reached over time: a line for each message.

    `table` has `message_name`, `delay_us` since the publication and `share` of the eligible
    peers reached by then, in this order; a line begins with the publication. More than 7 messages
    are drawn in one style, with their mean share on top; of more than 100, bands hold the
    middle 50 % and 90 % of them, around the median.

    Raises: UseError if there is no row.
    """
    require_data(table.num_rows)
    with figure_style():
        figure, (panel,) = panels(1, title, height=2 * PANEL_HEIGHT)
        lines = list(_lines(table))
        draw = _draw_named if len(lines) <= _NAMED else _draw_mean
        (draw if len(lines) <= _LINES else _draw_bands)(panel, lines)
        panel.set_xlabel("time since publication (ms)")
        panel.set_ylabel("eligible peers reached (share)")
        panel.set_ylim(0, 1.02)
        panel.legend(loc="lower right")
    return figure


def _lines(table: pa.Table) -> Iterator[tuple[str, Line]]:
    """The line of each message, in ms."""
    for name, (delay, share) in lines_of(table):
        yield name, (delay / 1000, share)


def _draw_named(panel: Axes, lines: Sequence[tuple[str, Line]]) -> None:
    for (name, line), colour in zip(lines, colours(), strict=False):
        panel.step(*line, where="post", lw=1.4, color=colour, label=shorten(name))


def _draw_mean(panel: Axes, lines: Sequence[tuple[str, Line]]) -> None:
    for _, line in lines:
        panel.step(*line, where="post", lw=0.5, color=GREY)
    times = np.unique(np.concatenate([delay for _, (delay, _) in lines]))
    mean = np.mean([shares_at(times, line) for _, line in lines], axis=0)
    panel.step(times, mean, where="post", color=PALETTE[1], lw=2,
               label=f"mean of {amount(len(lines), 'message')}")  # fmt: skip


def _draw_bands(panel: Axes, lines: Sequence[tuple[str, Line]]) -> None:
    edges = [edge for low, high, *_ in _BANDS for edge in (low, high)]
    times, shares = quantiles([line for _, line in lines], [*edges, 0.5])
    for place, (_, _, name, colour) in enumerate(_BANDS):
        panel.fill_between(times, shares[2 * place], shares[2 * place + 1], step="post",
                           color=colour, lw=0,
                           label=f"middle {name} of {amount(len(lines), 'message')}")  # fmt: skip
    panel.step(times, shares[-1], where="post", color=PALETTE[0], lw=2, label="median")
