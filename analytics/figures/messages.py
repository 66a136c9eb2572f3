"""Coverage: how messages reach their eligible peers over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.figures.canvas import (
    GREY,
    PALETTE,
    PANEL_HEIGHT,
    colours,
    figure_style,
    numbers,
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
_STEPS = 500
"""Times at which bands are drawn."""

_Line = tuple[np.ndarray, np.ndarray]
"""Times since the publication in ms, and the share reached from then on; it begins at 0 ms."""


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
        lines = list(_message_lines(table))
        draw = _draw_named if len(lines) <= _NAMED else _draw_mean
        (draw if len(lines) <= _LINES else _draw_bands)(panel, lines)
        panel.set_xlabel("time since publication (ms)")
        panel.set_ylabel("eligible peers reached (share)")
        panel.set_ylim(0, 1.02)
        panel.legend(loc="lower right")
    return figure


def _message_lines(table: pa.Table) -> Iterator[tuple[str, _Line]]:
    """The line of each message; the rows of a message are next to each other."""
    delay, share = numbers(table["delay_us"]) / 1000, numbers(table["share"])
    names = table["message_name"].combine_chunks()
    starts = np.flatnonzero(np.append(True, pc.not_equal(names[1:], names[:-1]).to_numpy(False)))
    for first, end in pairwise([*starts.tolist(), len(names)]):
        yield names[first].as_py(), (delay[first:end], share[first:end])


def _draw_named(panel: Axes, lines: Sequence[tuple[str, _Line]]) -> None:
    for (name, line), colour in zip(lines, colours(), strict=False):
        panel.step(*line, where="post", lw=1.4, color=colour, label=shorten(name))


def _draw_mean(panel: Axes, lines: Sequence[tuple[str, _Line]]) -> None:
    for _, line in lines:
        panel.step(*line, where="post", lw=0.5, color=GREY)
    times = np.unique(np.concatenate([delay for _, (delay, _) in lines]))
    mean = np.mean([_share_at(times, line) for _, line in lines], axis=0)
    panel.step(times, mean, where="post", color=PALETTE[1], lw=2,
               label=f"mean of {amount(len(lines), 'message')}")  # fmt: skip


def _draw_bands(panel: Axes, lines: Sequence[tuple[str, _Line]]) -> None:
    times = np.linspace(0, max(delay[-1] for _, (delay, _) in lines), _STEPS)
    shares = np.array([_share_at(times, line) for _, line in lines])
    for low, high, name, colour in _BANDS:
        edges = np.quantile(shares, [low, high], axis=0)
        panel.fill_between(times, edges[0], edges[1], step="post", color=colour, lw=0,
                           label=f"middle {name} of {amount(len(lines), 'message')}")  # fmt: skip
    panel.step(times, np.median(shares, axis=0), where="post", color=PALETTE[0], lw=2,
               label="median")  # fmt: skip


def _share_at(times: np.ndarray, line: _Line) -> np.ndarray:
    """The share reached at each time; before its first, as there."""
    delay, share = line
    shares: np.ndarray = share[np.maximum(np.searchsorted(delay, times, side="right") - 1, 0)]
    return shares
