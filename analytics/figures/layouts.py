"""Positions of the peers of a dissemination: on a ring, or in layers by hop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vizpub.analytics.figures.overlay import places_on_ring
from vizpub.analytics.figures.styles import current_options, ground, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]
"""Rows of the peers, or of the copies, of vizpub.analytics.figures.dissemination_tree."""

_RADIUS = 190
"""Approximate radius of the ring, in points, in a figure of the standard width."""
_LARGEST, _SMALLEST = 15.0, 3.0
_ROW = 0.18
"""Height of a row of the layers, in inches."""


@dataclass(frozen=True)
class Layout:
    """Positions and sizes of peers."""

    places: Mapping[int, tuple[float, float]]
    diameter: float
    """Size of a peer, in points."""
    height: float
    """Size of the figure, in inches."""
    columns: Sequence[str] = ()
    """Names of the layers from left to right; none = a ring."""
    leaves: frozenset[int] = frozenset()
    """Peers with room for a name to the right."""

    def bend(self, source: int, target: int) -> float:
        """Curvature of an arrow, relative to its length; positive = to the right.

        On the ring arrows bend towards the centre, those to a higher number more than those back,
        so that both are visible.
        """
        if self.columns:
            return 0.12 if self.places[source][0] >= self.places[target][0] else 0.0
        a, b = np.array(self.places[source]), np.array(self.places[target])
        middle, across = (a + b) / 2, b - a
        right = np.array([across[1], -across[0]])
        length = float(np.hypot(*across)) or 1.0
        share = 0.45 if source < target else 0.3
        pull = share * float(np.clip(np.hypot(*middle) / length, 0.1, 1.0))
        return -pull if float(right @ middle) > 1e-9 else pull

    def curve(self, source: int, target: int) -> np.ndarray:
        """Points of the arrow between two peers; shape (points, 2)."""
        a, b = np.array(self.places[source]), np.array(self.places[target])
        right = np.array([b[1] - a[1], a[0] - b[0]])
        middle = (a + b) / 2 + self.bend(source, target) * right
        t = np.linspace(0, 1, 13)[:, None]
        points: np.ndarray = (1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b
        return points

    def name(self, panel: Axes, peer: int, name: str) -> None:
        """Write a peer's name beside it."""
        from matplotlib.patheffects import withStroke

        x, y = self.places[peer]
        clear: dict[str, Any] = {
            "fontsize": 5.5 * max(current_options().scale, 0.8),
            "color": ink("#555555"),
            "path_effects": [withStroke(linewidth=1.5, foreground=ground())],
        }
        if self.columns:
            clear |= (
                {"xytext": (0.5 * self.diameter + 2, 0), "ha": "left", "va": "center"}
                if peer in self.leaves
                else {
                    "xytext": (0.45 * self.diameter, 0.25 * self.diameter),
                    "ha": "left",
                    "va": "bottom",
                }
            )
            panel.annotate(name, (x, y), textcoords="offset points", **clear)
            return
        angle = float(np.degrees(np.arctan2(y, x)))
        left = abs(angle) > 90
        out = 1 + (self.diameter / 2 + 3) / (_RADIUS * current_options().scale)
        panel.text(
            out * x, out * y, name, rotation=angle + 180 if left else angle,
            rotation_mode="anchor", ha="right" if left else "left", va="center", **clear,
        )  # fmt: skip


def ring_layout(peers: Sequence[int]) -> Layout:
    """The peers by number on a circle, anticlockwise from the right, evenly spread."""
    ordered = sorted(peers)
    places = places_on_ring(np.arange(len(ordered)), len(ordered))
    room = 2 * np.pi * _RADIUS * current_options().scale
    diameter = float(np.clip(0.75 * room / max(len(ordered), 1), _SMALLEST, _LARGEST))
    return Layout(dict(zip(ordered, map(tuple, places.tolist()), strict=True)), diameter, 7.4)


def layer_layout(columns: Mapping[str, Sequence[int]], parents: Mapping[int, int | None]) -> Layout:
    """A column for each hop; each peer is centred on the peers it reached first.

    `columns` has the peers of each column by name, from left to right; `parents` the peer from
    which each peer had its first copy. Subtrees have rows of their own, so first receptions do
    not cross unless a hop is not one more than the previous.
    """
    column = {peer: x for x, peers_at_hop in enumerate(columns.values()) for peer in peers_at_hop}
    rows = _rows(column, parents)
    places = {peer: (float(column[peer]), rows[peer]) for peer in column}
    count = max(rows.values(), default=0.0) + 1
    height = float(np.clip(_ROW * count + 1.6, 3.2, 20.0))
    diameter = float(np.clip(0.75 * 72 * (height - 1.6) / count, _SMALLEST, 11.0))
    leaves = frozenset(column) - frozenset(parents.values())
    return Layout(places, diameter, height, list(columns), leaves)


