"""Figures: what is drawn, read back from the figure, and that it is the same file twice."""

from __future__ import annotations

import io
import math
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

from analytics.figures import (
    FORMATS,
    PALETTE,
    ROLE_COLOURS,
    coverage,
    distribution,
    overlay_snapshot,
    save,
    series,
)
from model.errors import UseError


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
        {"peer": pa.array(range(5), pa.int32()), "role": roles, "publishes": publishes}
    )
    links = pa.table({"src": [0, 1, 4], "dst": [1, 2, 0], "inside": [False, True, False]})
    return peers, links


def svg(figure: Figure) -> bytes:
    save(figure, out := io.BytesIO(), "svg")
    return out.getvalue()


def lines(figure: Figure, panel: int = 0) -> list[np.ndarray]:
    return [np.asarray(line.get_xydata()) for line in figure.axes[panel].lines]


def test_a_series_has_a_panel_per_metric_with_its_unit() -> None:
    figure = series(overlay(), ["diameter", "delay_us_p50"], "run")
    assert [axes.get_ylabel() for axes in figure.axes] == ["diameter (hops)", "delay_p50 (ms)"]
    assert figure.axes[-1].get_xlabel() == "interval"
    (drawn,) = lines(figure)
    assert drawn[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert [y for y in drawn[:, 1].tolist() if not math.isnan(y)] == [3, 4, 6, 7]
    assert lines(figure, 1)[0][:, 1].tolist() == [0, 1.5, 3, 4.5, 6]


def test_what_is_unknown_is_a_gap_or_said() -> None:
    (drawn,) = lines(series(overlay(), ["diameter"]))
    assert math.isnan(drawn[2, 1])
    nothing = overlay().set_column(1, "diameter", pa.nulls(5, pa.int32()))
    assert [text.get_text() for text in series(nothing, ["diameter"]).axes[0].texts] == ["unknown"]


def test_whole_numbers_have_whole_ticks() -> None:
    figure = series(overlay(3), ["diameter"])
    svg(figure)
    assert all(tick == int(tick) for tick in figure.axes[0].get_yticks())


@pytest.mark.parametrize("values", [[1, 2, 3, 3], [2, 2, 2], [7]])
def test_a_distribution_of_whole_numbers_has_whole_ticks(values: list[int]) -> None:
    figure = distribution(pa.table({"hops_max": pa.array(values, pa.int32())}), ["hops_max"])
    svg(figure)
    ticks = figure.axes[0].get_xticks()
    assert len(ticks)
    assert all(tick == int(tick) for tick in ticks)


def test_microseconds_are_drawn_in_parts_of_milliseconds() -> None:
    delays = pa.table({"delay_us_p50": pa.array([100, 250, 400], pa.int64())})
    figure = distribution(delays, ["delay_us_p50"])
    svg(figure)
    assert any(tick != int(tick) for tick in figure.axes[0].get_xticks())


@pytest.mark.parametrize("count", [1, 5, 110])
def test_an_unknown_series_keeps_its_intervals(count: int) -> None:
    nothing = overlay(count).set_column(1, "diameter", pa.nulls(count, pa.int32()))
    (axes,) = series(nothing, ["diameter"]).axes
    low, high = axes.get_xlim()
    assert -0.1 * count - 1 < low < 0
    assert count - 1 < high < 1.1 * count + 1
    assert all(tick == int(tick) for tick in axes.get_xticks())
    assert list(axes.get_yticks()) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_distribution_is_that_of_its_values(seed: int) -> None:
    print(f"seed {seed}")
    values = np.random.default_rng(seed).integers(1, 9, 200)
    table = pa.table({"degree": pa.array([*values.tolist(), None], pa.int32())})
    (rising,) = lines(distribution(table, ["degree"]))
    for x, share in rising[1:]:
        assert share == pytest.approx((values <= x).mean())
    (falling,) = lines(distribution(table, ["degree"], complementary=True))
    for x, share in falling:
        assert share == pytest.approx((values >= x).mean())


def test_a_wide_distribution_has_logarithmic_axes() -> None:
    table = pa.table({"betweenness": [0.0, 1.0, 5.0, 1000.0]})
    axes = distribution(table, ["betweenness"], complementary=True).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert distribution(table, ["betweenness"]).axes[0].get_xscale() == "linear"


def test_few_messages_are_told_apart_and_many_have_a_mean() -> None:
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


def test_a_snapshot_keeps_every_peer_at_its_place() -> None:
    peers, links = snapshot()
    axes = overlay_snapshot(peers, links, 6).axes[0]
    points = [c for c in axes.collections if isinstance(c, PathCollection)]
    rings = [c for c in points if c.get_label() == "publisher (2)"]
    filled = [c for c in points if c not in rings]
    places = np.concatenate([np.asarray(c.get_offsets()) for c in filled])
    angles = sorted(round(math.degrees(math.atan2(y, x))) % 360 for x, y in places)
    assert angles == [0, 60, 120, 180, 240]
    assert {c.get_label() for c in points} == {
        "publisher (2)", "subscriber (2)", "relay (1)", "peer (2)",
    }  # fmt: skip
    (ring,) = rings
    assert len(np.asarray(ring.get_facecolor())) == 0  # what is below shows through
    at_ring = np.asarray(ring.get_offsets())
    assert [round(math.degrees(math.atan2(y, x))) for x, y in at_ring] == [0, 60]
    curves = [c for c in axes.collections if isinstance(c, LineCollection)]
    assert sum(len(c.get_segments()) for c in curves) == 3
    ends = {tuple(np.round(s[[0, -1]].ravel(), 6)) for c in curves for s in c.get_segments()}
    first, second = (1.0, 0.0), (round(math.cos(math.pi / 3), 6), round(math.sin(math.pi / 3), 6))
    assert (*first, *second) in ends


def test_an_overlay_without_links_is_drawn() -> None:
    peers, links = snapshot()
    assert len(svg(overlay_snapshot(peers, links.slice(0, 0), 6, "alone"))) > 1000


def test_an_overlay_before_its_first_peer_is_drawn_empty() -> None:
    peers, links = (rows.slice(0, 0) for rows in snapshot())
    assert overlay_snapshot(peers, links, 6, "early").axes[0].get_legend() is None


def test_nothing_cannot_be_drawn() -> None:
    for draw in (lambda t: series(t, ["diameter"]), lambda t: distribution(t, ["diameter"])):
        with pytest.raises(UseError, match="nothing to draw"):
            draw(overlay(0))
    with pytest.raises(UseError, match="nothing to draw"):
        series(overlay(), [])
    with pytest.raises(UseError, match="nothing to draw"):
        coverage(arrivals(1).slice(0, 0))


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_the_same_figure_is_the_same_file(form: str) -> None:
    def written() -> bytes:
        save(overlay_snapshot(*snapshot(), 6, "run, interval 3"), out := io.BytesIO(), form)
        return out.getvalue()

    assert written() == written()
    assert b"date" not in written().lower().replace(b"/dates", b"")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_what_it_says(form: str) -> None:
    save(series(overlay(), ["diameter"]), out := io.BytesIO(), form)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[form]
    assert out.getvalue().startswith(start)
    with pytest.raises(UseError, match="no format for a figure"):
        save(series(overlay(), ["diameter"]), io.BytesIO(), "gif")


def test_names_from_outside_cannot_break_a_figure() -> None:
    rows = pa.table({"message_name": ["$\\frac{$ 日本 <b>&"] * 2, "delay_us": [0, 5],
                     "share": [0.0, 1.0]})  # fmt: skip
    ET.fromstring(svg(coverage(rows, "$x_{$ 日本")))


def contrast(a: str, b: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_stand_out_from_white() -> None:
    assert all(contrast(colour, "#FFFFFF") > 2 for colour in {*PALETTE, *ROLE_COLOURS.values()})
