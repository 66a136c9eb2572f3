"""The names of what is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.words import unknown
from vizpub.analytics.comparison.metrics import (
    DEFAULT,
    DEFAULT_SERIES,
    OF_A_WHOLE_RUN,
    RUN_METRICS,
    find_interval_metric,
    find_metric,
    metric_names,
    restrict_over,
)
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.metrics import METRICS_OVERLAY


@pytest.mark.parametrize(
    ("name", "shown", "over", "unit"),
    [
        ("diameter", "diameter", "mean of intervals", "hops"),
        ("overlay/diameter", "diameter", "mean of intervals", "hops"),
        ("hit_ratio", "hit_ratio", "pooled over messages", "share"),
        ("overlay/hit_ratio", "overlay/hit_ratio", "mean of intervals", "share"),
        ("messages/hit_ratio", "messages/hit_ratio", "mean of messages", "share"),
        ("betweenness", "betweenness", "mean of peers, then of intervals", ""),
        ("topics/duplicates", "topics/duplicates", "mean of topics, then of intervals", ""),
        ("delay_us_p95", "delay_us_p95", "mean of messages", "µs"),
        ("gauges/hops", "gauges/hops", "mean of peers, then of intervals", ""),
        ("gauges/a.b-c/total", "gauges/a.b-c/total", "sum over the run", ""),
        ("gauges/per/max", "gauges/per/max", "largest of the run", ""),
        ("gauges/a/p99", "gauges/a/p99", "percentile of peers, then mean of intervals", ""),
        ("gauges/hops/per/total", "gauges/hops/per/total", "pooled over the run", ""),
    ],
)
def test_metric_is_found_by_its_column_and_its_table(
    name: str, shown: str, over: str, unit: str
) -> None:
    found = find_metric(name)
    assert (found.name, found.over, found.unit) == (shown, over, unit)


def test_interval_metric_of_a_whole_run_column_is_refused() -> None:
    assert find_interval_metric("hit_ratio").table == "overlay"
    assert find_interval_metric("delay_us_mean").over == "mean of messages published"
    with pytest.raises(UseError, match=OF_A_WHOLE_RUN):
        find_interval_metric("distinct_links")


def test_measure_of_a_whole_run_has_the_same_name_in_every_interval() -> None:
    """So `vizpub metrics` and `plot` know it, which take the columns of tables."""
    of_runs = {of.name for of in RUN_METRICS}
    with_intervals = of_runs & {*METRICS_OVERLAY.names}
    assert of_runs - with_intervals == {
        *("distinct_peers", "distinct_links", "distinct_links_per_peer", "distinct_density"),
        *("busiest_tenth_messages", "busiest_tenth_share", "busiest_tenth_bytes_share"),
        *("rooted_topics_min", "rooted_topics_mean", "rooted_topics_max", "convergence_us"),
    }
    for name in with_intervals:
        assert find_interval_metric(name).table == "overlay"
        if find_metric(name).unit != "messages":
            assert find_interval_metric(name).unit == find_metric(name).unit
    for name in {*METRICS_OVERLAY.names} - {"interval"}:
        assert find_metric(name).name == find_interval_metric(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "component",
        "peers/strong_component",
        "present",
        "interval",
        "gauges/",
        "gauges/a/min",
        "gauges/a/p0",
        "gauges/a/p100",
    ],
)
def test_column_without_a_mean_is_refused_as_metric(name: str) -> None:
    with pytest.raises(UnknownName):
        find_metric(name)


def test_unknown_metric_is_refused_with_similar_names() -> None:
    with pytest.raises(UnknownName, match=unknown("metric", "diametr", "diameter")):
        find_metric("diametr")


def test_names_include_the_defaults_and_lead_to_their_metrics() -> None:
    for name in metric_names():
        assert find_metric(name).name in (name, name.split("/")[-1])
    assert {*DEFAULT, *(of.name for of in RUN_METRICS)} <= {*metric_names()}
    for name in DEFAULT_SERIES:
        assert find_interval_metric(name).name == name


def test_compare_page_explains_every_figure_of_a_whole_run() -> None:
    page = (Path(__file__).parents[4] / "docs" / "compare.md").read_text("utf-8")
    for of in RUN_METRICS:
        assert f"| `{of.name}` | {of.meaning} | {of.over} |" in page


@pytest.mark.parametrize(
    ("over", "restricted"),
    [
        ("whole run", "intervals 2 to 4"),
        ("sum over the run", "sum over intervals 2 to 4"),
        ("mean of peers, then of intervals", "mean of peers, then of intervals 2 to 4"),
        ("pooled over messages", "pooled over messages, intervals 2 to 4"),
        ("last interval", "last of intervals 2 to 4"),
    ],
)
def test_text_on_a_part_of_a_run_names_its_intervals(over: str, restricted: str) -> None:
    assert restrict_over(over, "intervals 2 to 4") == restricted


def test_text_on_a_part_of_a_run_never_speaks_of_the_whole() -> None:
    for name in metric_names():
        text = restrict_over(find_metric(name).over, "intervals 2 to 4")
        assert "intervals 2 to 4" in text
        assert "run" not in text
