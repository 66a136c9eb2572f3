"""Groups of runs side by side, against plain loops and scipy."""

from __future__ import annotations

from math import isnan
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from scipy import stats

from vizpub.analytics.comparison.metrics import Metric
from vizpub.analytics.comparison.tables import (
    COMPARISON,
    SERIES,
    RunMetrics,
    are_paired,
    compare_groups,
    compare_series,
    compare_settings,
    is_known,
    sort_settings,
)

DIAMETER = Metric("diameter", "hops", "mean of intervals", "largest distance")
HITS = Metric("hit_ratio", "share", "pooled over messages", "delivered / eligible")
GOSSIP = {1: 4.0, 2: 5.0, 3: 6.5}
TREE = {1: 9.0, 2: 11.0, 3: 12.0}


def runs(group: str, diameters: dict[int, float], **values: float | None) -> list[RunMetrics]:
    return [
        RunMetrics(f"{group}-{seed}", group, seed, {"diameter": value, "hit_ratio": 0.5, **values})
        for seed, value in diameters.items()
    ]


def rows(table: Any, **where: str) -> list[dict[str, Any]]:
    return [r for r in table.to_pylist() if all(r[k] == v for k, v in where.items())]


def test_group_mean_and_interval_equal_scipy() -> None:
    table = compare_groups([*runs("gossip", GOSSIP), *runs("tree", TREE)], [DIAMETER, HITS])
    assert table.schema == COMPARISON
    for group, values in (("gossip", [*GOSSIP.values()]), ("tree", [*TREE.values()])):
        (row,) = rows(table, metric="diameter", group=group)
        low, high = stats.t.interval(0.95, 2, fmean(values), stats.sem(values))
        assert (row["unit"], row["over"], row["estimate"]) == ("hops", "mean of intervals", "mean")
        assert (row["n"], row["runs"]) == (3, 3)
        assert [row[name] for name in ("value", "low", "high", "sd")] == pytest.approx(
            [fmean(values), low, high, stdev(values)]
        )


def test_groups_of_the_same_seeds_are_compared_in_pairs() -> None:
    # In another order: the seed makes the pair, not the place.
    tree = runs("tree", TREE)[::-1]
    table = compare_groups([*runs("gossip", GOSSIP), *tree], [DIAMETER])
    apart = stats.ttest_rel([*GOSSIP.values()], [*TREE.values()]).confidence_interval(0.95)
    (row,) = rows(table, estimate="paired difference")
    assert row["group"] == "gossip - tree"
    assert [row["low"], row["high"]] == pytest.approx([apart.low, apart.high])
    assert (row["n"], row["runs"], row["sd"]) == (3, 3, None)
    (quotient,) = rows(table, estimate="paired ratio")
    assert quotient["group"] == "gossip / tree"
    assert quotient["value"] == pytest.approx(15.5 / 32)


def test_groups_of_other_seeds_are_compared_by_welchs_interval() -> None:
    others = {seed + 10: value for seed, value in TREE.items()}
    table = compare_groups([*runs("gossip", GOSSIP), *runs("tree", others)], [DIAMETER])
    welch = stats.ttest_ind([*GOSSIP.values()], [*TREE.values()], equal_var=False)
    (row,) = rows(table, estimate="difference")
    bounds = welch.confidence_interval(0.95)
    assert [row["low"], row["high"]] == pytest.approx([bounds.low, bounds.high])
    assert (row["n"], row["runs"]) == (6, 6)
    assert len(rows(table, estimate="ratio")) == 1


@pytest.mark.parametrize(
    ("first", "second", "paired"),
    [
        ([1, 2], [2, 1], True),
        ([1, 2], [1, 2, 3], False),
        ([1, 1], [1, 1], False),
        ([None, None], [None, None], False),
        ([1], [1], False),  # a single pair has no interval
    ],
)
def test_groups_are_paired_by_equal_unique_seeds(
    first: list[Any], second: list[Any], paired: bool
) -> None:
    x, y = ([RunMetrics("r", "g", seed) for seed in seeds] for seeds in (first, second))
    assert are_paired(x, y) is paired


