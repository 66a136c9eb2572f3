"""Figures of metrics, from Arrow tables: no Spark, no window, no global state.

Every function gives a matplotlib Figure; `save` writes it so that the same figure is the
same SVG or PDF, byte by byte. Colours are Okabe and Ito's, told apart by the colour-blind
(jfly.uni-koeln.de/color, 2008).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.columns import Column
from model.errors import UseError
from model.metrics import METRICS
from model.tables import RECEPTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
PUBLISHER_COLOUR = "#D55E00"
ROLE_COLOURS = {
    "subscriber": "#0072B2",
    "relay": "#E69F00",
    "peer": "#7F8C8D",
}
_INSIDE, _OUTSIDE = "#0072B2", "#7F8C8D"
_MANY = len(PALETTE)
"""More lines than this are drawn alike, with their mean on top."""
_MARKED = 60
"""Up to so many points get a mark, so that one between two unknowns is seen."""
_WIDTH, _PANEL = 7.0, 2.2
_LABEL = 28
"""A longer label than this is higher than its panel in one line."""
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "vizpub",
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
}


def series(table: pa.Table, columns: Sequence[str], title: str = "") -> Figure:
    """Metrics over the intervals: a panel for each column of `table` (with `interval`).

    A null leaves a gap. Raises: UseError where there is no row or no column.
    """
    _require(table.num_rows and columns)
    with _styled():
        figure, panels = _panels(len(columns), title)
        for panel, column, colour in zip(panels, columns, _colours(), strict=False):
            values, label = _measured(table, column)
            marked = None if table.num_rows <= _MARKED else list(_alone(values))
            (line,) = panel.plot(_numbers(table["interval"]), values, color=colour, lw=1.2)
            line.set(marker="o", markersize=3, markevery=marked)
            panel.set_ylabel(label if len(label) <= _LABEL else label.replace(" (", "\n("))
            if _is_counted(table, column):
                _keep_whole(panel.yaxis)
            _say_if_unknown(panel, values)
        panels[-1].set_xlabel("interval")
        _share_x(panels)
        _show_all(panels[-1], _numbers(table["interval"]))
        _keep_whole(panels[-1].xaxis)
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
    _require(table.num_rows and columns)
    with _styled():
        figure, panels = _panels(len(columns), title)
        for panel, column, colour in zip(panels, columns, _colours(), strict=False):
            values, label = _measured(table, column)
            known = np.sort(values[~np.isnan(values)])
            _say_if_unknown(panel, known)
            panel.set_xlabel(label)
            panel.set_ylabel("share ≥ x" if complementary else "share ≤ x")
            panel.set_title(f"{len(known):,} values", loc="right", fontsize=8)
            if not len(known):
                panel.set_xticks([])
                continue
            _draw_distribution(panel, known, colour, complementary)
            if _is_counted(table, column) and panel.get_xscale() == "linear":
                _keep_whole(panel.xaxis)
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


def coverage(table: pa.Table, title: str = "") -> Figure:
    """How a message reaches those who should get it: a line for each message.

    `table` has `message_name`, `delay_us` since the publication and `share` of the eligible
    peers reached by then, in this order; a line begins with the publication. Many messages
    are drawn alike, their mean share on top.

    Raises: UseError where there is no row.
    """
    _require(table.num_rows)
    with _styled():
        figure, (panel,) = _panels(1, title, height=2 * _PANEL)
        lines = dict(_lines(table))
        few = len(lines) <= _MANY
        for (name, (delay, share)), colour in zip(lines.items(), _colours(), strict=False):
            style: dict[str, Any] = (
                {"color": colour, "label": _short(name)} if few else {"color": _OUTSIDE}
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
        yield name, (_numbers(own["delay_us"]) / 1000, _numbers(own["share"]))


def _mean_line(
    lines: Iterable[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    lines = list(lines)
    x = np.unique(np.concatenate([delay for delay, _ in lines]))
    held = [
        share[np.maximum(np.searchsorted(delay, x, side="right") - 1, 0)] for delay, share in lines
    ]
    return x, np.mean(held, axis=0)


def overlay_snapshot(peers: pa.Table, links: pa.Table, size: int, title: str = "") -> Figure:
    """An overlay at one time, its peers on a circle by dense index.

    `peers` has `peer`, `role` (subscriber, relay or peer: its colour) and `publishes` (it gets
    a ring), `links` has `src`, `dst` and `inside` (both ends subscribe to the topic shown).
    `size` is the number of peers of the run, so that a peer keeps its place from one time to
    the next.
    """
    from matplotlib.collections import LineCollection

    with _styled():
        figure, (panel,) = _panels(1, title, height=6.2)
        inside = np.array(links["inside"].to_pylist(), dtype=bool)
        places = _places(np.arange(size), size)
        chords = _chords(places, _numbers(links["src"]), _numbers(links["dst"]))
        alpha = float(np.clip(12 / math.sqrt(len(chords) + 1), 0.08, 0.6))
        for which, colour, width in ((~inside, _OUTSIDE, 0.5), (inside, _INSIDE, 0.9)):
            panel.add_collection(
                LineCollection(chords[which], colors=colour, linewidths=width, alpha=alpha)
            )
        _draw_peers(panel, peers, places, size)
        panel.set_aspect("equal")
        panel.set_axis_off()
        panel.margins(0.03)
        if peers.num_rows:
            panel.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=4)
    return figure


def _draw_peers(panel: Axes, peers: pa.Table, places: np.ndarray, size: int) -> None:
    area = float(np.clip(9000 / size, 4, 90))
    for role in reversed(ROLE_COLOURS):
        colour = ROLE_COLOURS[role]
        style: dict[str, Any] = {"color": colour, "edgecolors": "white", "linewidths": 0.6}
        of = peers.filter(pc.field("role") == role)
        _draw_dots(panel, of, places, role, {**style, "s": area, "zorder": 3})
    ring: dict[str, Any] = {"facecolors": "none", "edgecolors": PUBLISHER_COLOUR, "zorder": 4}
    publishers = peers.filter(pc.field("publishes"))
    _draw_dots(panel, publishers, places, "publisher", {**ring, "s": 1.7 * area, "linewidths": 2})


def _draw_dots(
    panel: Axes, peers: pa.Table, places: np.ndarray, label: str, style: dict[str, Any]
) -> None:
    if peers.num_rows:
        x, y = places[_numbers(peers["peer"]).astype(int)].T
        panel.scatter(x, y, label=f"{label} ({peers.num_rows})", **style)


def _places(peers: np.ndarray, size: int) -> np.ndarray:
    angle = 2 * np.pi * peers / max(size, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _chords(places: np.ndarray, src: np.ndarray, dst: np.ndarray, points: int = 13) -> np.ndarray:
    """Curves bent towards the centre, so that neighbours on the circle stay apart."""
    start, end = places[src.astype(int)][:, None], places[dst.astype(int)][:, None]
    t = np.linspace(0, 1, points)[None, :, None]
    middle = (start + end) / 2 * 0.55
    curves: np.ndarray = (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
    return curves


def save(figure: Figure, out: Path | IO[bytes], form: str) -> None:
    """Write the figure as `png`, `svg` or `pdf`, without dates. Raises: UseError."""
    if form not in FORMATS:
        raise UseError(f"'{form}' is no format for a figure; use {', '.join(FORMATS)}")
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with _styled(), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(out, format=form, metadata=undated[form])


@contextmanager
def _styled() -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(_STYLE):
        yield


def _panels(count: int, title: str, height: float = _PANEL) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, max(height * count, 3.0)))
    if title:
        figure.suptitle(_plain(title))
    return figure, list(figure.subplots(count, 1, squeeze=False)[:, 0])


def _share_x(panels: Sequence[Axes]) -> None:
    for panel in panels[:-1]:
        panel.sharex(panels[-1])
        panel.tick_params(labelbottom=False)


def _colours() -> Iterator[str]:
    while True:
        yield from PALETTE


def _measured(table: pa.Table, name: str) -> tuple[np.ndarray, str]:
    """The values of a column as doubles (null = NaN), and its name with the unit."""
    values, unit = _numbers(table[name]), _unit(name)
    if unit == "µs":
        return values / 1000, f"{name.replace('_us', '')} (ms)"
    return values, f"{name} ({unit})" if unit else name


def _unit(name: str) -> str:
    columns: Iterable[Column] = (c for t in (*METRICS, RECEPTIONS) for c in t if c.name == name)
    return next((column.unit for column in columns), "µs" if name.endswith("_us") else "")


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = column.cast(pa.float64()).fill_null(math.nan).to_numpy()
    return values


def _keep_whole(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _is_counted(table: pa.Table, name: str) -> bool:
    """Whether the values are drawn as the whole numbers they are (µs are drawn as ms)."""
    return pa.types.is_integer(table.schema.field(name).type) and _unit(name) != "µs"


def _show_all(panel: Axes, x: np.ndarray) -> None:
    """The whole range of x, whether anything is known there or not."""
    margin = 0.05 * float(np.ptp(x)) or 0.5
    panel.set_xlim(x.min() - margin, x.max() + margin)


def _say_if_unknown(panel: Axes, values: np.ndarray) -> None:
    if not len(values) or np.isnan(values).all():
        panel.set_yticks([])
        panel.text(0.5, 0.5, "unknown", transform=panel.transAxes, ha="center", va="center")


def _short(name: str, width: int = 24) -> str:
    return _plain(name if len(name) <= width else f"{name[:8]}…{name[9 - width :]}")


def _plain(text: str) -> str:
    return text.replace("$", r"\$")  # or matplotlib takes it for mathematics


def _require(something: Any) -> None:
    if not something:
        raise UseError("there is nothing to draw")
