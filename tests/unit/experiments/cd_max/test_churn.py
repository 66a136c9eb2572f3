"""Overlays that are repaired and rebuilt on the same events."""

from __future__ import annotations

from vizpub.experiments.cd_max.churn import report_lines, simulate_churn


def test_repaired_overlay_changes_fewer_edges_at_the_same_degree() -> None:
    repaired, rebuilt = simulate_churn((120, "cd-max-ref", 1))
    assert 0 < repaired.changed < rebuilt.changed
    assert repaired.maximum <= 1.2 * rebuilt.maximum
    table = list(report_lines([repaired, rebuilt]))
    assert [line.split(" | ")[2] for line in table[4:]] == ["repaired", "rebuilt"]
