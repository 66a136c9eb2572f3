"""Figures of comparisons: what is drawn, read back from the figure."""

from __future__ import annotations

import io
import math
from typing import Any

import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from vizpub.analytics.comparison.metrics import Metric
from vizpub.analytics.comparison.tables import (
    RunMetrics,
    compare_groups,
    compare_series,
    compare_settings,
)
from vizpub.analytics.figures import save
from vizpub.analytics.figures.canvas import NOTHING_TO_PLOT
from vizpub.analytics.figures.comparison import comparison, comparison_series, comparison_settings
from vizpub.model.errors import UseError

DELAY = Metric("delay_us_p95", "µs", "mean of messages", "")
HITS = Metric("hit_ratio", "share", "pooled over messages", "")
LABELS = ["hit ratio", "95th percentile of delay (ms)"]
VALUES: dict[str, list[float | None]] = {"gossip": [0.9, 1.0, 0.8], "tree": [0.5]}


def runs() -> list[RunMetrics]:
    return [
        RunMetrics(
            f"{group}-{seed}",
            group,
            seed,
            {"hit_ratio": hits, "delay_us_p95": 1000.0 * seed},
            {"hit_ratio": [hits, None, 0.5], "delay_us_p95": [1000.0 * seed, 2000.0, 3000.0]},
        )
        for group, values in VALUES.items()
        for seed, hits in enumerate(values, start=1)
    ]


def table() -> pa.Table:
    return compare_groups(runs(), [HITS, DELAY])


def svg(figure: Figure) -> bytes:
    save(figure, out := io.BytesIO(), "svg")
    return out.getvalue()


def marks(panel: Axes) -> dict[float, list[float]]:
    """Heights of the points at each place."""
    found: dict[float, list[float]] = {}
    for line in panel.lines:
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):  # type: ignore[arg-type]
            found.setdefault(float(x), []).append(float(y))
    return found


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_figure_shows_mean_interval_and_runs_of_each_group() -> None:
    figure = comparison(table(), runs())
    assert [panel.get_title() for panel in figure.axes] == LABELS
    assert legend(figure) == ["gossip (3 runs)", "tree (1 run)"]
    hits, delay = figure.axes
    (row,) = [
        r for r in table().to_pylist() if (r["metric"], r["group"]) == ("hit_ratio", "gossip")
    ]
    drawn = marks(hits)
    assert drawn[0.0] == pytest.approx([row["value"], row["low"], row["high"]])
    assert drawn[0.25] == VALUES["gossip"]
    assert drawn[1.0] == [0.5]  # one run: neither an interval nor itself beside itself
    assert 1.25 not in drawn
    assert marks(delay)[0.0][0] == pytest.approx(2.0)
    assert svg(figure) == svg(comparison(table(), runs()))


def test_unknown_metric_is_labelled_unknown_in_its_panel() -> None:
    blind = [RunMetrics("a", "g", 1, {"hit_ratio": None})]
    (panel,) = comparison(compare_groups(blind, [HITS]), blind).axes
    assert [text.get_text() for text in panel.texts] == ["unknown"]


def test_series_figure_has_line_and_band_for_each_group() -> None:
    found = compare_series(runs(), [HITS, DELAY], 7)
    figure = comparison_series(found)
    assert [panel.get_ylabel() for panel in figure.axes] == LABELS
    assert legend(figure) == ["gossip (3 runs)", "tree (1 run)", "95 % confidence interval"]
    hits, delay = figure.axes
    gossip, tree = hits.lines
    assert [float(x) for x in gossip.get_xdata()] == [7, 8, 9]  # type: ignore[union-attr]
    values = [float(y) for y in gossip.get_ydata()]  # type: ignore[union-attr]
    assert (values[0], values[2]) == (pytest.approx(0.9), 0.5)
    assert math.isnan(values[1])
    assert gossip.get_linestyle() != tree.get_linestyle()
    band, none = (c for c in delay.collections if isinstance(c, PolyCollection))
    (row,) = [
        r
        for r in found.to_pylist()
        if (r["metric"], r["group"], r["interval"]) == ("delay_us_p95", "gossip", 7)
    ]
    heights = band.get_paths()[0].vertices[:, 1]
    assert [heights.min(), heights.max()] == pytest.approx([row["low"] / 1e3, row["high"] / 1e3])
    assert none.get_paths() == []
    assert svg(figure) == svg(comparison_series(found))


def test_axis_of_a_share_stays_between_0_and_1() -> None:
    for figure in (comparison(table()), comparison_series(compare_series(runs(), [HITS]))):
        low, high = figure.axes[0].get_ylim()
        assert low >= -0.03
        assert high <= 1.03


@pytest.mark.parametrize("count", [21, 22])
def test_groups_have_distinct_marks_and_too_many_are_refused(count: int) -> None:
    many: list[Any] = [RunMetrics(f"r{i}", f"g{i}", 1, {"hit_ratio": 0.5}) for i in range(count)]
    if count > 21:
        with pytest.raises(UseError, match=f"^{count} groups"):
            comparison(compare_groups(many, [HITS]))
        return
    panel = comparison(compare_groups(many, [HITS])).axes[0]
    assert len({(line.get_color(), line.get_marker()) for line in panel.lines}) == count


def swept(settings: list[str]) -> pa.Table:
    """Hit ratios rise from setting to setting."""
    every = [
        RunMetrics(f"{g}{s}{i}", g, i, {"hit_ratio": 0.5 + place / 10 + i / 100}, setting=s)
        for place, s in enumerate(settings)
        for g in ("gossip", "tree")
        for i in range(3)
    ]
    return compare_settings(every, [HITS])


def test_numeric_settings_lie_to_scale_on_the_axis() -> None:
    panel = comparison_settings(swept(["0", "10", "100"]), "churn").axes[0]
    tree = [line for line in panel.lines if len(line.get_xdata()) == 3][1]  # type: ignore[arg-type]
    assert list(tree.get_xdata()) == [0, 10, 100]  # type: ignore[arg-type]
    assert list(tree.get_ydata()) == pytest.approx([0.51, 0.61, 0.71])  # type: ignore[arg-type]
    assert panel.get_xlabel() == "churn"
    assert all(tick == int(tick) for tick in panel.get_xticks())


def test_named_settings_lie_side_by_side_under_their_names() -> None:
    figure = comparison_settings(swept(["5s", "20s", "none"]), "churn")
    svg(figure)
    panel = figure.axes[0]
    assert [text.get_text() for text in panel.get_xticklabels()] == ["5s", "20s", "none"]
    assert list(panel.get_xticks()) == [0, 1, 2]
    assert legend(figure) == ["gossip (3 runs)", "tree (3 runs)"]


def test_empty_table_is_refused_as_nothing_to_draw() -> None:
    for draw, of in ((comparison, table()), (comparison_series, compare_series(runs(), [HITS]))):
        with pytest.raises(UseError, match=NOTHING_TO_PLOT):
            draw(of.slice(0, 0))
