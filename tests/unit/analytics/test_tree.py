"""A message's dissemination as it is drawn: read back from the figure."""

from __future__ import annotations

import io
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from tests.support.words import unknown
from vizpub.analytics.figures import LAYOUTS, dissemination_tree, save
from vizpub.analytics.figures.layouts import layer_layout, ring_layout
from vizpub.model.errors import UnknownName

# alice → bob → dave → erin, alice → carol, and carol → bob again; frank is missed, and of
# gina nothing is known but that she had it.
PEERS = [
    (0, "alice", "publisher", 0, 0),
    (2, "bob", "subscriber", 1, 1),
    (3, "carol", "relay", 1, 0),
    (5, "dave", "subscriber", 2, 0),
    (6, "erin", "subscriber", 3, 0),
    (7, "frank", "missed", None, 0),
    (9, "gina", "peer", None, 0),
]
COPIES = [(1, 0, 2, True), (1, 0, 3, True), (2, 3, 2, False), (2, 2, 5, True), (3, 5, 6, True),
          (None, None, 9, True)]  # fmt: skip


def rows(columns: str, values: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(columns.split(), row, strict=True)) for row in values])


def people(values: list[tuple[Any, ...]], root: int | None = None) -> pa.Table:
    told = [(*row, row[0] == root) for row in values]
    return rows("peer peer_name role hop duplicates rendezvous", told)


def tables() -> tuple[pa.Table, pa.Table]:
    return (
        people(PEERS),
        rows("hop previous_hop peer first", COPIES),
    )


def arrows(figure: Figure) -> list[FancyArrowPatch]:
    return [a for a in figure.axes[0].get_children() if isinstance(a, FancyArrowPatch)]


def ends(arrow: FancyArrowPatch) -> tuple[tuple[float, ...], tuple[float, ...]]:
    start, end = arrow._posA_posB  # type: ignore[attr-defined]
    return tuple(np.round(start, 6)), tuple(np.round(end, 6))


def dots(figure: Figure) -> dict[tuple[float, ...], Any]:
    """The colour of each peer by its place."""
    found = {}
    for collection in figure.axes[0].collections:
        if isinstance(collection, PathCollection):
            places, colours = collection.get_offsets(), collection.get_facecolor()
            for place, colour in zip(np.asarray(places), np.asarray(colours), strict=True):
                found[tuple(np.round(place, 6))] = tuple(colour)
    return found


