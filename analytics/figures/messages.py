"""Coverage: how messages reach their eligible peers over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.figures.canvas import (
    GREY,
    PALETTE,
    PANEL_HEIGHT,
    colours,
    numbers,
    panels,
    require,
    short,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MANY = len(PALETTE)
"""More lines than this are drawn in one style, with their mean on top."""


def coverage(table: pa.Table, title: str = "") -> Figure:
    """Share of eligible peers that a message has reached over time: a line for each message.

    `table` has `message_name`, `delay_us` since the publication and `share` of the eligible
    peers reached by then, in this order; a line begins with the publication. Many messages
    are drawn in one style, with their mean share on top.

    Raises: UseError if there is no row.
    """
    require(table.num_rows)
    with styled():
        figure, (panel,) = panels(1, title, height=2 * PANEL_HEIGHT)
        lines = dict(_lines(table))
        few = len(lines) <= _MANY
        for (name, (delay, share)), colour in zip(lines.items(), colours(), strict=False):
            style: dict[str, Any] = (
                {"color": colour, "label": short(name)} if few else {"color": GREY}
            )
            panel.step(delay, share, where="post", lw=1.4 if few else 0.5, **style)
        if not few:
            panel.step(*_mean_line(lines.values()), where="post", color=PALETTE[1], lw=2,
                       label=f"mean of {len(lines)} messages")  # fmt: skip
        panel.set_xlabel("time since publication (ms)")
        panel.set_ylabel("eligible peers reached (share)")
        panel.set_ylim(0, 1.02)
        panel.legend(loc="lower right")
    return figure


def _lines(table: pa.Table) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    for name in pc.unique(table["message_name"]).to_pylist():
        own = table.filter(pc.field("message_name") == name)
        yield name, (numbers(own["delay_us"]) / 1000, numbers(own["share"]))


def _mean_line(
    lines: Iterable[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    lines = list(lines)
    x = np.unique(np.concatenate([delay for delay, _ in lines]))
    held = [
        share[np.maximum(np.searchsorted(delay, x, side="right") - 1, 0)] for delay, share in lines
    ]
    return x, np.mean(held, axis=0)
