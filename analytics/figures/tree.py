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

from vizpub.analytics.figures.canvas import GREY, keep_whole, panels, short, styled
from vizpub.analytics.figures.layouts import Layout, in_layers, on_ring
from vizpub.analytics.figures.overlay import RENDEZVOUS_COLOUR
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
) -> Figure:
    """One message: arrows for its copies, dashed for duplicates, peers deeper in colour by hop.

    `peers` has `peer`, `peer_name`, `role` (publisher, subscriber, relay, missed or peer),
    `hop` (0 = publisher, null = unknown), `duplicates` and `rendezvous` (a ring);
    `copies` has `hop`, `previous_hop`,
    `peer` and `first`. `layout` is `ring` or `layers`. With `hops` only copies up to that
    hop are drawn, and every peer keeps its position. A peer's number is the hop of its first
    reception; a copy of unknown origin has no arrow.

    Raises: UnknownName for the layout.
    """
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    spread = _Spread(peers.to_pylist(), copies.to_pylist(), hops)
    placed = (
        on_ring([row["peer"] for row in spread.peers])
        if layout == "ring"
        else in_layers(spread.peers, spread.copies)
    )
    with styled():
        figure, (panel,) = panels(1, title, height=placed.height)
        _prepare(panel, placed)
        _draw_copies(panel, spread, placed)
        _draw_peers(panel, spread, placed)
        _explain(figure, spread)
    return figure


@dataclass(frozen=True)
class _Spread:
    """The rows of a message, and which of them are drawn."""

    peers: Sequence[dict[str, Any]]
    copies: Sequence[dict[str, Any]]
    hops: int | None

    @cached_property
    def last(self) -> int:
        """The largest hop of a first reception."""
        return max((row["hop"] or 0 for row in self.peers), default=0)

    def is_over(self, row: Mapping[str, Any]) -> bool:
        """Whether it happened by the last hop that is drawn."""
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

    def shown(self, row: Mapping[str, Any]) -> str:
        """How a peer is drawn: by its role, or as `ahead` if its hop is not drawn yet."""
        role: str = row["role"]
        return role if self.is_over(row) or self.hops is None else "ahead"


def _prepare(panel: Axes, placed: Layout) -> None:
    panel.grid(False)
    if not placed.columns:
        panel.margins(0.08)
        panel.set_aspect("equal")
        panel.set_axis_off()
        return
    panel.set_xticks(range(len(placed.columns)), placed.columns)
    panel.set_xlabel("hop")
    panel.set_yticks([])
    panel.set_xlim(-0.5, len(placed.columns) - 0.5)
    panel.set_ylim(max((y for _, y in placed.places.values()), default=0) + 1, -1)
    panel.spines["left"].set_visible(False)


def _draw_copies(panel: Axes, spread: _Spread, placed: Layout) -> None:
    pairs = spread.pairs
    thin = 0.6 if len(pairs) > _THICK else 1.0
    firsts: dict[str, Any] = {"color": _INK, "lw": thin, "zorder": 2, "linestyle": "-"}
    others: dict[str, Any] = {"color": GREY, "lw": 0.6 * thin, "zorder": 1, "linestyle": _DASHED}
    draw = _draw_arrows if len(pairs) <= _POINTED else _draw_lines
    draw(panel, [pair for pair, first in pairs.items() if not first], placed, others)
    draw(panel, [pair for pair, first in pairs.items() if first], placed, firsts)


def _draw_arrows(
    panel: Axes, pairs: Sequence[tuple[int, int]], placed: Layout, style: dict[str, Any]
) -> None:
    from matplotlib.patches import FancyArrowPatch

    for source, target in pairs:
        arrow = FancyArrowPatch(
            placed.places[source],
            placed.places[target],
            connectionstyle=f"arc3,rad={placed.bend(source, target):.4f}",
            arrowstyle="-|>",
            mutation_scale=7,
            shrinkA=placed.diameter / 2,
            shrinkB=placed.diameter / 2 + 1,
            **style,
        )
        # As a patch it would extend the limits by its screen coordinates.
        panel.add_artist(arrow)