def later_copies(peers: Rows, copies: Rows) -> list[int | None]:
    """For each copy the place, in `copies`, of the one that its sender passed on, if that was not
    the sender's first: the copy of one hop less there. So it is on the way to Scribe's root, where
    a peer sends to its children only what comes back from the root. Null = its first, or unknown.
    """
    hops = {row["peer"]: row["hop"] for row in peers}
    later: dict[tuple[int, int], int] = {}
    for place, row in enumerate(copies):
        if not row["first"] and row["hop"] is not None and row["hop"] != hops[row["peer"]]:
            later.setdefault((row["peer"], row["hop"]), place)
    return [
        None if row["hop"] is None else later.get((row["previous_hop"], row["hop"] - 1))
        for row in copies
    ]


def add_later_copies(peers: Rows, copies: Rows) -> tuple[Rows, Rows]:
    """The rows with a peer of its own, of a number below 0, for each of the `later_copies` by which
    a first reception came: its sender stands again, at the hop of that copy.
    """
    held = later_copies(peers, copies)
    again: dict[int | None, int] = {}
    waiting = [place for place, row in enumerate(copies) if row["first"]]
    while waiting:
        place = held[waiting.pop()]
        if place is not None and place not in again:
            again[place] = -1 - len(again)
            waiting.append(place)
    by_peer = {row["peer"]: row for row in peers}
    extra = [
        {
            **by_peer[row["peer"]],
            "peer": again[place],
            "hop": row["hop"],
            "role": "again",
            "rendezvous": False,
        }
        for place, row in enumerate(copies)
        if place in again
    ]
    moved = [
        {
            **row,
            "peer": again.get(place, row["peer"]),
            "previous_hop": again.get(held[place], row["previous_hop"]),
        }
        for place, row in enumerate(copies)
    ]
    return [*peers, *extra], moved


def in_layers(peers: Rows, copies: Rows) -> Layout:
    """The peers of one message `layered` by the hop of their first reception: `peers` and `copies`
    are rows of vizpub.analytics.figures.dissemination_tree. Peers of unknown hop, and those that
    missed it, come last, in columns of their own. A number below 0 is a peer that stands again,
    with a later copy.
    """
    last = max((row["hop"] or 0 for row in peers), default=0)
    columns: dict[str, list[int]] = {str(hop): [] for hop in range(last + 1)}
    rest: dict[str, list[int]] = {"?": [], "missed": []}
    for row in peers:
        if row["hop"] is None:
            rest["missed" if row["role"] == "missed" else "?"].append(row["peer"])
        else:
            columns[str(row["hop"])].append(row["peer"])
    placing = [row for row in copies if row["first"] or row["peer"] < 0]
    parents = {row["peer"]: row["previous_hop"] for row in placing}
    return layer_layout(columns | {name: found for name, found in rest.items() if found}, parents)


def _rows(column: Mapping[int, int], parents: Mapping[int, int | None]) -> dict[int, float]:
    """Rows of the peers: one for each leaf; other peers are centred on their children."""
    children: dict[int | None, list[int]] = defaultdict(list)
    for peer in sorted(column):
        children[parents.get(peer)].append(peer)
    roots = [peer for peer in sorted(column) if parents.get(peer) not in column]
    roots.sort(key=lambda peer: peer not in children)  # peers without children come last
    rows: dict[int, float] = {}
    bottom = 0
    # Peers below no root form circles; any of them can serve as a root.
    for peer in _children_first([*roots, *sorted(column)], children):
        further = [child for child in children.get(peer, ()) if column[child] > column[peer]]
        below = [rows[child] for child in further if child in rows]
        rows[peer] = float(np.mean(below)) if below else float(bottom)
        bottom += not below
    return rows


def _children_first(
    roots: Sequence[int], children: Mapping[int | None, Sequence[int]]
) -> Iterator[int]:
    """Every peer below the roots once, after its children."""
    seen: set[int] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            peer, children_done = stack.pop()
            if children_done:
                yield peer
            elif peer not in seen:
                seen.add(peer)
                stack.append((peer, True))
                stack.extend((child, False) for child in reversed(children.get(peer, ())))