def told(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def numbers(figure: Figure) -> dict[tuple[float, ...], str]:
    texts = figure.axes[0].texts
    return {tuple(np.round(t.get_position(), 6)): t.get_text() for t in texts if t.zorder == 4}


def ring_place(rank: int, count: int = len(PEERS)) -> tuple[float, float]:
    angle = math.tau * rank / count
    return round(math.cos(angle), 6), round(math.sin(angle), 6)


def test_ring_layout_has_peers_in_order_with_their_hops() -> None:
    figure = dissemination_tree(*tables())
    expected = {
        ring_place(rank): "?" if role == "peer" else str(hop)
        for rank, (_, _, role, hop, _) in enumerate(PEERS)
        if role != "missed"
    }
    assert numbers(figure) == expected
    assert set(dots(figure)) == {ring_place(rank) for rank in range(len(PEERS))}


def test_copies_are_arrows_and_duplicates_are_dashed() -> None:
    figure = dissemination_tree(*tables())
    rank = {peer: i for i, (peer, *_) in enumerate(PEERS)}
    solid = {ends(arrow): arrow.get_linestyle() == "-" for arrow in arrows(figure)}
    assert solid == {
        (ring_place(rank[a]), ring_place(rank[b])): first
        for _, a, b, first in COPIES
        if a is not None
    }
    assert told(figure) == [
        "publisher (1)", "subscriber (3)", "relay, not subscribed (1)", "interest unknown (1)",
        "missed (1)", "first reception (5)", "duplicate (1)",
    ]  # fmt: skip


def test_peer_colour_is_darker_with_each_hop() -> None:
    colour = dots(dissemination_tree(*tables()))
    brightness = [sum(colour[ring_place(rank)][:3]) for rank in (2, 3, 4)]
    assert brightness == sorted(brightness, reverse=True)
    assert colour[ring_place(1)] == colour[ring_place(2)]
    assert colour[ring_place(6)] == to_rgba("white")
    assert colour[ring_place(5)] == to_rgba("#CC79A7")


def test_rendezvous_is_marked_with_a_ring() -> None:
    figure = dissemination_tree(people(PEERS, root=3), tables()[1])
    assert "rendezvous (1)" in told(figure)
    (ring,) = [c for c in figure.axes[0].collections if not len(np.asarray(c.get_facecolor()))]
    (place,) = np.asarray(ring.get_offsets())
    assert tuple(np.round(place, 6)) == ring_place(2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_peers_keep_their_places_when_hops_are_limited(layout: str) -> None:
    whole, part = (dissemination_tree(*tables(), layout=layout, hops=h) for h in (None, 1))
    assert set(dots(whole)) == set(dots(part))
    assert len(arrows(part)) == 2
    assert sorted(numbers(part).values()) == ["0", "1", "1"]
    assert "not reached by hop 1 (4)" in told(part)
    assert "first reception (2)" in told(part)
    assert not any(words.startswith(("duplicate", "missed")) for words in told(part))


def test_duplicate_before_the_first_reception_gives_no_hop_number() -> None:
    """A copy over fewer hops may arrive later: it is an arrow to a peer not reached yet."""
    peers = people([
        (0, "a", "publisher", 0, 0), (1, "b", "subscriber", 3, 1), (2, "c", "subscriber", 2, 0),
    ])  # fmt: skip
    copies = rows("hop previous_hop peer first", [(1, 0, 1, False), (2, 0, 2, True),
                                                  (3, 2, 1, True)])  # fmt: skip
    figure = dissemination_tree(peers, copies, hops=1)
    assert len(arrows(figure)) == 1
    assert sorted(numbers(figure).values()) == ["0"]


def test_layers_stand_at_their_hop() -> None:
    figure = dissemination_tree(*tables(), layout="layers")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "0", "1", "2", "3", "?", "missed",
    ]  # fmt: skip
    assert sorted(x for x, _ in dots(figure)) == [0, 1, 1, 2, 3, 4, 5]
    assert {x: text for (x, _), text in numbers(figure).items() if text != "?"} == {
        0: "0", 1: "1", 2: "2", 3: "3",
    }  # fmt: skip


def test_peer_stands_again_in_layers_where_it_passes_a_later_copy_on() -> None:
    """As in Scribe: up by bob to rita, back to bob and alice, and from her to dave."""
    peers = people(
        [
            (0, "alice", "publisher", 0, 1),
            (1, "bob", "relay", 1, 1),
            (2, "rita", "relay", 2, 0),
            (3, "carol", "subscriber", 3, 0),
            (4, "dave", "subscriber", 5, 0),
        ]
    )
    way = [(1, 0, 1, True), (2, 1, 2, True), (3, 2, 1, False), (3, 2, 3, True), (4, 1, 0, False),
           (5, 0, 4, True)]  # fmt: skip
    figure = dissemination_tree(peers, rows("hop previous_hop peer first", way), layout="layers")
    assert [(a, b) for (a, _), (b, _) in map(ends, arrows(figure)) if b - a != 1] == []
    assert len(arrows(figure)) == len(way)
    assert sorted(x for x, _ in dots(figure)) == [0, 1, 2, 3, 3, 4, 5]
    named = [text.get_text() for text in figure.axes[0].texts]
    assert [named.count(name) for name in ("alice", "bob", "rita", "dave")] == [2, 2, 1, 1]
    assert told(figure)[-2:] == ["first reception (4)", "duplicate (2)"]
    white = [place for place, colour in dots(figure).items() if colour == to_rgba("white")]
    numbered = [t for t in figure.axes[0].texts if t.zorder == 4 and t.get_position() in white]
    assert {text.get_color() for text in numbered} == {"black"}
    ring = dissemination_tree(peers, rows("hop previous_hop peer first", way))
    assert len(dots(ring)) == 5


@pytest.mark.parametrize("seed", range(10))
def test_first_receptions_never_cross_in_layers(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    parents: dict[int, int | None] = {i: chance.randrange(i) for i in range(1, 60)}
    depth = {0: 0}
    for child, parent in parents.items():
        depth[child] = depth[parent or 0] + 1
    columns: dict[str, list[int]] = {str(d): [] for d in range(max(depth.values()) + 1)}
    for peer, hop in depth.items():
        columns[str(hop)].append(peer)
    placed = layer_layout(columns, parents)
    assert len(set(placed.places.values())) == 60
    assert all(placed.places[peer][0] == hop for peer, hop in depth.items())
    edges = [(placed.places[p or 0], placed.places[c]) for c, p in parents.items()]
    for (x1, y1), (_, z1) in edges:
        for (x2, y2), (_, z2) in edges:
            if x1 == x2 and y1 < y2:
                assert z1 < z2


def test_cycle_of_previous_hops_is_placed_in_layers() -> None:
    placed = layer_layout({"0": [], "1": [1, 2], "2": [3]}, {1: 2, 2: 1, 3: 2})
    assert len(set(placed.places.values())) == 3


def test_arrows_there_and_back_are_apart() -> None:
    placed = ring_layout(range(8))
    for a, b in [(0, 1), (0, 3), (0, 4), (2, 6), (7, 0)]:
        there, back = placed.curve(a, b)[6], placed.curve(b, a)[6]
        assert np.hypot(*(there - back)) > 0.01
        assert placed.curve(a, b)[[0, -1]] == pytest.approx(
            np.array([placed.places[a], placed.places[b]])
        )
    assert np.hypot(*placed.curve(0, 2)[6]) < np.hypot(*np.mean([(1, 0), (0, 1)], axis=0))


def large(count: int) -> tuple[pa.Table, pa.Table]:
    peers = [(i, f"p{i}", "subscriber" if i else "publisher", i % 7, 0) for i in range(count)]
    copies = [(i % 7, i // 2, i, True) for i in range(1, count)]
    copies += [(3, (i * 7) % count, i, False) for i in range(1, count) if i * 7 % count != i // 2]
    return (
        people(peers),
        rows("hop previous_hop peer first", copies),
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tree_of_a_large_message_has_lines_and_scale(layout: str) -> None:
    figure = dissemination_tree(*large(1500), layout=layout)
    assert not arrows(figure)
    found = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    assert sum(len(c.get_segments()) for c in found) > 2000
    assert not numbers(figure)
    assert figure.axes[1].get_ylabel() == "hop"
    assert figure.axes[1].get_ylim() == (0, 6)


def test_tree_of_a_message_without_receptions_is_drawn() -> None:
    peers, copies = tables()
    alone = peers.filter(pc.field("role").isin(["publisher", "missed"]))
    for layout in LAYOUTS:
        figure = dissemination_tree(alone, copies.slice(0, 0), "m", layout=layout)
        assert told(figure) == ["publisher (1)", "missed (1)"]
        save(figure, io.BytesIO(), "svg")


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_tree_saved_twice_gives_the_same_bytes(form: str) -> None:
    def written() -> bytes:
        save(dissemination_tree(*tables(), "m$7", layout="layers"), out := io.BytesIO(), form)
        return out.getvalue()

    assert written() == written()


def test_unknown_layout_is_refused_with_a_similar_name() -> None:
    with pytest.raises(UnknownName, match=unknown("layout", "rings", "ring")):
        dissemination_tree(*tables(), layout="rings")
