"""Estimates as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from cli.estimates import side_by_side, told


def record(group: str, value: float | None = 5.0, **more: Any) -> dict[str, Any]:
    about = {"metric": "diameter", "unit": "hops", "over": "mean of intervals"}
    estimate = {"estimate": "mean", "value": value, "low": None, "high": None}
    return {**about, "group": group, **estimate, "n": 1, "runs": 1, **more}


@pytest.mark.parametrize(
    ("value", "low", "high", "n", "text"),
    [
        (None, None, None, 0, None),
        (22.36427891, None, None, 3, "22.3643"),
        (22.36427891, 22.36427891, 22.36427891, 3, "22.3643 ± 0"),
        (22.36427891, 21.0, 23.72855782, 3, "22.4 ± 1.4"),
        (2108790.0, 2108790.0, 2108790.0, 3, "2108790 ± 0"),
        (73859.0, 54208.0, 93510.0, 3, "74000 ± 20000"),
        (0.0000271, 0.0000269, 0.0000273, 3, "2.71e-05 ± 2e-07"),
        (0.5, 0.25, 0.75, 2, "0.50 ± 0.25 (n = 2)"),
    ],
)
def test_a_mean_has_the_digits_its_interval_supports(
    value: float | None, low: float | None, high: float | None, n: int, text: str | None
) -> None:
    assert told(record("gossip", value, low=low, high=high, n=n, runs=3)) == text


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((0.4512, 0.5488), "0.500 [0.451, 0.549]"),
        ((None, None), "0.5"),
        ((-2, 9), "0.5 [-2.0, 9.0]"),
    ],
)
def test_a_contrast_has_its_bounds(bounds: tuple[Any, Any], text: str) -> None:
    of = record("a / b", 0.5, low=bounds[0], high=bounds[1], estimate="ratio")
    assert told(of) == text


def test_groups_stand_beside_one_another() -> None:
    pair = record("a / b", 2.0, estimate="paired ratio")
    rows = side_by_side([record("a", 6.0, n=2, runs=2), record("b", 3.0), pair])
    assert rows.columns == (
        "metric", "a (2 runs)", "b (1 run)", "a / b, paired", "unit", "over",
    )  # fmt: skip
    assert list(rows.values) == [("diameter", "6", "3", "2", "hops", "mean of intervals")]


def test_more_groups_than_fit_stand_below_one_another() -> None:
    rows = side_by_side([record(f"g{i}", float(i)) for i in range(5)])
    assert [row[1:3] for row in rows.values] == [(f"g{i}", str(i)) for i in range(5)]


def test_each_setting_has_its_row() -> None:
    """One of the settings lacks a run, and one a group."""
    every = [
        record("a", 1.0, setting="0", n=2, runs=2),
        record("a", 2.0, setting="5"),
        record("b", 3.0, setting="5"),
    ]
    rows = side_by_side(every, ("churn",))
    assert rows.columns == ("metric", "churn", "a (2 runs)", "b (1 run)", "unit", "over")
    about = ("hops", "mean of intervals")
    assert list(rows.values) == [
        ("diameter", "0", "1", None, *about),
        ("diameter", "5", "2 (n = 1)", "3", *about),
    ]
