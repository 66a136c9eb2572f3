"""Overlays that grow under churn, while topics come and go."""

from __future__ import annotations

from vizpub.experiments.cd_max import growth


def test_grown_overlay_stays_near_one_that_is_constructed_anew() -> None:
    grown = growth.grow(("small", 1))
    assert [one.nodes for one in grown] == [3_000, 10_000]
    for one in grown:
        assert one.least_maximum < one.maximum <= 1.3 * one.maximum_anew
        assert abs(one.average / one.average_anew - 1) < 0.15
    # Most events are nodes that come, others churn, and subscribers of topics that go.
    assert 3_100 < grown[0].events < 3_900
    table = list(growth.report_lines(grown))
    assert [line.split(" | ")[0] for line in table[4:]] == ["| 3,000", "| 10,000"]
