"""Coverage: how messages reach their eligible peers over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vizpub.analytics.coverage import Line, end_of, lines_of, quantiles, shares_at
from vizpub.analytics.figures.canvas import PANEL_HEIGHT, panels, require_data, split_by
from vizpub.analytics.figures.labels import shorten
from vizpub.analytics.figures.styles import (
    GREY,
    PALETTE,
    colours,
    figure_style,
    palette,
    shades_of,
)
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMED = len(PALETTE)
"""More lines than this are drawn in one style, with their mean on top."""
_LINES = 100
"""More messages than this are drawn as bands of quantiles."""
_BANDS = ((0.05, 0.95, "90 %", 0.28), (0.25, 0.75, "50 %", 0.45))
"""Quantiles at their edges, names, and opacities."""


def coverage(
    table: pa.Table,
    title: str = "",
    *,
    by: str | None = None,
    chosen: Mapping[str, str] | None = None,
) -> Figure:
    """Share of eligible peers that a message has reached over time: a line for each message.

    `table` has `message_name`, `delay_us` since the publication and `share` of the eligible
    peers reached by then, in this order; a line begins with the publication. More than 7 messages
    are drawn in one style, with their mean share on top; of more than 100, bands hold the
    middle 50 % and 90 % of them, around the median. `by` is a column with a median and a band of
    the middle half of its messages for each value, in its `chosen` colour; '' is that of all rows.

    Raises: UseError if there is no row.
    """
    require_data(table.num_rows)
    with figure_style():
        figure, (panel,) = panels(1, title, height=2 * PANEL_HEIGHT)
        if by is not None:
            _draw_parts(panel, split_by(table, by), chosen or {})
        else:
            lines = list(_lines(table))
            draw = _draw_named if len(lines) <= _NAMED else _draw_mean
            colour = (chosen or {}).get("", palette()[0])
            (draw if len(lines) <= _LINES else _draw_bands)(panel, lines, colour)
        panel.set_xlabel("time since publication (ms)")
        panel.set_ylabel("eligible peers reached (share)")
        panel.set_ylim(0, 1.02)
        if panel.get_legend() is None:
            panel.legend(loc="lower right")
    return figure


def _lines(table: pa.Table) -> Iterator[tuple[str, Line]]:
    """The line of each message, in ms."""
    for name, (delay, share) in lines_of(table):
        yield name, (delay / 1000, share)


def _draw_named(panel: Axes, lines: Sequence[tuple[str, Line]], _colour: str) -> None:
    for (name, line), colour in zip(lines, colours(), strict=False):
        panel.step(*line, where="post", color=colour, label=shorten(name))


def _draw_mean(panel: Axes, lines: Sequence[tuple[str, Line]], colour: str) -> None:
    for _, line in lines:
        panel.step(*line, where="post", lw=0.5, color=GREY)
    times = np.unique(np.concatenate([delay for _, (delay, _) in lines]))
    mean = np.mean([shares_at(times, line) for _, line in lines], axis=0)
    panel.step(times, mean, where="post", color=colour, lw=2,
               label=f"mean of {amount(len(lines), 'message')}")  # fmt: skip


def _draw_bands(panel: Axes, lines: Sequence[tuple[str, Line]], colour: str) -> None:
    all_lines = [line for _, line in lines]
    bands, median = _draw_quantiles(panel, all_lines, _BANDS, colour, end_of(all_lines))
    panel.legend(handles=[*bands, median], loc="lower right")


def _draw_parts(
    panel: Axes, parts: Sequence[tuple[str, pa.Table]], chosen: Mapping[str, str]
) -> None:
    lines = {name: [line for _, line in _lines(part)] for name, part in parts}
    end = max(map(end_of, lines.values()))
    handles, names = [], []
    for (name, of_part), shade in zip(lines.items(), shades_of(len(lines)), strict=True):
        colour = chosen.get(name, shade)
        (band,), median = _draw_quantiles(panel, of_part, _BANDS[1:], colour, end)
        handles.append((band, median))
        names.append(f"{shorten(name)}: median, {band.get_label()}")
    panel.legend(handles, names, loc="lower right")


def _draw_quantiles(
    panel: Axes,
    lines: Sequence[Line],
    bands: Sequence[tuple[float, float, str, float]],
    colour: str,
    end: float,
) -> tuple[list[Any], Any]:
    """Draw the bands and the median. Returns their artists."""
    edges = [edge for low, high, *_ in bands for edge in (low, high)]
    times, shares = quantiles(lines, [*edges, 0.5], end)
    count = amount(len(lines), "message")
    style: dict[str, Any] = {"step": "post", "facecolor": colour, "edgecolor": colour, "lw": 0.8}
    drawn = [
        panel.fill_between(
            times,
            shares[2 * place],
            shares[2 * place + 1],
            alpha=opacity,
            label=f"middle {name} of {count}",
            **style,
        )
        for place, (_, _, name, opacity) in enumerate(bands)
    ]
    (median,) = panel.step(times, shares[-1], where="post", color=colour, lw=2, label="median")
    return drawn, median
