"""Estimates over runs, against scipy, and against what they promise: to cover the truth."""

from __future__ import annotations

from math import isclose, sqrt
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize, stats

from vizpub.analytics.comparison.estimates import Estimate, difference, mean, ratio, row_means

reals = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
samples = st.lists(reals, min_size=2, max_size=9)


def near(found: Estimate, value: float, low: float, high: float) -> None:
    scale = 1e-9 * max(1, abs(value), abs(low), abs(high))
    got = [found.value, found.low, found.high]
    assert got == [pytest.approx(x, abs=scale, rel=1e-7) for x in (value, low, high)]


@given(samples)
def test_mean_interval_equals_students_t_of_scipy(values: list[float]) -> None:
    found, n = mean(values), len(values)
    spread = stdev(values)
    half = stats.t.ppf(0.975, n - 1) * spread / sqrt(n)
    near(found, fmean(values), fmean(values) - half, fmean(values) + half)
    assert (found.n, found.sd) == (n, pytest.approx(spread, rel=1e-6, abs=1e-6))


def test_mean_interval_equals_the_textbook_t_of_three_runs() -> None:
    """t(2) leaves 2.5 % above 4.3027."""
    found = mean([1.0, 2.0, 3.0])
    assert found.high == pytest.approx(2 + 4.302653 / sqrt(3))


def test_runs_that_differ_by_the_order_of_a_sum_have_no_spread() -> None:
    found = mean([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1])
    assert (found.low, found.high, found.sd) == (found.value, found.value, 0)


def test_estimate_of_one_run_has_a_value_without_interval() -> None:
    assert mean([7.0]) == Estimate(7.0, n=1)
    assert mean([]) == Estimate(None)
    for of in (difference, ratio):
        assert of([6.0], [3.0]).low is None
        assert of([6.0], [3.0, 3.0]).high is None
        assert of([], [3.0, 3.0]).value is None
    assert (difference([6.0], [3.0]).value, ratio([6.0], [3.0]).value) == (3, 2)


def test_interval_of_equal_runs_has_no_width() -> None:
    assert mean([833.0] * 3) == Estimate(833, 833, 833, 3, 0)
    near(difference([5.0, 5.0], [3.0, 3.0]), 2, 2, 2)
    near(ratio([6.0, 6.0], [3.0, 3.0, 3.0]), 2, 2, 2)
    near(difference([5.0, 6.0], [3.0, 4.0], paired=True), 2, 2, 2)


@given(st.lists(st.lists(st.one_of(st.none(), reals), min_size=4, max_size=4), min_size=1))
def test_row_means_equal_the_mean_of_the_known_values(rows: list[list[float | None]]) -> None:
    found = row_means(np.array(rows, dtype=float))
    for place, row in enumerate(rows):
        one = mean([x for x in row if x is not None])
        for name in ("value", "low", "high", "sd"):
            expected = getattr(one, name)
            got = found[name][place]
            assert np.isnan(got) if expected is None else isclose(got, expected, abs_tol=1e-6)
        assert found["n"][place] == one.n


@given(samples, samples)
def test_difference_interval_equals_welchs_of_scipy(x: list[float], y: list[float]) -> None:
    assume(stdev(x) and stdev(y))  # scipy warns of samples that do not vary
    expected = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    near(difference(x, y), fmean(x) - fmean(y), expected.low, expected.high)


@given(st.lists(st.tuples(reals, reals), min_size=2, max_size=9))
def test_paired_difference_equals_the_mean_over_the_pairs(pairs: list[tuple[float, float]]) -> None:
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    found, apart = difference(x, y, paired=True), mean([a - b for a, b in pairs])
    assert found.n == len(pairs)
    for name in ("value", "low", "high"):
        assert getattr(found, name) == getattr(apart, name)


def welch_t(x: list[float], y: list[float], r: float, freedom_at: float) -> float:
    """(mean(x) - r·mean(y)) in standard errors, less the quantile that it may reach."""
    n, m = len(x), len(y)

    def parts(factor: float) -> tuple[float, float]:
        return stdev(x) ** 2 / n, factor**2 * stdev(y) ** 2 / m

    a, b = parts(freedom_at)
    freedom = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
    return abs(fmean(x) - r * fmean(y)) / sqrt(sum(parts(r))) - float(stats.t.ppf(0.975, freedom))


@pytest.mark.parametrize("seed", range(20))
def test_ratio_bounds_lie_where_welchs_test_begins_rejecting(seed: int) -> None:
    print(f"seed {seed}")
    draw = np.random.default_rng(seed)
    x, y = draw.normal(20, 2, 5).tolist(), draw.normal(2, 0.1, 4).tolist()
    found = ratio(x, y)
    assert found.value is not None
    at = found.value
    low = optimize.brentq(lambda r: welch_t(x, y, r, at), 0, at)
    high = optimize.brentq(lambda r: welch_t(x, y, r, at), at, 100)
    near(found, fmean(x) / fmean(y), low, high)
    turned = ratio(y, x)
    assert turned.low == pytest.approx(1 / high, rel=0.05)  # the freedom is taken at the ratio


@pytest.mark.parametrize("seed", range(10))
def test_paired_ratio_bounds_lie_where_students_test_begins_rejecting(seed: int) -> None:
    print(f"seed {seed}")
    draw = np.random.default_rng(seed)
    y = draw.normal(2, 0.3, 5)
    x = 10 * y + draw.normal(0, 0.5, 5)
    found = ratio(x.tolist(), y.tolist(), paired=True)
    for bound in (found.low, found.high):
        assert bound is not None
        assert stats.ttest_1samp(x - bound * y, 0).pvalue == pytest.approx(0.05, rel=1e-6)
    assert found.low < found.value < found.high  # type: ignore[operator]


def test_ratio_to_a_possible_zero_has_no_bounds() -> None:
    found = ratio([1.0, 2.0, 3.0], [-1.0, 0.0, 2.0])
    assert found.value == pytest.approx(6)
    assert (found.low, found.high) == (None, None)
    assert ratio([1.0, 2.0], [0.0, 0.0]).value is None


@pytest.mark.parametrize("paired", [False, True])
def test_intervals_cover_the_truth_in_95_percent_of_experiments(paired: bool) -> None:
    """2,000 experiments of 5 and 5 runs: 95 % within three standard errors of 95 %."""
    draw, times = np.random.default_rng(7), 2000
    hits = {"mean": 0, "difference": 0, "ratio": 0}
    for _ in range(times):
        world = draw.normal(0, 1, 5) if paired else np.zeros(5)
        x, y = (20 + 2 * world + draw.normal(0, 1, 5)), (10 + world + draw.normal(0, 1, 5))
        truth = {"mean": 20, "difference": 10, "ratio": 2}
        found = {
            "mean": mean(x.tolist()),
            "difference": difference(x.tolist(), y.tolist(), paired=paired),
            "ratio": ratio(x.tolist(), y.tolist(), paired=paired),
        }
        for name, estimate in found.items():
            assert estimate.low is not None
            assert estimate.high is not None
            hits[name] += estimate.low <= truth[name] <= estimate.high
    for name, count in hits.items():
        assert count / times == pytest.approx(0.95, abs=3 * sqrt(0.95 * 0.05 / times)), name
