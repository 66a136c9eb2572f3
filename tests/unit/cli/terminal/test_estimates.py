"""Estimates as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from cli.terminal.estimates import for_people, told


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
def test_mean_has_the_digits_that_its_interval_supports(
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
def test_ratio_is_shown_with_its_bounds(bounds: tuple[Any, Any], text: str) -> None:
    of = record("a / b", 0.5, low=bounds[0], high=bounds[1], estimate="ratio")
    assert told(of) == text


def test_large_ratio_without_bounds_is_shown_in_full() -> None:
    assert told(record("a / b", 1091.6, estimate="ratio")) == "1090"


def test_groups_stand_beside_one_another() -> None:
    pair = record("a / b", 2.0, estimate="paired ratio")
    rows, _ = for_people([record("a", 6.0, n=2, runs=2), record("b", 3.0), pair])
    assert rows.columns == (
        "metric", "a (2 runs)", "b (1 run)", "a / b, paired", "unit", "over",
    )  # fmt: skip
    assert list(rows.values) == [("diameter", "6", "3", "2", "hops", "mean of intervals")]


def test_groups_beyond_the_columns_stand_below_one_another() -> None:
    rows, _ = for_people([record(f"g{i}", float(i)) for i in range(5)])
    assert [row[1:3] for row in rows.values] == [(f"g{i}", str(i)) for i in range(5)]


def test_setting_has_a_row_despite_missing_run_or_group() -> None:
    """One of the settings lacks a run, and one a group."""
    every = [
        record("a", 1.0, setting="0", n=2, runs=2),
        record("a", 2.0, setting="5"),
        record("b", 3.0, setting="5"),
    ]
    rows, _ = for_people(every, ("churn",))
    assert rows.columns == ("metric", "churn", "a (2 runs)", "b (1 run)", "unit", "over")
    about = ("hops", "mean of intervals")
    assert list(rows.values) == [
        ("diameter", "0", "1", None, *about),
        ("diameter", "5", "2 (n = 1)", "3", *about),
    ]


def test_estimates_are_never_cut_to_the_width() -> None:
    groups = [record(name, 3.14159, low=3.0, high=3.28318, n=2, runs=2) for name in ("a", "b")]
    every = [*groups, record("a / b", 1.0, low=0.9, high=1.1, estimate="ratio")]
    whole, nothing = for_people(every)
    assert nothing == ()
    cells = {str(cell) for row in whole.values for cell in row}
    for width in range(20, 100):
        rows, hidden = for_people(every, width=width)
        assert {str(cell) for row in rows.values for cell in row} <= cells | {
            "a",
            "b",
            "a / b",
            "2",
        }
        if rows.columns[1] == "group":
            assert rows.columns[2] == "estimate, 95 %"
            assert len(list(rows.values)) == 3
        else:
            assert (*rows.columns, *hidden) == whole.columns
            assert len(rows.columns) >= 3
    assert for_people(every, width=25)[0].columns[1] == "group"
