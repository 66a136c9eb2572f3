"""Distributions of values: ECDF, CCDF, and density in logarithmic bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vizpub.analytics.figures.canvas import (
    mark_if_unknown,
    panels,
    require_data,
    split_by,
    use_whole_ticks,
)
from vizpub.analytics.figures.labels import is_whole, shorten, values_and_label
from vizpub.analytics.figures.styles import colours, figure_style, shades_of
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PER_DECADE = 10
"""Bins of a logarithmic axis; few enough for a readable tail of a power law."""
_HEIGHT = 2.8


def distribution(
    table: pa.Table,
    columns: Sequence[str],
    title: str = "",
    *,
    complementary: bool = False,
    by: str | None = None,
    chosen: Mapping[str, str] | None = None,
) -> Figure:
    """The distribution of the values of each column; nulls are left out.

    The share of values ≤ x (ECDF). `complementary`: ≥ x (CCDF); if the values span more
    than a decade, both axes are logarithmic, and the exact line is marked at logarithmic
    steps (Clauset, Shalizi and Newman, 2009). `by` is a column with a line for each value, in its
    `chosen` colour ('' = of all rows).

    Raises: UseError if there is no row or no column.
    """
    draw = _draw_ccdf if complementary else _draw_ecdf
    return _draw_panels(table, columns, title, _Lines(by, chosen or {}), draw)


def density(
    table: pa.Table,
    columns: Sequence[str],
    title: str = "",
    *,
    by: str | None = None,
    chosen: Mapping[str, str] | None = None,
) -> Figure:
    """The probability density of each column's values in logarithmic bins, on logarithmic axes.

    A bin's share of all values divided by its width (for whole numbers by how many it holds),
    which averages out noise in the tail (Newman, 2005; Milojević, 2010). Values up to 0 are not
    drawn but count in the total. `by` and `chosen` as in `distribution`.

    Raises: UseError if there is no row or no column.
    """
    return _draw_panels(table, columns, title, _Lines(by, chosen or {}), _draw_density)


@dataclass(frozen=True)
class _Lines:
    """The column with a line for each value (null = one line), and colours of some values."""

    by: str | None
    chosen: Mapping[str, str]


@dataclass(frozen=True)
class _Sample:
    """The known values of one line, ascending."""

    name: str
    values: np.ndarray
    whole: bool
    colour: Any

    @property
    def style(self) -> dict[str, Any]:
        label = f"{shorten(self.name)} ({amount(len(self.values), 'value')})"
        return {"color": self.colour, "label": label}


_Draw = Callable[["Axes", Sequence[_Sample]], None]


def _draw_panels(
    table: pa.Table, columns: Sequence[str], title: str, lines: _Lines, draw: _Draw
) -> Figure:
    require_data(table.num_rows and columns)
    with figure_style():
        figure, rows = panels(len(columns), title, _HEIGHT)
        for panel, column, colour in zip(rows, columns, colours(), strict=False):
            values, label = values_and_label(table, column)
            panel.set_xlabel(label)
            mark_if_unknown(panel, values)
            samples = list(_samples(table, column, lines, colour))
            if not samples:
                panel.set_xticks([])
                continue
            draw(panel, samples)
            _write_counts(panel, samples)
            if samples[0].whole and panel.get_xscale() == "linear":
                use_whole_ticks(panel.xaxis)
        if lines.by is not None:
            for panel in rows:
                if panel.get_legend_handles_labels()[0]:
                    panel.legend()
    return figure


def _samples(table: pa.Table, column: str, lines: _Lines, colour: str) -> Iterator[_Sample]:
    parts = split_by(table, lines.by)
    shades = [colour] if lines.by is None else shades_of(len(parts))
    for (name, part), shade in zip(parts, shades, strict=True):
        values, _ = values_and_label(part, column)
        known_values = np.sort(values[~np.isnan(values)])
        if len(known_values):
            shown = lines.chosen.get(name, shade)
            yield _Sample(name, known_values, is_whole(part, column), shown)


def _write_counts(panel: Axes, samples: Sequence[_Sample]) -> None:
    """The number of values, and of those that a logarithmic axis cannot show."""
    values = np.concatenate([sample.values for sample in samples])
    hidden = int((values <= 0).sum()) if panel.get_xscale() == "log" else 0
    rest = f", {hidden:,} of them 0 and not shown" if hidden else ""
    panel.set_title(f"{amount(len(values), 'value')}{rest}", loc="right", fontsize="small")


def _draw_ecdf(panel: Axes, samples: Sequence[_Sample]) -> None:
    for sample in samples:
        x, first, counts = np.unique(sample.values, return_index=True, return_counts=True)
        share = (first + counts) / len(sample.values)
        panel.step([x[0], *x], [0, *share], where="post", **sample.style)
    panel.set_ylabel("share ≤ x")
    panel.set_ylim(0, 1.02)


def _draw_ccdf(panel: Axes, samples: Sequence[_Sample]) -> None:
    values = np.concatenate([sample.values for sample in samples])
    positive = values[values > 0]
    is_wide = bool(len(positive)) and positive.max() > 10 * positive.min()
    if is_wide:
        _scale(panel)
    for sample in samples:
        x, first = np.unique(sample.values, return_index=True)
        share = 1 - first / len(sample.values)
        marked = None
        if is_wide:
            x, share = x[x > 0], share[x > 0]
            # The first value in each logarithmic bin; the values ascend.
            bins = np.floor(np.log10(x) * _PER_DECADE)
            marked = list(np.unique(bins, return_index=True)[1])
        line: dict[str, Any] = {"drawstyle": "steps-pre", "marker": "o", "ms": 3.5}
        panel.plot(x, share, markevery=marked, **line, **sample.style)
    panel.set_ylabel("share ≥ x")


def _scale(panel: Axes) -> None:
    """Make both axes logarithmic, with plain numbers as labels."""
    from matplotlib.ticker import LogFormatter

    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.xaxis.set_major_formatter(LogFormatter())
    panel.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))


def _draw_density(panel: Axes, samples: Sequence[_Sample]) -> None:
    _scale(panel)
    for sample in samples:
        x, share = _bin_density(sample.values, sample.whole)
        if len(x):
            panel.plot(x, share, marker="o", ms=3.5, **sample.style)
    if not panel.lines:
        panel.text(0.5, 0.5, "no value above 0", transform=panel.transAxes, ha="center")
    panel.set_ylabel("share per unit")


def _bin_density(values: np.ndarray, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """The geometric mean of the edges and the density of each non-empty logarithmic bin."""
    positive = values[values > 0]
    if not len(positive):
        return positive, positive
    low, high = np.log10(positive[0]), np.log10(positive[-1])
    steps = int(np.floor((high - low) * _PER_DECADE)) + 1
    edges = 10 ** (low + np.arange(steps + 1) / _PER_DECADE)
    edges[0] = positive[0]  # otherwise rounding may put it above
    if whole:
        # A bin of whole numbers begins at one; the least bins hold one number each.
        edges = np.unique(np.ceil(edges - 1e-9))
    if edges[-1] <= positive[-1]:
        edges = np.append(edges, edges[-1] + 1 if whole else edges[-1] * 10 ** (1 / _PER_DECADE))
    counts, _ = np.histogram(positive, edges)
    last = edges[1:] - 1 if whole else edges[1:]
    is_filled = counts > 0
    share = counts / np.diff(edges) / len(values)
    return np.sqrt(edges[:-1] * last)[is_filled], share[is_filled]
