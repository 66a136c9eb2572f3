"""Means of groups of runs with 95 % confidence intervals: of runs, intervals or settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.comparison.tables import RunMetrics
from vizpub.analytics.figures.canvas import (
    PANEL_HEIGHT,
    add_height,
    isolated_points,
    limit_share,
    mark_if_unknown,
    new_figure,
    numbers,
    panel_grid,
    panels,
    require_data,
    use_whole_ticks,
)
from vizpub.analytics.figures.labels import label_of, shorten, wrap
from vizpub.analytics.figures.styles import GREY, PALETTE, colours_of, current_options, figure_style
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ABREAST = 3
"""Panels in a row."""
_HEIGHT, _LEGEND_LINE, _CHARACTER = 2.0, 0.22, 0.075
_LINES, _MARKS = ("-", "--", ":"), ("o", "s", "^")
_BAND = 0.25
"""Opacity of the band of an interval."""
_SETTING = 30
"""Longest name of a setting that fits below a panel."""


def comparison(
    table: pa.Table,
    runs: Sequence[RunMetrics] = (),
    title: str = "",
    systems: Sequence[str] = (),
) -> Figure:
    """The mean and interval of every group: a panel for each metric of `table`.

    `table` is the result of vizpub.analytics.comparison.tables.compare_groups; each of `runs` is a
    small circle beside the mean of its group. `systems` are those of all figures that belong
    together, so that each has its colour in all of them.

    Raises: UseError if there is no row, or too many groups.
    """
    means = table.filter(pc.field("estimate") == "mean")
    require_data(means.num_rows)
    metrics, groups = (pc.unique(means[name]).to_pylist() for name in ("metric", "group"))
    styles = _styles(groups, systems)
    with figure_style():
        figure, rows, width = _grid(len(metrics), len(groups), title)
        for panel, metric in zip(rows, metrics, strict=True):
            metric_rows = means.filter(pc.field("metric") == metric)
            factor = _label(panel.set_title, width, metric, metric_rows["unit"][0].as_py())
            for place, mean in enumerate(metric_rows.to_pylist()):
                singles = [r.values.get(metric) for r in runs if r.group == mean["group"]]
                _draw_group(panel, place, mean, factor, styles[mean["group"]])
                _draw_runs(panel, place, singles, factor, styles[mean["group"]])
            panel.set_xlim(-0.6, len(groups) - 0.4)
            panel.set_xticks([])
            _finish(panel, metric_rows)
        _legend(figure, styles, means)
    return figure


def comparison_series(table: pa.Table, title: str = "", systems: Sequence[str] = ()) -> Figure:
    """The mean of every group over the intervals, its interval as a band: a panel per metric.

    `table` is the result of vizpub.analytics.comparison.tables.compare_series. A gap is unknown; a
    group of one run has no band. Raises: UseError if there is no row, or too many groups.
    """
    require_data(table.num_rows)
    metrics, groups = (pc.unique(table[name]).to_pylist() for name in ("metric", "group"))
    styles = _styles(groups, systems)
    with figure_style():
        figure, rows = panels(len(metrics), title)
        add_height(figure, _LEGEND_LINE * len(groups))
        for panel, metric in zip(rows, metrics, strict=True):
            metric_rows = table.filter(pc.field("metric") == metric)
            factor = _label(panel.set_ylabel, PANEL_HEIGHT, metric, metric_rows["unit"][0].as_py())
            for group in groups:
                _draw_series(
                    panel, metric_rows.filter(pc.field("group") == group), factor, styles[group]
                )
            _finish(panel, metric_rows)
            panel.sharex(rows[0])
            panel.tick_params(labelbottom=panel is rows[-1])
        rows[0].set_xlim(*_around(numbers(table["interval"])))
        rows[-1].set_xlabel("interval")
        use_whole_ticks(rows[0].xaxis)
        _legend(figure, styles, table)
    return figure


def comparison_settings(
    table: pa.Table, parameter: str, title: str = "", systems: Sequence[str] = ()
) -> Figure:
    """The mean and interval of every group at each setting of a parameter: a panel per metric.

    `table` is the result of vizpub.analytics.comparison.tables.compare_settings. Numeric settings
    are on a linear axis. Raises: UseError if there is no row, or too many groups.
    """
    means = table.filter(pc.field("estimate") == "mean")
    require_data(means.num_rows)
    metrics, groups = (pc.unique(means[name]).to_pylist() for name in ("metric", "group"))
    styles, axis = (
        _styles(groups, systems),
        _SettingAxis.of(pc.unique(means["setting"]).to_pylist()),
    )
    with figure_style():
        figure, rows, width = _grid(len(metrics), len(groups), title)
        for panel, metric in zip(rows, metrics, strict=True):
            metric_rows = means.filter(pc.field("metric") == metric)
            factor = _label(panel.set_title, width, metric, metric_rows["unit"][0].as_py())
            for shift, (group, style) in enumerate(styles.items(), -(len(styles) // 2)):
                line = metric_rows.filter(pc.field("group") == group)
                x = [axis.place(name, shift) for name in line["setting"].to_pylist()]
                panel.plot(x, numbers(line["value"]) * factor, color=style["color"], lw=1)
                for place, mean in zip(x, line.to_pylist(), strict=True):
                    _draw_group(panel, place, mean, factor, style)
            _finish(panel, metric_rows)
        axis.mark(figure, rows, parameter)
        _legend(figure, styles, means)
    return figure


@dataclass(frozen=True)
class _SettingAxis:
    """Positions of settings: at their numbers, or in order if some are not numeric."""

    names: Sequence[str]
    numbers: Sequence[float] | None

    @staticmethod
    def of(names: Sequence[str]) -> _SettingAxis:
        try:
            return _SettingAxis(names, [float(name) for name in names])
        except ValueError:
            return _SettingAxis(names, None)

    def place(self, name: str, shift: int) -> float:
        """Position of a setting, moved by `shift` so that the bars of groups do not overlap."""
        if self.numbers is None:
            return self.names.index(name) + 0.1 * shift
        return float(name) + 0.012 * shift * float(np.ptp(self.numbers))

    def mark(self, figure: Figure, panels: Sequence[Axes], parameter: str) -> None:
        """Label the settings and the parameter below the lowest panels."""
        panels[0].set_xlim(*_around(np.array(self.numbers or range(len(self.names)), float), 0.1))
        if self.numbers is None:
            labels = [shorten(name, _SETTING) for name in self.names]
            panels[0].set_xticks(range(len(labels)), labels, rotation=90)
            longest = max(map(len, labels))
            add_height(figure, _CHARACTER * longest)
        elif all(number.is_integer() for number in self.numbers):
            use_whole_ticks(panels[0].xaxis)
        for panel in panels[1:]:
            panel.sharex(panels[0])
        spec = panels[0].get_subplotspec()
        abreast = spec.get_gridspec().ncols if spec else 1
        for panel in panels[:-abreast]:
            panel.tick_params(labelbottom=False)
        for panel in panels[-abreast:]:
            panel.tick_params(labelbottom=True, rotation=90 * (self.numbers is None), axis="x")
            panel.set_xlabel(shorten(parameter))


def check_group_count(count: int, advice: str) -> None:
    """Raises: UseError if a figure cannot tell so many groups apart."""
    kinds = len(PALETTE) * len(_LINES)  # the counts have no common divisor
    if count > kinds:
        raise UseError(f"{count} groups are too many for a figure; at most {kinds}, {advice}")


def _styles(groups: Sequence[str], systems: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour, line and mark for each group, so that lines that coincide are both visible."""
    check_group_count(len(groups), "for example with --by protocol")
    chosen = colours_of(groups, systems)
    looks = zip(groups, cycle(_LINES), cycle(_MARKS), strict=False)
    return {
        group: {"color": chosen[group], "ls": line, "marker": mark} for group, line, mark in looks
    }


