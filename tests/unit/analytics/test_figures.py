"""Figures: what is drawn, read back from the figure, and that it is the same file twice."""

from __future__ import annotations

import io
import itertools
import math
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from matplotlib.collections import Collection, LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure

from tests.support.words import naming, unknown
from vizpub.analytics.figures import (
    FORMATS,
    MOST_BY_FORCE,
    PALETTE,
    ROLE_COLOURS,
    coverage,
    density,
    distribution,
    overlay_snapshot,
    overlay_snapshots,
    save,
    series,
)
from vizpub.analytics.figures.canvas import NO_FORMAT, NOTHING_TO_PLOT
from vizpub.model.errors import UnknownName, UseError


def overlay(count: int = 5) -> pa.Table:
    return pa.table(
        {
            "interval": pa.array(range(count), pa.int32()),
            "diameter": pa.array([None if i == 2 else 3 + i for i in range(count)], pa.int32()),
            "delay_us_p50": [1500.0 * i for i in range(count)],
        }
    )


def arrivals(messages: int) -> pa.Table:
    rows = [
        {"message_name": f"m{m}", "delay_us": 1000 * step * (m + 1), "share": step / 4}
        for m in range(messages)
        for step in range(5)
    ]
    return pa.Table.from_pylist(rows)


def snapshot(size: int = 6) -> tuple[pa.Table, pa.Table]:
    roles = ["peer", "subscriber", "subscriber", "relay", "peer"]
    publishes = [True, True, False, False, False]
    peers = pa.table(
        {"peer": pa.array(range(5), pa.int32()), "role": roles, "publishes": publishes,
         "rendezvous": [False, True, False, False, True]}
    )  # fmt: skip
    links = pa.table({"src": [0, 1, 4], "dst": [1, 2, 0], "inside": [False, True, False]})
    return peers, links


def svg(figure: Figure) -> bytes:
    save(figure, out := io.BytesIO(), "svg")
    return out.getvalue()


def lines(figure: Figure, panel: int = 0) -> list[np.ndarray]:
    return [np.asarray(line.get_xydata()) for line in figure.axes[panel].lines]


