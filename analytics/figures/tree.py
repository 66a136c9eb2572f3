"""How one message spread, hop by hop: on a ring of the peers, or in layers from the publisher.

The ring is that of figures 4.13 and 4.14 of the VizPub thesis: peers ordered by number, which
distinguishes copies to neighbours on the ring from copies across it; each peer shows the hop of
its first reception.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vizpub.analytics.figures.canvas import panels, use_whole_ticks
from vizpub.analytics.figures.labels import shorten
from vizpub.analytics.figures.layouts import Layout, Rows, add_later_copies, in_layers, ring_layout
from vizpub.analytics.figures.overlay import RENDEZVOUS_COLOUR
from vizpub.analytics.figures.styles import GREY, current_options, figure_style, ink
from vizpub.model.errors import UnknownName

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

LAYOUTS = ("ring", "layers")
_INK = "#333333"
_DASHED = (0, (4, 3))
_LOOKS = {
    "publisher": ("D", "white", "#0072B2", 1.8),
    "subscriber": ("o", None, _INK, 0.6),
    "relay": ("s", None, _INK, 0.6),
    "peer": ("^", None, _INK, 0.6),
    "again": ("o", "white", _INK, 0.6),
    "missed": ("X", "#CC79A7", _INK, 0.6),
    "ahead": ("o", "white", GREY, 0.6),
}
"""Marker, colour (null = colour of the hop), edge and edge width."""
_RING: dict[str, Any] = {"facecolors": "none", "edgecolors": RENDEZVOUS_COLOUR, "zorder": 3}
_NAMED, _NUMBERED = 100, 400
"""Up to this many peers have a name, or the number of their hop."""
_THICK, _POINTED = 400, 2000
"""Up to this many copies have a thick line, or an arrowhead."""


def dissemination_tree(
    peers: pa.Table,
    copies: pa.Table,
    title: str = "",
    *,
    layout: str = "ring",
    hops: int | None = None,
    until_us: int | None = None,
) -> Figure:
    """One message: arrows for its copies, dashed for duplicates, peers deeper in colour by hop.

    `peers` has `peer`, `peer_name`, `role` (publisher, subscriber, relay, missed or peer),
    `hop` (0 = publisher, null = unknown), `duplicates` and `rendezvous` (a ring);
    `copies` has `hop`, `previous_hop`,
    `peer` and `first`. `layout` is `ring` or `layers`. With `hops` only copies up to that
    hop are drawn, with `until_us` those up to this time (column `time_us`), and every peer keeps
    its position. A peer's number is the hop of its first reception; a copy of unknown origin has
    no arrow. In layers, a peer that passed a later copy on stands again at the hop of that copy.

    Raises: UnknownName for the layout.
    """
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    rows = peers.to_pylist(), copies.to_pylist()
    if layout == "ring":
        dissemination = _Dissemination(*rows, hops, until_us)
        positions = ring_layout([row["peer"] for row in dissemination.peers])
    else:
        dissemination = _Dissemination(*add_later_copies(*rows), hops, until_us)
        positions = in_layers(dissemination.peers, dissemination.copies)
    with figure_style():
        is_ring = layout == "ring"
        figure, (panel,) = panels(1, title, height=positions.height, square=is_ring)
        _prepare_panel(panel, positions)
        _draw_copies(panel, dissemination, positions)
        _draw_peers(panel, dissemination, positions)
        _add_legend(figure, dissemination)
    return figure


@dataclass(frozen=True)
class _Dissemination:
    """The rows of a message, and which of them are drawn."""

    peers: Rows
    copies: Rows
    hops: int | None
    until_us: int | None = None

    @cached_property
    def last(self) -> int:
        """The largest hop of a first reception."""
        return max((row["hop"] or 0 for row in self.peers), default=0)

    @cached_property
    def times(self) -> dict[int, int | None]:
        """The time of each peer's first reception, or of its later copy where it stands again."""
        of_peers = (row for row in self.copies if row["first"] or row["peer"] < 0)
        return {row["peer"]: row["time_us"] for row in of_peers}

    @property
    def is_partial(self) -> bool:
        """True if only what happened up to a hop or a time is drawn."""
        return self.hops is not None or self.until_us is not None

    def is_over(self, row: Mapping[str, Any]) -> bool:
        """Return True if a copy, or a peer's first reception, is to be drawn."""
        if self.until_us is not None and row.get("role") != "publisher":
            time = row["time_us"] if "time_us" in row else self.times.get(row["peer"])
            return time is not None and time <= self.until_us
        return self.hops is None or (row["hop"] is not None and row["hop"] <= self.hops)

    @property
    def pairs(self) -> dict[tuple[int, int], bool]:
        """(from, to) of the copies drawn, and whether one of them was the first."""
        pairs: dict[tuple[int, int], bool] = defaultdict(bool)
        for row in filter(self.is_over, self.copies):
            if row["previous_hop"] is not None:
                pairs[row["previous_hop"], row["peer"]] |= row["first"]
        return dict(pairs)

    @property
    def scale(self) -> ScalarMappable:
        """The colours of the hops, darker with the distance from the publisher."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        # The lightest tenth of the scale is almost white.
        return ScalarMappable(Normalize(-max(self.last, 1) / 9, max(self.last, 1)), "YlOrRd")

    def shade(self, hop: int | None) -> Any:
        """The colour of a hop; white = unknown."""
        return "white" if hop is None else self.scale.to_rgba(np.array(hop))

    def look_of(self, row: Mapping[str, Any]) -> str:
        """Look of a peer in `_LOOKS`: its role, or as `ahead` if its hop is not drawn yet."""
        role: str = row["role"]
        return role if not self.is_partial or self.is_over(row) else "ahead"


def _prepare_panel(panel: Axes, positions: Layout) -> None:
    panel.grid(False)
    if not positions.columns:
        panel.margins(0.08)
        panel.set_aspect("equal")
        panel.set_axis_off()
        return
    panel.set_xticks(range(len(positions.columns)), positions.columns)
    panel.set_xlabel("hop")
    panel.set_yticks([])
    panel.set_xlim(-0.5, len(positions.columns) - 0.5)
    panel.set_ylim(max((y for _, y in positions.places.values()), default=0) + 1, -1)
    panel.spines["left"].set_visible(False)


def _draw_copies(panel: Axes, dissemination: _Dissemination, positions: Layout) -> None:
    pairs = dissemination.pairs
    thin = 0.6 if len(pairs) > _THICK else 1.0
    firsts: dict[str, Any] = {"color": ink(_INK), "lw": thin, "zorder": 2, "linestyle": "-"}
    duplicates: dict[str, Any] = {
        "color": GREY,
        "lw": 0.6 * thin,
        "zorder": 1,
        "linestyle": _DASHED,
    }
    draw = _draw_arrows if len(pairs) <= _POINTED else _draw_lines
    draw(panel, [pair for pair, first in pairs.items() if not first], positions, duplicates)
    draw(panel, [pair for pair, first in pairs.items() if first], positions, firsts)


def _draw_arrows(
    panel: Axes, pairs: Sequence[tuple[int, int]], positions: Layout, style: dict[str, Any]
) -> None:
    from matplotlib.patches import FancyArrowPatch

    for source, target in pairs:
        arrow = FancyArrowPatch(
            positions.places[source],
            positions.places[target],
            connectionstyle=f"arc3,rad={positions.bend(source, target):.4f}",
            arrowstyle="-|>",
            mutation_scale=7,
            shrinkA=positions.diameter / 2,
            shrinkB=positions.diameter / 2 + 1,
            **style,
        )
        # As a patch it would extend the limits by its screen coordinates.
        panel.add_artist(arrow)


def _draw_lines(
    panel: Axes, pairs: Sequence[tuple[int, int]], positions: Layout, style: dict[str, Any]
) -> None:
    from matplotlib.collections import LineCollection

    curves = [positions.curve(*pair) for pair in pairs]
    panel.add_collection(LineCollection(curves, **style), autolim=False)


def _draw_peers(panel: Axes, dissemination: _Dissemination, positions: Layout) -> None:
    by_look: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in dissemination.peers:
        by_look[dissemination.look_of(row)].append(row)
    for look, rows in by_look.items():
        marker, face, edge, width = _LOOKS[look]
        x, y = zip(*(positions.places[row["peer"]] for row in rows), strict=True)
        colours = [face or dissemination.shade(row["hop"]) for row in rows]
        style: dict[str, Any] = {
            "marker": marker,
            "edgecolors": edge,
            "linewidths": width,
            "zorder": 3,
        }
        panel.scatter(x, y, s=positions.diameter**2, color=colours, **style)
    if rings := [positions.places[row["peer"]] for row in dissemination.peers if row["rendezvous"]]:
        x, y = zip(*rings, strict=True)
        panel.scatter(x, y, s=(positions.diameter + 6) ** 2, linewidths=1.8, **_RING)
    if len(dissemination.peers) <= _NUMBERED:
        for row in filter(dissemination.is_over, dissemination.peers):
            _write_hop(panel, dissemination, positions, row)
    if len(dissemination.peers) <= _NAMED * current_options().scale:
        for row in dissemination.peers:
            positions.name(panel, row["peer"], shorten(row["peer_name"], 14))


def _write_hop(
    panel: Axes, dissemination: _Dissemination, positions: Layout, row: Mapping[str, Any]
) -> None:
    """Write the hop on a peer, in a contrasting colour."""
    if row["role"] == "missed":
        return
    text = "?" if row["hop"] is None else str(row["hop"])
    deep = not _LOOKS[row["role"]][1] and (row["hop"] or 0) > 0.55 * dissemination.last
    panel.text(
        *positions.places[row["peer"]], text, color="white" if deep else "black", zorder=4,
        ha="center", va="center_baseline", fontsize=min(7.5, 0.6 * positions.diameter),
    )  # fmt: skip


def _add_legend(figure: Figure, dissemination: _Dissemination) -> None:
    handles = [*_peer_handles(dissemination), *_copy_handles(dissemination)]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4 if current_options().scale >= 1 else 2
    )
    if len(dissemination.peers) > _NUMBERED:
        bar = figure.colorbar(
            dissemination.scale, ax=figure.axes[0], label="hop", shrink=0.4, pad=0
        )
        bar.ax.set_ylim(0, max(dissemination.last, 1))
        use_whole_ticks(bar.ax.yaxis)


def _peer_handles(dissemination: _Dissemination) -> Iterator[Any]:
    from matplotlib.lines import Line2D

    counts = Counter(map(dissemination.look_of, dissemination.peers))
    meanings = {
        "relay": "relay, not subscribed",
        "peer": "interest unknown",
        "ahead": "not reached yet"
        if dissemination.hops is None
        else f"not reached by hop {dissemination.hops}",
        "again": "had it, passes a later copy on",
    }
    for look, (marker, face, edge, _) in _LOOKS.items():
        if counts[look]:
            label = f"{meanings.get(look, look)} ({counts[look]})"
            style: dict[str, Any] = {
                "marker": marker,
                "mfc": face or dissemination.shade(1),
                "mec": edge,
            }
            yield Line2D([], [], ls="", ms=7, label=label, **style)
    if count := sum(row["rendezvous"] for row in dissemination.peers):
        style = {"marker": "o", "mfc": "none", "mec": _RING["edgecolors"], "mew": 1.8}
        yield Line2D([], [], ls="", ms=9, label=f"rendezvous ({count})", **style)


def _copy_handles(dissemination: _Dissemination) -> Iterator[Any]:
    from matplotlib.lines import Line2D

    drawn = [row for row in dissemination.copies if dissemination.is_over(row)]
    firsts = sum(row["first"] for row in drawn)
    if firsts:
        yield Line2D([], [], color=ink(_INK), lw=1.0, label=f"first reception ({firsts})")
    if len(drawn) > firsts:
        label = f"duplicate ({len(drawn) - firsts})"
        yield Line2D([], [], color=GREY, lw=0.8, ls=_DASHED, label=label)