def _grid(count: int, groups: int, title: str) -> tuple[Figure, list[Axes], float]:
    """A figure with panels in rows, the panels, and the width of each in inches."""
    abreast = min(_ABREAST if current_options().scale >= 1 else 2, count)
    if abreast == _ABREAST and count % _ABREAST == 1:
        abreast -= 1  # four panels are two rows of two
    height = _HEIGHT * ceil(count / abreast) + _LEGEND_LINE * groups + 0.3
    figure = new_figure(height, title)
    return figure, panel_grid(figure, count, abreast), figure.get_figwidth() / abreast - 0.4


def _label(write: Any, inches: float, name: str, unit: str) -> float:
    """Label the metric with its unit. Returns the factor of its values (µs are drawn as ms)."""
    label, factor = label_of(name, unit)
    write(wrap(label, inches))
    return factor


def _finish(panel: Axes, metric_rows: pa.Table) -> None:
    """Mark a panel without known values; limit the axis of a share."""
    mark_if_unknown(panel, numbers(metric_rows["value"]))
    limit_share(panel, metric_rows["unit"][0].as_py())


def _draw_group(
    panel: Axes, place: float, mean: dict[str, Any], factor: float, style: dict[str, Any]
) -> None:
    if mean["value"] is None:
        return
    value = mean["value"] * factor
    ends = None
    if mean["low"] is not None:
        ends = [[value - mean["low"] * factor], [mean["high"] * factor - value]]
    panel.errorbar(
        [place], [value], yerr=ends, fmt=style["marker"], color=style["color"], ms=5, capsize=4
    )


