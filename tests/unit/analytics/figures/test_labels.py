"""Words and units of metrics in figures."""

from __future__ import annotations

import pytest

from vizpub.analytics.figures.labels import label_of, wrap


@pytest.mark.parametrize(
    ("name", "unit", "label", "factor"),
    [
        ("hit_ratio", "share", "hit ratio", 1),
        ("delay_us_p95", "µs", "95th percentile of delay (ms)", 1e-3),
        ("delay_us", "µs", "delay (ms)", 1e-3),
        ("messages/delay_us_mean", "µs", "mean delay (ms)", 1e-3),
        ("diameter", "hops", "diameter (hops)", 1),
        ("in_degree_max", "links", "maximum in-degree (links)", 1),
        ("rooted_topics_max", "topics", "maximum rooted topics", 1),
        ("gauges/hops/per/lookups", "", "hops per lookups", 1),
        ("links", "", "links", 1),
    ],
)
def test_label_of_a_metric_is_words_with_the_unit(
    name: str, unit: str, label: str, factor: float
) -> None:
    assert label_of(name, unit) == (label, factor)


def test_label_is_wrapped_where_it_is_too_long() -> None:
    assert wrap("hit ratio", 2) == "hit ratio"
    lines = wrap("95th percentile of delay (ms)", 1).split("\n")
    assert " ".join(lines) == "95th percentile of delay (ms)"
    assert max(map(len, lines)) <= 16