def test_unknown_values_are_left_out_and_their_runs_counted() -> None:
    gossip = runs("gossip", GOSSIP)
    unknown = RunMetrics("gossip-2", "gossip", 2, {"diameter": None})
    table = compare_groups([gossip[0], unknown, gossip[2], *runs("tree", TREE)], [DIAMETER])
    (mean,) = rows(table, group="gossip")
    assert (mean["value"], mean["n"], mean["runs"]) == (pytest.approx(5.25), 2, 3)
    (apart,) = rows(table, estimate="paired difference")
    assert apart["value"] == pytest.approx(fmean([4 - 9, 6.5 - 12]))
    assert (apart["n"], apart["runs"]) == (2, 3)


def test_metric_unknown_in_all_runs_has_no_value() -> None:
    blind = [RunMetrics(f"r{i}", group, i, {"diameter": None}) for i in (1, 2) for group in "ab"]
    for row in compare_groups(blind, [DIAMETER]).to_pylist():
        assert [row[name] for name in ("value", "low", "high", "sd", "n")] == [None] * 4 + [0]
    assert not is_known(blind[0], "diameter")


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_difference_and_ratio_need_exactly_two_groups(names: list[str]) -> None:
    every = [run for name in names for run in runs(name, GOSSIP)]
    table = compare_groups(every, [DIAMETER])
    assert table["estimate"].to_pylist() == ["mean"] * len(names)
    assert table["group"].to_pylist() == names


def test_single_run_has_a_value_and_no_interval() -> None:
    (row,) = compare_groups(runs("gossip", {1: 4.0}), [DIAMETER]).to_pylist()
    assert (row["value"], row["low"], row["high"], row["sd"], row["n"]) == (4, None, None, None, 1)


@pytest.mark.parametrize("seed", range(5))
def test_series_equals_the_comparison_of_each_interval(seed: int) -> None:
    print(f"seed {seed}")
    draw = np.random.default_rng(seed)

    def series() -> list[float | None]:
        return [None if draw.random() < 0.3 else draw.normal() for _ in range(12)]

    every = [
        RunMetrics(f"{g}{i}", g, i, series={"diameter": series()}) for i in range(4) for g in "ab"
    ]
    table = compare_series(every, [DIAMETER], first_interval=5)
    assert table.schema == SERIES
    assert table["interval"].to_pylist() == [*range(5, 17)] * 2
    for place in range(12):
        now = [
            RunMetrics(r.run, r.group, r.seed, {"diameter": r.series["diameter"][place]})
            for r in every
        ]
        alone = [r for r in compare_groups(now, [DIAMETER]).to_pylist() if r["estimate"] == "mean"]
        for row in alone:
            (found,) = [r for r in rows(table, group=row["group"]) if r["interval"] == place + 5]
            for name in ("value", "low", "high", "sd", "n", "runs"):
                assert found[name] == (row[name] and pytest.approx(row[name])), name
                assert found[name] is None or not isnan(found[name])


def test_settings_table_equals_the_comparison_at_each_setting() -> None:
    every = [
        RunMetrics(f"{group}{setting}{seed}", group, seed, {"diameter": value}, setting=setting)
        for setting, value in (("20s", 7.0), ("5s", 3.0))
        for group in ("gossip", "tree")
        for seed in (1, 2)
    ]
    table = compare_settings(every, [DIAMETER])
    assert table.column_names == ["setting", *COMPARISON.names]
    assert table["setting"].to_pylist() == ["5s"] * 4 + ["20s"] * 4
    for place, setting in enumerate(("5s", "20s")):
        alone = compare_groups([run for run in every if run.setting == setting], [DIAMETER])
        assert table.slice(4 * place, 4).drop(["setting"]).to_pylist() == alone.to_pylist()


def test_settings_are_ordered_by_their_numbers() -> None:
    names = ["weibull:9s", "exponential:100s", "exponential:20s", "exponential:5.5s", "none"]
    assert sort_settings(names) == [*names[3:0:-1], "none", "weibull:9s"]
    assert sort_settings(["1e-05", "0.1", "2", "10", "0"]) == ["0", "1e-05", "0.1", "2", "10"]
    assert sort_settings(["5", "-10", "0", "-5"]) == ["-10", "-5", "0", "5"]
    assert sort_settings(["scribe-10", "scribe-9", "7", ""]) == ["", "7", "scribe-9", "scribe-10"]
