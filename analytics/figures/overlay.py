"""An overlay at one time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.figures.canvas import (
    new_figure,
    numbers,
    panel_grid,
    panels,
    use_whole_ticks,
)
from vizpub.analytics.figures.force import places_by_force
from vizpub.analytics.figures.labels import escape, shorten
from vizpub.analytics.figures.styles import (
    GREY,
    STANDARD_WIDTH,
    current_options,
    figure_style,
    ground,
    ink,
    shades_of,
)
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.naming import captions

if TYPE_CHECKING:
    from matplotlib.artist import Artist
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
OVERLAY_LAYOUTS = ("force", "ring")
MOST_BY_FORCE = 1000
"""Peers in a layout by forces at most, which takes some seconds then."""
_NAMED = 60
"""Peers with names at most."""
_ABREAST = 3
"""Panels in a row."""
_LEAST_AREA, _MORE_AREA = 0.3, 2.7
"""Of a peer whose number is 0, and by how much the area of the largest is larger; 1 = without."""
_INSIDE, _OUTSIDE = "#0072B2", GREY
_MOST_ARROWS = 1000
"""Links that go one way up to which these have arrowheads."""
_HEAD = 0.009
"""Half the length of an arrowhead, of the width of all places."""


def overlay_snapshot(
    peers: pa.Table,
    links: pa.Table,
    size: int,
    title: str = "",
    *,
    layout: str = "ring",
    places: np.ndarray | None = None,
) -> Figure:
    """An overlay at one time.

    `peers` has `peer`, `role` (subscriber, relay or peer: its colour), `publishes` and
    `rendezvous` (a ring each), `links` has `src`, `dst` and `inside` (both ends
    subscribe to the topic shown). If `peers` has a dictionary `group`, that decides their colours.
    Its numbers `shade` and `weight` (null = unknown) are shown by colour and by area, with scales
    of the name that the metadata of their fields has.
    `size` is the number of peers of the run.

    The layout `ring` has a place for each peer of the run, so that it keeps its place from one
    time to the next; `force` has only the peers given, near those they are linked to, with
    short names (column `peer_name`) if they are few. Links that go one way have an arrowhead behind
    their middle, unless they are too many. `places` are the positions by force of all
    peers of the run, of shape (size, 2) and at most 1 from the centre; with them, peers keep their
    places here, too.

    Raises: UnknownName for another layout, UseError for too many peers.
    """
    _check_layout(layout)
    with figure_style():
        figure, (panel,) = panels(1, title, height=6.2, square=True)
        _draw_overlay(panel, (peers, links), size, layout, places)
        if panel.get_legend_handles_labels()[0]:
            panel.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=4)
    return figure


def overlay_snapshots(
    snapshots: Mapping[str, tuple[pa.Table, pa.Table]],
    size: int,
    title: str = "",
    *,
    layout: str = "ring",
) -> Figure:
    """An overlay at several times: a panel for the peers and links of each, below its name.

    Peers have the same place in all panels. The layout by force has the peers of all
    panels, by all their links.

    Raises: UnknownName, UseError as `overlay_snapshot`.
    """
    _check_layout(layout)
    places = None
    if layout == "force":
        peers = pa.concat_tables(peers.select(["peer"]) for peers, _ in snapshots.values())
        links = pa.concat_tables(links.select(["src", "dst"]) for _, links in snapshots.values())
        src, dst = (numbers(links[end]).astype(int) for end in ("src", "dst"))
        places = _places_by_force(peers.group_by("peer").aggregate([]), src, dst, size)
    abreast = 2 if len(snapshots) == 4 else min(_ABREAST, len(snapshots))
    lines = math.ceil(len(snapshots) / abreast)
    with figure_style():
        figure = new_figure(STANDARD_WIDTH / abreast * lines + 0.7, title, square=True)
        grid = panel_grid(figure, len(snapshots), abreast)
        looks: dict[str, Artist] = {}
        for panel, (name, snapshot) in zip(grid, snapshots.items(), strict=True):
            _draw_overlay(panel, snapshot, size, layout, places)
            panel.set_title(escape(name))
            for handle in panel.get_legend_handles_labels()[0]:
                looks.setdefault(str(handle.get_label()).partition(" (")[0], handle)
        figure.legend(looks.values(), looks, loc="outside lower center", ncols=4, markerscale=2)
    return figure


def _check_layout(layout: str) -> None:
    if layout not in OVERLAY_LAYOUTS:
        raise UnknownName("layout of an overlay", layout, OVERLAY_LAYOUTS)


def _draw_overlay(
    panel: Axes,
    snapshot: tuple[pa.Table, pa.Table],
    size: int,
    layout: str,
    places: np.ndarray | None,
) -> None:
    """Draw the peers and links into a panel, as `overlay_snapshot` explains."""
    from matplotlib.collections import LineCollection, PolyCollection

    peers, links = snapshot
    inside = np.array(links["inside"].to_pylist(), dtype=bool)
    src, dst = (numbers(links[end]).astype(int) for end in ("src", "dst"))
    keeps_places = layout == "ring" or places is not None
    if layout == "ring":
        places = places_on_ring(np.arange(size), size)
    elif places is None:
        places, size = _places_by_force(peers, src, dst, size), peers.num_rows
    bend, parts = (0.55, np.linspace(0, 1, 13)) if layout == "ring" else (1, np.array([0, 1]))
    chords = _curves(places[src], places[dst], bend, parts)
    spec = panel.get_subplotspec()
    scale = current_options().scale / (spec.get_gridspec().ncols if spec else 1)
    alpha = min(scale, 1.0) ** 0.5 * float(np.clip(12 / math.sqrt(len(chords) + 1), 0.08, 0.6))
    is_pointed = _one_way(src, dst, len(places))
    for which, colour, width in ((~inside, _OUTSIDE, 0.5), (inside, _INSIDE, 0.9)):
        panel.add_collection(
            LineCollection(
                chords[which], colors=colour, linewidths=width * min(scale, 1.0) ** 0.5, alpha=alpha
            )
        )
        pointed = which & is_pointed
        heads = list(_arrowheads(places, src[pointed], dst[pointed], bend))
        panel.add_collection(PolyCollection(heads, facecolors=colour, linewidths=0, zorder=2.5))
    _draw_peers(panel, peers, places, float(np.clip(9000 / max(size, 1), 4, 90)) * scale**2)
    if layout == "force" and size <= _NAMED * scale:
        _draw_names(panel, peers, places)
    panel.set_aspect("equal")
    panel.set_axis_off()
    panel.margins(0.03)
    if keeps_places and size:
        # Keep the limits that all places need, whichever of them are drawn.
        low, high = np.nanmin(places, axis=0), np.nanmax(places, axis=0)
        margin = 0.05 * max(*(high - low), 0.1)
        panel.set(
            xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin)
        )


def _places_by_force(peers: pa.Table, src: np.ndarray, dst: np.ndarray, size: int) -> np.ndarray:
    """A row for each peer of the run; NaN for those that are not among `peers`."""
    if peers.num_rows > MOST_BY_FORCE:
        raise UseError(
            f"a layout by forces has room for {MOST_BY_FORCE:,} peers, not {peers.num_rows:,}; "
            "take --layout ring"
        )
    present = numbers(peers["peer"]).astype(int)
    place = np.full(size, -1)
    place[present] = np.arange(len(present))
    places = np.full((size, 2), np.nan)
    places[present] = places_by_force(len(present), place[src], place[dst])
    return places


def _draw_names(panel: Axes, peers: pa.Table, places: np.ndarray) -> None:
    from matplotlib.patheffects import withStroke

    names = captions(peers["peer_name"].to_pylist())
    for peer, name in zip(peers["peer"].to_pylist(), names, strict=True):
        panel.annotate(
            escape(name), places[peer], textcoords="offset points", xytext=(0, 8), ha="center",
            fontsize=6.5, color=ink("#333333"), zorder=5,
            path_effects=[withStroke(linewidth=1.5, foreground=ground())],
        )  # fmt: skip


def _draw_peers(panel: Axes, peers: pa.Table, places: np.ndarray, area: float) -> None:
    if scaled := {"shade", "weight"}.intersection(peers.column_names):
        _draw_scaled(panel, peers, places, area)
    for name, colour, selected in () if scaled else _by_colour(peers):
        style: dict[str, Any] = {"color": colour, "edgecolors": ground(), "linewidths": 0.6}
        _draw_dots(panel, selected, places, name, {**style, "s": area, "zorder": 3})
    for column, (label, colour, wider) in _RINGS.items():
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": colour}
        ring["linewidths"] = float(np.clip(0.4 * area**0.5, 0.5, 2))
        selected = peers.filter(pc.field(column))
        _draw_dots(panel, selected, places, label, {**ring, "s": wider * area, "zorder": 4})


def _draw_scaled(panel: Axes, peers: pa.Table, places: np.ndarray, area: float) -> None:
    """Draw peers whose colour and area are numbers, with a bar of colours and some areas."""
    x, y = places[numbers(peers["peer"]).astype(int)].T
    areas = np.full(len(x), area)
    style: dict[str, Any] = {"edgecolors": ground(), "linewidths": 0.6, "zorder": 3}
    if "weight" in peers.column_names:
        weights = numbers(peers["weight"])
        most = float(np.nanmax(weights, initial=0)) or 1.0
        areas = area * (_LEAST_AREA + _MORE_AREA * np.nan_to_num(weights) / most)
        for part in (0.0, 0.5, 1.0):
            size = area * (_LEAST_AREA + _MORE_AREA * part)
            label = f"{escape(_name_of(peers, 'weight'))} {part * most:.3g}"
            panel.scatter([], [], s=size, color=GREY, label=label)
    if "shade" not in peers.column_names:
        panel.scatter(x, y, s=areas, color=ROLE_COLOURS["subscriber"], **style)
        return
    shades = numbers(peers["shade"])
    is_known = ~np.isnan(shades)
    if not is_known.all():
        unknown = x[~is_known], y[~is_known]
        label = f"unknown ({len(unknown[0])})"
        panel.scatter(*unknown, s=areas[~is_known], color=GREY, label=label, **style)
    dots = panel.scatter(
        x[is_known], y[is_known], s=areas[is_known], c=shades[is_known], cmap="viridis", **style
    )
    if figure := panel.get_figure(root=True):
        bar = figure.colorbar(dots, ax=panel, label=escape(_name_of(peers, "shade")), shrink=0.6)
        if np.all(shades[is_known] % 1 == 0):
            use_whole_ticks(bar.ax.yaxis)


def _name_of(peers: pa.Table, column: str) -> str:
    return str(peers.field(column).metadata[b"name"], "utf-8")


def _by_colour(peers: pa.Table) -> Iterator[tuple[str, str, pa.Table]]:
    """The name and colour of each group of peers, if the table has groups, otherwise of each role,
    with its peers.
    """
    if "group" not in peers.column_names:
        for role in reversed(ROLE_COLOURS):
            yield role, ROLE_COLOURS[role], peers.filter(pc.field("role") == role)
        return
    groups = peers["group"].combine_chunks()
    yield "unknown", GREY, peers.filter(groups.is_null())
    names = groups.dictionary.to_pylist()
    for name, colour in zip(names, shades_of(len(names)), strict=True):
        yield shorten(name), colour, peers.filter(pc.equal(groups.cast(pa.string()), name))


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


def _curves(start: np.ndarray, end: np.ndarray, bend: float, parts: np.ndarray) -> np.ndarray:
    """Points at these parts of curves that bend towards the centre (1 = straight), a row each."""
    start, end, t = start[:, None], end[:, None], parts[:, None]
    middle = (start + end) / 2 * bend
    curves: np.ndarray = (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
    return curves


def _one_way(src: np.ndarray, dst: np.ndarray, size: int) -> np.ndarray:
    """Flag the links without one in the other direction; none if they are too many."""
    is_one_way: np.ndarray = ~np.isin(src * size + dst, dst * size + src)
    return is_one_way if is_one_way.sum() <= _MOST_ARROWS else np.zeros_like(is_one_way)


def _arrowheads(places: np.ndarray, src: np.ndarray, dst: np.ndarray, bend: float) -> np.ndarray:
    """Triangles behind the middles of links, where those of links to one peer do not meet."""
    near, far = _curves(places[src], places[dst], bend, np.array([0.55, 0.65])).swapaxes(0, 1)
    along = (far - near) / np.maximum(np.hypot(*(far - near).T), 1e-9)[:, None]
    along *= _HEAD * (np.nanmax(places, initial=0) - np.nanmin(places, initial=0))
    across = along[:, ::-1] * (0.6, -0.6)
    middle = (near + far) / 2
    return np.stack([middle + along, middle - along + across, middle - along - across], axis=1)
