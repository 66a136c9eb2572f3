"""Conditions on a comparison, against intervals computed by hand and by scipy."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

from tests.support.words import naming
from vizpub.analytics.comparison.conditions import (
    JUDGEMENTS,
    NEEDS_TWO_GROUPS,
    NO_INTERVAL_TO_JUDGE,
    UNKNOWN_IN_EVERY_PAIR,
    UNKNOWN_IN_EVERY_RUN,
    Condition,
    judge_conditions,
)
from vizpub.analytics.comparison.estimates import Estimate
from vizpub.analytics.comparison.metrics import Metric
from vizpub.analytics.comparison.tables import RunMetrics
from vizpub.model.errors import UseError

DELAY = Metric("delay_us_p95", "µs", "mean of messages", "delay", "messages", "delay_us_p95")
T_2 = 4.302652729911275
"""Student's quantile of 97.5 % with two degrees of freedom, as printed tables have it: 4.303."""


def group(label: str, *values: float | None, seeds: bool = True) -> list[RunMetrics]:
    return [
        RunMetrics(f"{label}-{i}", label, i if seeds else None, {DELAY.name: value})
        for i, value in enumerate(values)
    ]


def judge(text: str, *runs: RunMetrics, possible: bool = False) -> dict[str, Any]:
    condition = Condition.parse(text, fails_if_possible=possible)
    table = judge_conditions(runs, [DELAY], [condition])
    assert table.schema == JUDGEMENTS
    (row,) = table.to_pylist()
    return dict(row)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hit_ratio < 0.99", ("hit_ratio", "<", 0.99, False)),
        ("delay_us_p95>1.1x", ("delay_us_p95", ">", 1.1, True)),
        ("  topics/hit_ratio <= .5X ", ("topics/hit_ratio", "<=", 0.5, True)),
        ("gauges/a/per/b >= -2e3", ("gauges/a/per/b", ">=", -2000.0, False)),
    ],
)
def test_condition_is_a_metric_a_comparison_and_a_limit(
    text: str, parts: tuple[str, str, float, bool]
) -> None:
    one = Condition.parse(text)
    assert (one.metric, one.comparison, one.number, one.is_factor) == parts


@pytest.mark.parametrize(
    "text",
    [
        *("", "hit_ratio", "hit_ratio < ", "< 3", "a = 3", "a => 3", "a < b", "a < 3 x", "a < nan"),
        *("a < 1e999", "a b < 3", "1 < a < 2", "a < 3xx", "a << 3", "a < 1,5"),
    ],
)
def test_text_that_is_no_condition_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UseError, match=naming(text, "hit_ratio < 0.99", "1.1x")):
        Condition.parse(text)


@pytest.mark.parametrize(
    ("comparison", "low", "high", "certain", "possible"),
    [
        (">", 0.1, 0.3, "failed", "failed"), (">", -0.1, 0.3, "possible", "failed"),
        (">", -0.3, -0.1, "passed", "passed"), (">", -0.3, 0.0, "passed", "passed"),
        (">=", 0.0, 0.0, "failed", "failed"), (">=", -0.3, 0.0, "possible", "failed"),
        ("<", -0.3, -0.1, "failed", "failed"), ("<", -0.3, 0.1, "possible", "failed"),
        ("<", 0.0, 0.0, "passed", "passed"), ("<=", 0.1, 0.3, "passed", "passed"),
    ],
)  # fmt: skip
def test_condition_fails_by_the_ends_of_the_interval(
    comparison: str, low: float, high: float, certain: str, possible: str
) -> None:
    distance = Estimate((low + high) / 2, low, high, 3)
    for is_enough, result in ((False, certain), (True, possible)):
        condition = Condition.parse(f"a {comparison} 1", fails_if_possible=is_enough)
        assert condition.judge(distance) == result


def test_number_is_judged_by_students_interval_computed_by_hand() -> None:
    # Mean 12, sd 2, half-width t·2/√3.
    runs = (*group("old", 1.0, 1.0, 1.0), *group("new", 10.0, 12.0, 14.0))
    half = T_2 * 2 / 3**0.5
    row = judge("delay_us_p95 > 5", *runs)
    assert (row["result"], row["group"], row["value"], row["limit"]) == ("failed", "new", 12, 5)
    assert [row["difference"], row["low"], row["high"]] == pytest.approx([7, 7 - half, 7 + half])
    assert (row["n"], row["runs"], row["unit"], row["over"]) == (3, 3, "µs", "mean of messages")
    assert judge("delay_us_p95 > 8", *runs)["result"] == "possible"
    assert judge("delay_us_p95 > 8", *runs, possible=True)["result"] == "failed"
    assert judge("delay_us_p95 > 17", *runs, possible=True)["result"] == "passed"