def _draw_lines(
    panel: Axes, pairs: Sequence[tuple[int, int]], placed: Layout, style: dict[str, Any]
) -> None:
    from matplotlib.collections import LineCollection

    curves = [placed.curve(*pair) for pair in pairs]
    panel.add_collection(LineCollection(curves, **style), autolim=False)


def _draw_peers(panel: Axes, spread: _Spread, placed: Layout) -> None:
    by_look: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in spread.peers:
        by_look[spread.shown(row)].append(row)
    for look, rows in by_look.items():
        marker, face, edge, width = _LOOKS[look]
        x, y = zip(*(placed.places[row["peer"]] for row in rows), strict=True)
        colours = [face or spread.shade(row["hop"]) for row in rows]
        style: dict[str, Any] = {
            "marker": marker,
            "edgecolors": edge,
            "linewidths": width,
            "zorder": 3,
        }
        panel.scatter(x, y, s=placed.diameter**2, color=colours, **style)
    if rings := [placed.places[row["peer"]] for row in spread.peers if row["rendezvous"]]:
        x, y = zip(*rings, strict=True)
        panel.scatter(x, y, s=(placed.diameter + 6) ** 2, linewidths=1.8, **_RING)
    if len(spread.peers) <= _NUMBERED:
        for row in filter(spread.is_over, spread.peers):
            _number(panel, spread, placed, row)
    if len(spread.peers) <= _NAMED:
        for row in spread.peers:
            placed.name(panel, row["peer"], short(row["peer_name"], 14))


def _number(panel: Axes, spread: _Spread, placed: Layout, row: Mapping[str, Any]) -> None:
    """Write the hop on a peer, in a contrasting colour."""
    if row["role"] == "missed":
        return
    text = "?" if row["hop"] is None else str(row["hop"])
    deep = row["role"] != "publisher" and (row["hop"] or 0) > 0.55 * spread.last
    panel.text(
        *placed.places[row["peer"]], text, color="white" if deep else "black", zorder=4,
        ha="center", va="center_baseline", fontsize=min(7.5, 0.6 * placed.diameter),
    )  # fmt: skip


def _explain(figure: Figure, spread: _Spread) -> None:
    handles = [*_peer_handles(spread), *_copy_handles(spread)]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
    if len(spread.peers) > _NUMBERED:
        bar = figure.colorbar(spread.scale, ax=figure.axes[0], label="hop", shrink=0.4, pad=0)
        bar.ax.set_ylim(0, max(spread.last, 1))
        keep_whole(bar.ax.yaxis)


def _peer_handles(spread: _Spread) -> Iterator[Any]:
    from matplotlib.lines import Line2D

    counts = Counter(map(spread.shown, spread.peers))
    meanings = {
        "relay": "relay, not subscribed",
        "peer": "interest unknown",
        "ahead": f"not reached by hop {spread.hops}",
    }
    for look, (marker, face, edge, _) in _LOOKS.items():
        if counts[look]:
            label = f"{meanings.get(look, look)} ({counts[look]})"
            style: dict[str, Any] = {"marker": marker, "mfc": face or spread.shade(1), "mec": edge}
            yield Line2D([], [], ls="", ms=7, label=label, **style)
    if count := sum(row["rendezvous"] for row in spread.peers):
        style = {"marker": "o", "mfc": "none", "mec": _RING["edgecolors"], "mew": 1.8}
        yield Line2D([], [], ls="", ms=9, label=f"rendezvous ({count})", **style)


def _copy_handles(spread: _Spread) -> Iterator[Any]:
    from matplotlib.lines import Line2D

    drawn = [row for row in spread.copies if spread.is_over(row)]
    firsts = sum(row["first"] for row in drawn)
    if firsts:
        yield Line2D([], [], color=_INK, lw=1.0, label=f"first reception ({firsts})")
    if len(drawn) > firsts:
        label = f"duplicate ({len(drawn) - firsts})"
        yield Line2D([], [], color=GREY, lw=0.8, ls=_DASHED, label=label)
