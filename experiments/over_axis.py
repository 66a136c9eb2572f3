"""Metrics over a parameter that the settings of an experiment vary, such as the churn rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.figures.canvas import (
    PALETTE,
    keep_share,
    numbers,
    plain,
    say_if_unknown,
    styled,
)
from experiments.groups import Share
from experiments.results import metric_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from experiments.groups import Group
    from experiments.results import Measures

_TEXTS = [pa.field(name, pa.string()) for name in ("metric", "unit", "system", "setting")]
_NUMBERS = [pa.field(name, pa.float64()) for name in ("x", "value", "low", "high")]
OVER_AXIS = pa.schema([*_TEXTS, *_NUMBERS, pa.field("n", pa.int32())])
_ABREAST, _WIDTH, _HEIGHT = 2, 7.0, 2.1
_LINES, _MARKS = ("-", "--", ":"), ("o", "s", "^")


def table_over_axis(
    measures: Measures, groups: Sequence[Group], metrics: Sequence[str], during: Share
) -> pa.Table:
    """A row for each metric and group: the mean over its `n` runs and the 95 % interval.

    metric     unit   system      setting  x     value  low   high  n
    hit_ratio  share  PolderCast  half     0.5   0.97   0.96  0.98  5
    """
    rows = []
    for metric in metrics:
        for group in groups:
            found = measures.estimate(metric, group.name, during)
            about = (metric, metric_of(metric).unit, group.system.name, group.setting.name)
            values = (group.setting.x, found.value, found.low, found.high, found.n)
            rows.append((*about, *values))
    records = [dict(zip(OVER_AXIS.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(records, OVER_AXIS)


def over_axis(table: pa.Table, label: str) -> Figure:
    """A panel for each metric of `table`, a line for each system; bars are 95 % intervals."""
    from matplotlib.figure import Figure

    metrics, systems = (pc.unique(table[name]).to_pylist() for name in ("metric", "system"))
    rows = ceil(len(metrics) / _ABREAST)
    with styled():
        figure = Figure(figsize=(_WIDTH, _HEIGHT * rows + 0.4))
        panels = list(figure.subplots(rows, _ABREAST, squeeze=False).flat)
        for panel, metric in zip(panels, metrics, strict=False):
            own = table.filter(pc.field("metric") == metric).sort_by("x")
            unit = own["unit"][0].as_py()
            panel.set_title(plain(f"{metric} ({unit})" if unit else metric), fontsize=8.5)
            for number, system in enumerate(systems):
                part = own.filter(pc.field("system") == system)
                _draw(panel, part, _style(number), (number - (len(systems) - 1) / 2))
            keep_share(panel, unit)
            say_if_unknown(panel, numbers(own["value"]))
            panel.set_xlabel(plain(label), fontsize=8)
        for panel in panels[len(metrics) :]:
            panel.set_axis_off()
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(systems))
    return figure


def _style(number: int) -> dict[str, Any]:
    """Colour, line and mark: where two lines coincide both are seen."""
    looks = zip(cycle(PALETTE), cycle(_LINES), cycle(_MARKS), strict=False)
    colour, line, mark = next(look for place, look in enumerate(looks) if place == number)
    return {"color": colour, "ls": line, "marker": mark, "ms": 4, "lw": 1.2, "capsize": 3}


def _draw(panel: Axes, part: pa.Table, style: dict[str, Any], aside: float) -> None:
    """The line of a system, a little aside of the others' so that no bar hides one."""
    x, value, low, high = (numbers(part[name]) for name in ("x", "value", "low", "high"))
    spread = x.max() - x.min() if len(x) else 0.0
    ends = [value - low, high - value]
    known = ends if not any(map(_all_unknown, ends)) else None
    panel.errorbar(
        x + aside * 0.008 * spread, value, yerr=known, label=plain(part["system"][0].as_py()),
        **style,
    )  # fmt: skip


def _all_unknown(values: np.ndarray) -> bool:
    return bool(np.isnan(values).all())
