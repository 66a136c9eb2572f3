"""How long periods last: the share that is still there at each length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.figures.canvas import numbers, panels, require_data, split_by
from vizpub.analytics.figures.labels import shorten
from vizpub.analytics.figures.styles import figure_style, shades_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 3.4


def survival(
    table: pa.Table,
    title: str = "",
    *,
    by: str | None = None,
    chosen: Mapping[str, str] | None = None,
) -> Figure:
    """The share of periods that last longer than a length, from rows of `Run.survival`.

    A plus marks lengths at which open periods leave the estimate (Kaplan and Meier 1958). `by` is a
    column with a line for each value, in its `chosen` colour.

    Raises: UseError if there is no row.
    """
    require_data(table.num_rows)
    lines = split_by(table, by)
    with figure_style():
        figure, (panel,) = panels(1, title, _HEIGHT)
        for (name, part), shade in zip(lines, shades_of(len(lines)), strict=True):
            colour = (chosen or {}).get(name, shade)
            count = pc.sum(pc.add(part["ended"], part["open"])).as_py()
            x, share = numbers(part["length"]), numbers(part["survival"])
            label = f"{shorten(name)} ({count:,})" if name else None
            steps = {"drawstyle": "steps-post", "color": colour, "label": label}
            panel.plot([0, *x], [1, *share], **steps)
            is_open = numbers(part["open"]) > 0
            panel.plot(x[is_open], share[is_open], "+", ms=4, color=colour)
        panel.set_xlabel("length in intervals")
        panel.set_ylabel("share that lasts longer")
        panel.set_ylim(0, 1.02)
        panel.set_xlim(0, float(np.max(numbers(table["length"]))) * 1.02)
        if by is not None:
            panel.legend()
    return figure
