"""An overlay at one time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.figures.canvas import GREY, numbers, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PUBLISHER_COLOUR = "#D55E00"
ROLE_COLOURS = {
    "subscriber": "#0072B2",
    "relay": "#E69F00",
    "peer": GREY,
}
RENDEZVOUS_COLOUR = "#009E73"
_RINGS = {
    "publishes": ("publisher", _PUBLISHER_COLOUR, 1.7),
    "rendezvous": ("rendezvous", RENDEZVOUS_COLOUR, 3.2),
}
"""Meaning, colour and area of rings around peers, from inside to outside."""
_INSIDE, _OUTSIDE = "#0072B2", GREY


def overlay_snapshot(peers: pa.Table, links: pa.Table, size: int, title: str = "") -> Figure:
    """An overlay at one time, its peers on a circle by dense index.

    `peers` has `peer`, `role` (subscriber, relay or peer: its colour), `publishes` and
    `rendezvous` (a ring each), `links` has `src`, `dst` and `inside` (both ends
    subscribe to the topic shown). `size` is the number of peers of the run, so that a peer
    keeps its place from one time to the next.
    """
    from matplotlib.collections import LineCollection

    with styled():
        figure, (panel,) = panels(1, title, height=6.2)
        inside = np.array(links["inside"].to_pylist(), dtype=bool)
        places = places_on_ring(np.arange(size), size)
        chords = _chords(places, numbers(links["src"]), numbers(links["dst"]))
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
    for column, (label, colour, wider) in _RINGS.items():
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": colour, "linewidths": 2}
        of = peers.filter(pc.field(column))
        _draw_dots(panel, of, places, label, {**ring, "s": wider * area, "zorder": 4})


def _draw_dots(
    panel: Axes, peers: pa.Table, places: np.ndarray, label: str, style: dict[str, Any]
) -> None:
    if peers.num_rows:
        x, y = places[numbers(peers["peer"]).astype(int)].T
        panel.scatter(x, y, label=f"{label} ({peers.num_rows})", **style)


def places_on_ring(peers: np.ndarray, size: int) -> np.ndarray:
    """Positions of peers on a circle of `size` places; shape (peers, 2)."""
    angle = 2 * np.pi * peers / max(size, 1)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _chords(places: np.ndarray, src: np.ndarray, dst: np.ndarray, points: int = 13) -> np.ndarray:
    """Curves that bend towards the centre."""
    start, end = places[src.astype(int)][:, None], places[dst.astype(int)][:, None]
    t = np.linspace(0, 1, points)[None, :, None]
    middle = (start + end) / 2 * 0.55
    curves: np.ndarray = (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
    return curves