def _draw_runs(
    panel: Axes,
    place: int,
    values: Sequence[float | None],
    factor: float,
    style: dict[str, Any],
) -> None:
    known_values = [value * factor for value in values if value is not None]
    if len(known_values) > 1:
        beside = np.full(len(known_values), place + 0.25)
        panel.plot(beside, known_values, "o", ms=3, mfc="none", color=style["color"], alpha=0.6)


def _draw_series(panel: Axes, group_rows: pa.Table, factor: float, style: dict[str, Any]) -> None:
    x = numbers(group_rows["interval"])
    value, low, high = (numbers(group_rows[name]) * factor for name in ("value", "low", "high"))
    line = {"color": style["color"], "ls": style["ls"]}
    panel.plot(x, value, **line, marker=style["marker"], ms=3, markevery=_marks(value))
    panel.fill_between(x, low, high, color=style["color"], alpha=_BAND, lw=0)


def _marks(values: np.ndarray) -> list[int]:
    """Positions to mark: ten at equal distances, and values that no line connects."""
    return sorted(
        {*range(0, len(values), ceil(len(values) / 10)), *isolated_points(values).tolist()}
    )


def _around(x: np.ndarray, share: float = 0.02) -> tuple[float, float]:
    margin = share * float(np.ptp(x)) or 0.5
    return float(x.min()) - margin, float(x.max()) + margin


def _legend(figure: Figure, styles: dict[str, dict[str, Any]], table: pa.Table) -> None:
    """Name the groups and their numbers of runs below the panels."""
    from matplotlib import rcParams
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **style, ms=5) for style in styles.values()]
    labels = list(_labels(styles, table))
    handles: list[Any] = list(lines)
    if "interval" in table.column_names and table["low"].null_count < len(table):
        handles.append(_band_handle())
        labels.append("95 % confidence interval")
    widest = max(map(len, labels))
    characters = int(72 * figure.get_figwidth() / (0.5 * rcParams["font.size"]))
    abreast = max(1, min(len(labels), characters // (widest + 6)))
    figure.legend(handles, labels, loc="outside lower center", ncols=abreast)


def _band_handle() -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=GREY, alpha=_BAND, edgecolor=GREY, lw=0.8)


def _labels(groups: Iterable[str], table: pa.Table) -> Iterator[str]:
    for group in groups:
        runs = table.filter(pc.field("group") == group)["runs"][0].as_py()
        yield f"{shorten(group, 60)} ({runs} run{'s' if runs != 1 else ''})"