def test_multiple_is_judged_by_the_pairs_of_runs_computed_by_hand() -> None:
    # new - 1.5·old is 1, 2 and 3 of the three pairs: mean 2, sd 1.
    runs = (*group("old", 10.0, 20.0, 40.0), *group("new", 16.0, 32.0, 63.0))
    half = T_2 / 3**0.5
    row = judge("delay_us_p95 > 1.5x", *runs)
    assert [row["value"], row["limit"]] == pytest.approx([37, 35])
    assert [row["difference"], row["low"], row["high"]] == pytest.approx([2, 2 - half, 2 + half])
    assert (row["result"], row["n"]) == ("possible", 3)


def test_multiple_of_unpaired_runs_is_judged_by_welchs_interval_of_scipy() -> None:
    old, new = [10.0, 11.0, 12.5], [14.0, 15.0, 15.5, 16.0]
    row = judge("delay_us_p95 > 1.1x", *group("old", *old, seeds=False), *group("new", *new))
    bounds = stats.ttest_ind(new, [1.1 * v for v in old], equal_var=False).confidence_interval()
    assert [row["low"], row["high"]] == pytest.approx([bounds.low, bounds.high])
    assert row["result"] == "failed"


def test_paired_result_agrees_with_the_interval_of_the_ratio() -> None:
    # Fieller's interval holds the ratios that the data do not refuse: the same question.
    from vizpub.analytics.comparison.estimates import ratio

    old, new = [10.0, 11.0, 12.5, 13.0], [12.0, 12.9, 15.5, 15.0]
    quotient = ratio(new, old, paired=True)
    assert quotient.low is not None
    assert quotient.high is not None
    for factor in (quotient.low - 1e-6, quotient.low + 1e-6, quotient.high + 1e-6):
        runs = (*group("old", *old), *group("new", *new))
        result = judge(f"delay_us_p95 > {factor:.12f}x", *runs)["result"]
        expected = {True: "failed", False: "possible"}[factor < quotient.low]
        assert result == ("passed" if factor > quotient.high else expected)


def test_first_group_at_zero_still_has_a_limit() -> None:
    runs = (*group("old", 0.0, 0.0, 0.0), *group("new", 1.0, 1.1, 0.9))
    assert judge("delay_us_p95 > 1.1x", *runs)["result"] == "failed"
    same = (*group("old", 0.0, 0.0), *group("new", 0.0, 0.0))
    assert judge("delay_us_p95 > 1.1x", *same)["result"] == "passed"


def test_equal_runs_do_not_differ_by_the_last_digit_of_a_sum() -> None:
    runs = (*group("old", *[0.3] * 3, seeds=False), *group("new", *[0.3] * 7, seeds=False))
    for comparison in "<>":
        assert judge(f"delay_us_p95 {comparison} 1x", *runs)["result"] == "passed"
        assert judge(f"delay_us_p95 {comparison} 0.3", *runs)["result"] == "passed"
    assert judge("delay_us_p95 >= 1x", *runs)["result"] == "failed"


def test_unknown_metric_neither_passes_nor_fails() -> None:
    known, unknown = group("new", 1.0, 2.0), group("old", None, None)
    row = judge("delay_us_p95 > 1.1x", *unknown, *known)
    assert (row["result"], row["reason"]) == ("unknown", f"{UNKNOWN_IN_EVERY_RUN} of old")
    row = judge("delay_us_p95 > 1", *known, *unknown, possible=True)
    assert (row["result"], row["reason"]) == ("unknown", f"{UNKNOWN_IN_EVERY_RUN} of old")
    assert (row["value"], row["low"], row["n"]) == (None, None, 0)
    halves = (*group("old", 1.0, None), *group("new", None, 1.0))
    assert judge("delay_us_p95 > 1x", *halves)["reason"] == UNKNOWN_IN_EVERY_PAIR


def test_single_run_is_judged_only_where_the_possible_suffices() -> None:
    runs = (*group("old", 10.0), *group("new", 12.0))
    row = judge("delay_us_p95 > 1.1x", *runs)
    assert (row["result"], row["reason"]) == ("unknown", NO_INTERVAL_TO_JUDGE)
    assert judge("delay_us_p95 > 1.1x", *runs, possible=True)["result"] == "failed"
    assert judge("delay_us_p95 > 1.3x", *runs, possible=True)["result"] == "passed"


def test_groups_after_the_first_are_judged_and_the_only_one_too() -> None:
    runs = [*group("old", 1.0, 1.0), *group("a", 3.0, 3.0), *group("b", 1.0, 1.0)]
    condition = Condition.parse("messages/delay_us_p95 > 2x")
    table = judge_conditions(runs, [DELAY], [condition])
    assert table.select(["group", "result"]).to_pylist() == [
        {"group": "a", "result": "failed"},
        {"group": "b", "result": "passed"},
    ]
    assert judge("delay_us_p95 > 2", *group("a", 3.0, 3.0))["result"] == "failed"
    with pytest.raises(UseError, match=naming(NEEDS_TWO_GROUPS)):
        judge("delay_us_p95 > 2x", *group("a", 3.0, 3.0))