def test_series_has_a_panel_per_metric_with_its_unit() -> None:
    figure = series(overlay(), ["diameter", "delay_us_p50"], "run")
    assert [axes.get_ylabel() for axes in figure.axes] == ["diameter (hops)", "median delay (ms)"]
    assert figure.axes[-1].get_xlabel() == "interval"
    (drawn,) = lines(figure)
    assert drawn[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert [y for y in drawn[:, 1].tolist() if not math.isnan(y)] == [3, 4, 6, 7]
    assert lines(figure, 1)[0][:, 1].tolist() == [0, 1.5, 3, 4.5, 6]


def test_unknown_values_are_gaps_and_unknown_series_is_labelled() -> None:
    (drawn,) = lines(series(overlay(), ["diameter"]))
    assert math.isnan(drawn[2, 1])
    nothing = overlay().set_column(1, "diameter", pa.nulls(5, pa.int32()))
    assert [text.get_text() for text in series(nothing, ["diameter"]).axes[0].texts] == ["unknown"]


def test_series_of_whole_numbers_has_whole_ticks() -> None:
    figure = series(overlay(3), ["diameter"])
    svg(figure)
    assert all(tick == int(tick) for tick in figure.axes[0].get_yticks())


@pytest.mark.parametrize("values", [[1, 2, 3, 3], [2, 2, 2], [7]])
def test_distribution_of_whole_numbers_has_whole_ticks(values: list[int]) -> None:
    figure = distribution(pa.table({"hops_max": pa.array(values, pa.int32())}), ["hops_max"])
    svg(figure)
    ticks = figure.axes[0].get_xticks()
    assert len(ticks)
    assert all(tick == int(tick) for tick in ticks)


def test_microseconds_are_drawn_as_fractions_of_milliseconds() -> None:
    delays = pa.table({"delay_us_p50": pa.array([100, 250, 400], pa.int64())})
    figure = distribution(delays, ["delay_us_p50"])
    svg(figure)
    assert any(tick != int(tick) for tick in figure.axes[0].get_xticks())


@pytest.mark.parametrize("count", [1, 5, 110])
def test_unknown_series_keeps_its_interval_axis(count: int) -> None:
    nothing = overlay(count).set_column(1, "diameter", pa.nulls(count, pa.int32()))
    (axes,) = series(nothing, ["diameter"]).axes
    low, high = axes.get_xlim()
    assert -0.1 * count - 1 < low < 0
    assert count - 1 < high < 1.1 * count + 1
    assert all(tick == int(tick) for tick in axes.get_xticks())
    assert list(axes.get_yticks()) == []


@pytest.mark.parametrize("seed", range(5))
def test_distribution_line_equals_the_share_of_its_values(seed: int) -> None:
    print(f"seed {seed}")
    values = np.random.default_rng(seed).integers(1, 9, 200)
    table = pa.table({"degree": pa.array([*values.tolist(), None], pa.int32())})
    (rising,) = lines(distribution(table, ["degree"]))
    for x, share in rising[1:]:
        assert share == pytest.approx((values <= x).mean())
    (falling,) = lines(distribution(table, ["degree"], complementary=True))
    for x, share in falling:
        assert share == pytest.approx((values >= x).mean())


def test_complementary_wide_distribution_has_logarithmic_axes() -> None:
    table = pa.table({"betweenness": [0.0, 1.0, 5.0, 1000.0]})
    axes = distribution(table, ["betweenness"], complementary=True).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert distribution(table, ["betweenness"]).axes[0].get_xscale() == "linear"


def by_interval(seed: int, intervals: tuple[int, ...]) -> pa.Table:
    """Degrees that fall off as a power law, with zeros and nulls among them."""
    random = np.random.default_rng(seed)
    parts = []
    for interval in intervals:
        degree = (random.pareto(1.3, 500) * 2).astype(int).tolist()
        rows = {"interval": pa.array([interval] * 501, pa.int32()),
                "degree": pa.array([*degree, None], pa.int32()),
                "betweenness": [*(random.pareto(1.1, 500) * 3).tolist(), None]}  # fmt: skip
        parts.append(pa.table(rows))
    return pa.concat_tables(parts)


def known(table: pa.Table, column: str, interval: int) -> np.ndarray:
    values: np.ndarray = (
        table.filter(pc.field("interval") == interval)[column].drop_null().to_numpy()
    )
    return values


@pytest.mark.parametrize("seed", range(3))
def test_distribution_by_interval_has_a_line_for_each_interval(seed: int) -> None:
    print(f"seed {seed}")
    table = by_interval(seed, (30, 4))
    figure = distribution(table, ["degree", "betweenness"], complementary=True, by="interval")
    for panel, column in enumerate(("degree", "betweenness")):
        axes = figure.axes[panel]
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == [
            "interval 30 (500 values)", "interval 4 (500 values)",
        ]  # fmt: skip
        for drawn, interval in zip(lines(figure, panel), (30, 4), strict=True):
            values = known(table, column, interval)
            assert len(drawn) == len(np.unique(values[values > 0]))
            for x, share in drawn[::7]:
                assert share == pytest.approx((values >= x).mean())
    zeros = sum((known(table, "degree", i) == 0).sum() for i in (30, 4))
    assert figure.axes[0].get_title("right") == f"1,000 values, {zeros} of them 0 and not shown"


def test_marks_of_a_wide_distribution_are_a_bin_apart() -> None:
    table = pa.table({"degree": pa.array(range(1, 10_001), pa.int32())})
    (line,) = distribution(table, ["degree"], complementary=True).axes[0].lines
    places: Any = line.get_markevery()
    marked = np.asarray(line.get_xdata())[places]
    assert marked[0] == 1
    assert marked[-1] == 10_000
    assert 30 < len(marked) <= 41  # 10 in each of 4 decades; some bins below 10 hold nothing
    assert np.diff(np.log10(marked[marked > 100])) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("column", ["degree", "betweenness"])
def test_density_equals_share_of_each_bin_over_width(seed: int, column: str) -> None:
    print(f"seed {seed}")
    table = by_interval(seed, (1,))
    values = known(table, column, 1)
    (drawn,) = lines(density(table, [column]))
    x, share = drawn.T
    assert (np.diff(x) > 0).all()
    assert (share > 0).all()
    step = 10**0.1
    if column == "betweenness":
        edges = np.stack([x / step**0.5, x * step**0.5])
        counted = [((values >= low * (1 - 1e-9)) & (values < high)).sum() for low, high in edges.T]
        assert share * (edges[1] - edges[0]) * 500 == pytest.approx(counted, abs=1.01)
    else:
        # The least bins hold one number each: the density is the share of that number.
        for number, part in [(n, s) for n, s in drawn if n in (1, 2, 3)]:
            assert part == pytest.approx((values == number).mean())


@pytest.mark.parametrize("values", [[0, 0], [0.0], [5], [7, 7, 7], [1, 10, 100, 1000]])
def test_density_has_a_bin_for_every_value_above_0(values: list[float]) -> None:
    figure = density(pa.table({"degree": values}), ["degree"])
    drawn = lines(figure)
    if not any(values):
        assert [text.get_text() for text in figure.axes[0].texts] == ["no value above 0"]
    elif all(isinstance(value, int) for value in values):
        assert len(drawn[0]) == len(set(values))
    svg(figure)


def test_series_by_peer_has_a_line_for_each_peer() -> None:
    one, two = overlay(4), overlay(3)
    names = pa.array(["alice"] * 4 + ["$b"] * 3)
    table = pa.concat_tables([one, two]).append_column("peer_name", names)
    figure = series(table, ["diameter"], by="peer_name")
    assert [len(line) for line in lines(figure)] == [4, 3]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["alice", r"\$b"]


def test_lines_beyond_the_palette_have_distinct_colours() -> None:
    figure = distribution(by_interval(1, tuple(range(12))), ["degree"], by="interval")
    assert len({str(line.get_color()) for line in figure.axes[0].lines}) == 12


def test_coverage_names_few_messages_and_averages_many() -> None:
    few = coverage(arrivals(3))
    legend = few.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["m0", "m1", "m2"]
    assert len({line.get_color() for line in few.axes[0].lines}) == 3
    many = coverage(arrivals(len(PALETTE) + 3))
    *single, mean = lines(many)
    assert len(single) == len(PALETTE) + 3
    for x, share in mean:
        held = [line[line[:, 0] <= x][-1, 1] for line in single]
        assert share == pytest.approx(np.mean(held))


def test_coverage_of_hundreds_of_messages_is_bands_of_their_quantiles() -> None:
    """Message m has reached the share k / 4 of its peers after k · (m + 1) ms."""
    (axes,) = coverage(arrivals(200)).axes
    (median,) = (np.asarray(line.get_xydata()) for line in axes.lines)
    labels = [band.get_label() for band in axes.collections]
    assert labels == ["middle 90 % of 200 messages", "middle 50 % of 200 messages"]
    for time, share in median[::25]:
        reached = sorted(min(int(time / (m + 1)), 4) / 4 for m in range(200))
        assert reached[99] <= share <= reached[100]
    outer, inner = (band.get_paths()[0] for band in axes.collections)
    held = {
        (time, share): (outer.contains_point((time, share)), inner.contains_point((time, share)))
        for time, share in [(100, 0.2), (100, 0.9), (320, 0.2), (320, 0.3), (320, 0.7)]
    }
    assert held == {
        (100, 0.2): (True, True),
        (100, 0.9): (True, False),
        (320, 0.2): (False, False),
        (320, 0.3): (True, False),
        (320, 0.7): (True, True),
    }


def in_two_parts() -> tuple[pa.Table, pa.Table]:
    """Two rings of ten peers with one link between them, among thirty peers of a run."""
    peers = [*range(5, 25)]
    around = [(p, p + 1 if (p - 4) % 10 else p - 9) for p in peers]
    rows = {"role": "peer", "publishes": False, "rendezvous": False}
    of_peers = [{"peer": p, "peer_name": f"12D3KooWabcd{p:03}", **rows} for p in peers]
    of_links = [{"src": a, "dst": b, "inside": False} for a, b in [*around, (5, 15)]]
    return pa.Table.from_pylist(of_peers), pa.Table.from_pylist(of_links)


def test_overlay_by_forces_keeps_linked_peers_together_under_short_names() -> None:
    peers, links = in_two_parts()
    (axes,) = overlay_snapshot(peers, links, 30, layout="force").axes
    (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
    places = dict(zip(range(5, 25), np.asarray(dots.get_offsets()), strict=True))
    linked = {
        frozenset(ends)
        for ends in zip(*(links[e].to_pylist() for e in ("src", "dst")), strict=True)
    }
    apart = {
        pair: math.dist(*(places[peer] for peer in pair))
        for pair in map(frozenset, itertools.combinations(places, 2))
    }
    assert max(math.hypot(*place) for place in places.values()) == pytest.approx(1)
    mean = {
        kind: np.mean([d for pair, d in apart.items() if (pair in linked) == kind])
        for kind in (True, False)
    }
    assert mean[True] < 0.5 * mean[False]
    assert min(apart.values()) > 0.05
    assert [text.get_text() for text in axes.texts] == [f"…d{p:03}" for p in range(5, 25)]
    segments = [
        s for c in axes.collections if isinstance(c, LineCollection) for s in c.get_segments()
    ]
    first, last = segments[0]
    assert first.tolist() == places[5].tolist()
    assert last.tolist() == places[6].tolist()


def test_overlay_by_forces_is_the_same_picture_every_time() -> None:
    first, again = (svg(overlay_snapshot(*in_two_parts(), 30, layout="force")) for _ in range(2))
    assert first == again


@pytest.mark.parametrize("count", [0, 1, 2])
def test_overlay_by_forces_of_few_peers_is_drawn(count: int) -> None:
    peers, links = in_two_parts()
    links = links.filter(
        pc.and_(pc.less(links["src"], 5 + count), pc.less(links["dst"], 5 + count))
    )
    figure = overlay_snapshot(peers.slice(0, count), links, 30, layout="force")
    assert drawn(figure, PathCollection) == count
    svg(figure)


def test_overlay_of_more_peers_than_forces_can_place_is_refused() -> None:
    peers, links = in_two_parts()
    many = pa.concat_tables([peers] * (MOST_BY_FORCE // 20 + 1))
    with pytest.raises(UseError, match=naming("1,020", "--layout ring")):
        overlay_snapshot(many, links, 30, layout="force")
    with pytest.raises(UnknownName, match=unknown("layout of an overlay", "layers")):
        overlay_snapshot(peers, links, 30, layout="layers")


def test_snapshot_figure_draws_peers_roles_and_links_in_place() -> None:
    peers, links = snapshot()
    axes = overlay_snapshot(peers, links, 6).axes[0]
    points = [c for c in axes.collections if isinstance(c, PathCollection)]
    rings = [c for c in points if c.get_label() == "publisher (2)"]
    roots = [c for c in points if c.get_label() == "rendezvous (2)"]
    filled = [c for c in points if c not in [*rings, *roots]]
    places = np.concatenate([np.asarray(c.get_offsets()) for c in filled])
    angles = sorted(round(math.degrees(math.atan2(y, x))) % 360 for x, y in places)
    assert angles == [0, 60, 120, 180, 240]
    assert {c.get_label() for c in points} == {
        "publisher (2)", "rendezvous (2)", "subscriber (2)", "relay (1)", "peer (2)",
    }  # fmt: skip
    (ring,) = rings
    assert len(np.asarray(ring.get_facecolor())) == 0  # what is below shows through
    at_ring = np.asarray(ring.get_offsets())
    assert [round(math.degrees(math.atan2(y, x))) for x, y in at_ring] == [0, 60]
    (outer,) = roots
    assert np.asarray(outer.get_sizes())[0] > np.asarray(ring.get_sizes())[0]  # both are seen
    at_outer = np.asarray(outer.get_offsets())
    assert [round(math.degrees(math.atan2(y, x))) % 360 for x, y in at_outer] == [60, 240]
    curves = [c for c in axes.collections if isinstance(c, LineCollection)]
    assert sum(len(c.get_segments()) for c in curves) == 3
    ends = {tuple(np.round(s[[0, -1]].ravel(), 6)) for c in curves for s in c.get_segments()}
    first, second = (1.0, 0.0), (round(math.cos(math.pi / 3), 6), round(math.sin(math.pi / 3), 6))
    assert (*first, *second) in ends


@pytest.mark.parametrize("layout", ["ring", "force"])
def test_arrowheads_point_along_links_that_go_one_way(layout: str) -> None:
    peers, _ = in_two_parts()
    pairs = [(5, 6), (6, 5), (5, 7), (9, 6), (8, 15)]
    links = pa.table({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs],
                      "inside": [True, True, False, True, False]})  # fmt: skip
    axes = overlay_snapshot(peers, links, 30, layout=layout).axes[0]
    (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
    places = dict(zip(range(5, 25), np.asarray(dots.get_offsets()), strict=True))
    heads = [
        np.asarray(path.vertices)[:3]
        for c in axes.collections
        if isinstance(c, PolyCollection)
        for path in c.get_paths()
    ]
    one_way = [(5, 7), (8, 15), (9, 6)]  # those with `inside` are drawn last, on top
    for (tip, *base), (src, dst) in zip(heads, one_way, strict=True):
        pointing, along = tip - np.mean(base, axis=0), places[dst] - places[src]
        assert pointing @ along > 0.9 * np.hypot(*pointing) * np.hypot(*along)
        assert math.dist(tip, places[dst]) < math.dist(tip, places[src])


def test_arrowheads_are_left_out_where_they_are_too_many() -> None:
    peers, _ = in_two_parts()
    links = pa.table({"src": [5] * 1001, "dst": [6] * 1001, "inside": [True] * 1001})
    assert not drawn(overlay_snapshot(peers, links, 30), PolyCollection)


def test_snapshot_figure_without_links_is_drawn() -> None:
    peers, links = snapshot()
    alone, linked = (overlay_snapshot(peers, rows, 6) for rows in (links.slice(0, 0), links))
    assert drawn(alone, PathCollection) == drawn(linked, PathCollection) > 0
    assert drawn(alone, LineCollection) == 0 < drawn(linked, LineCollection)


def drawn(figure: Figure, kind: type[Collection]) -> int:
    """How many peers or links a snapshot shows."""
    return sum(
        len(c.get_offsets() if kind is PathCollection else c.get_paths())
        for c in figure.axes[0].collections
        if isinstance(c, kind)
    )


def test_snapshot_figure_without_peers_has_no_legend() -> None:
    peers, links = (rows.slice(0, 0) for rows in snapshot())
    assert overlay_snapshot(peers, links, 6, "early").axes[0].get_legend() is None


def test_empty_table_or_metric_list_is_refused() -> None:
    for draw in (lambda t: series(t, ["diameter"]), lambda t: distribution(t, ["diameter"])):
        with pytest.raises(UseError, match=NOTHING_TO_PLOT):
            draw(overlay(0))
    with pytest.raises(UseError, match=NOTHING_TO_PLOT):
        series(overlay(), [])
    with pytest.raises(UseError, match=NOTHING_TO_PLOT):
        coverage(arrivals(1).slice(0, 0))


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_figure_saved_twice_gives_equal_bytes_without_date(form: str) -> None:
    def written() -> bytes:
        save(overlay_snapshot(*snapshot(), 6, "run, interval 3"), out := io.BytesIO(), form)
        return out.getvalue()

    assert written() == written()
    assert b"date" not in written().lower().replace(b"/dates", b"")


@pytest.mark.parametrize("form", FORMATS)
def test_figure_formats_have_their_signature_and_others_are_refused(form: str) -> None:
    save(series(overlay(), ["diameter"]), out := io.BytesIO(), form)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[form]
    assert out.getvalue().startswith(start)
    with pytest.raises(UseError, match=NO_FORMAT):
        save(series(overlay(), ["diameter"]), io.BytesIO(), "gif")


def test_markup_in_names_keeps_the_svg_well_formed() -> None:
    rows = pa.table({"message_name": ["$\\frac{$ 日本 <b>&"] * 2, "delay_us": [0, 5],
                     "share": [0.0, 1.0]})  # fmt: skip
    ET.fromstring(svg(coverage(rows, "$x_{$ 日本")))


@pytest.mark.parametrize("form", FORMATS)
def test_peer_names_are_cleaned_and_cut_for_every_format(form: str) -> None:
    names = ["_hidden", "\ufefffirst", "long" * 2_500, "a\x1b[31m\x00 & <日本>"]
    parts = [overlay(2).append_column("peer_name", pa.array([name] * 2)) for name in names]
    figure = series(pa.concat_tables(parts), ["diameter"], names[2], by="peer_name")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == [" _hidden", "first", "long…" + ("long" * 11)[-43:], "a�[31m� & <日本>"]
    save(figure, out := io.BytesIO(), form)
    if form == "svg":
        shown = {node.text for node in ET.fromstring(out.getvalue()).iter()}
        assert "a�[31m� & <日本>" in shown


def test_overlay_at_several_times_keeps_the_places_of_peers() -> None:
    """Peer 5 leaves after the first time; peers that are never there take no room."""
    peers, links = in_two_parts()
    gone = peers.filter(pc.field("peer") != 5)
    fewer = links.filter((pc.field("src") != 5) & (pc.field("dst") != 5))
    times = {"interval 1": (peers, links), "interval 2": (gone, fewer), "interval 3": (gone, fewer)}
    for layout in ("force", "ring"):
        figure = overlay_snapshots(times, 30, "run", layout=layout)
        assert [panel.get_title() for panel in figure.axes] == list(times)
        places, limits = [], set()
        for panel in figure.axes:
            (dots,) = (c for c in panel.collections if isinstance(c, PathCollection))
            places.append(np.asarray(dots.get_offsets()))
            limits.add((panel.get_xlim(), panel.get_ylim()))
        assert (places[0][1:] == places[1]).all()
        assert (places[1] == places[2]).all()
        assert len(limits) == 1
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["peer"]


def test_coverage_of_parts_has_median_and_band_of_each_to_the_end_of_the_longest() -> None:
    slow, fast = arrivals(5), arrivals(2)
    parts = [slow.append_column("run", [["slow"] * len(slow)]),
             fast.append_column("run", [["fast"] * len(fast)])]  # fmt: skip
    chosen = {"slow": "#D55E00", "fast": "#0072B2"}
    (axes,) = coverage(pa.concat_tables(parts), by="run", chosen=chosen).axes
    assert [line.get_color() for line in axes.lines] == ["#D55E00", "#0072B2"]
    assert {np.asarray(line.get_xdata())[-1] for line in axes.lines} == {20}
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "slow: median, middle 50 % of 5 messages", "fast: median, middle 50 % of 2 messages",
    ]  # fmt: skip


def contrast(a: str, b: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_contrast_with_white() -> None:
    assert all(contrast(colour, "#FFFFFF") > 2 for colour in {*PALETTE, *ROLE_COLOURS.values()})
