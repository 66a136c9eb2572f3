"""Algorithms beside the optimum of a few nodes."""

from __future__ import annotations

from vizpub.experiments.cd_max.optimum import BEST, BOUND, measure_overlays, report_lines
from vizpub.simulators.designs.algorithms import ALGORITHMS


def test_optimum_is_between_the_bound_and_the_algorithms() -> None:
    found = measure_overlays(1)
    assert set(found.edges) == {BOUND, BEST, *ALGORITHMS}
    assert 0 < found.edges[BOUND] <= found.edges[BEST]
    stars = [name for name in ALGORITHMS if name != "gm"]
    assert all(found.edges[BEST] <= found.edges[name] for name in ALGORITHMS)
    assert all(found.maximum[BEST] <= found.maximum[name] for name in stars)
    assert found.maximum[BOUND] <= found.maximum[BEST]
    (row,) = (line for line in report_lines([found]) if line.startswith(f"| {BEST}"))
    assert row == f"| {BEST} | {found.edges[BEST]} | {found.maximum[BEST]} |"
