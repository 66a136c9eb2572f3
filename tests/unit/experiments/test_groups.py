from __future__ import annotations

import pytest

from vizpub.experiments.groups import Share, groups_of, interval_range
from vizpub.model.clock import Clock


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        ((0, 1), (5, 104)),
        ((0.3, 0.34), (35, 38)),
        ((1, 1), (104, 104)),
        ((0.5, 0.5), (55, 55)),
        ((0, 0.55), (5, 59)),
        ((0.55, 1), (60, 104)),
        ((0.29, 1), (34, 104)),
        ((0, 0.07), (5, 11)),
    ],
)
def test_share_of_a_run_becomes_whole_intervals(share: Share, expected: tuple[int, int]) -> None:
    assert interval_range(Clock(1, 1_000_000, 5, 104), share) == expected


def test_term_names_one_group_or_two() -> None:
    assert groups_of("Scribe, Twitter") == ["Scribe, Twitter"]
    assert groups_of("a / b") == ["a", "b"]
