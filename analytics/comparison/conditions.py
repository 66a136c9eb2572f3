"""Conditions on a comparison, such as 'delay_us_p95 > 1.1x': do they hold, and for certain?

A condition is about the mean of a metric over the runs of a group. Its limit is a number, or `Nx`:
N times the mean of the first group. It holds for certain where the whole 95 % confidence interval
of the difference (mean - limit) satisfies it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isfinite
from typing import Literal

import pyarrow as pa

from vizpub.analytics.comparison.estimates import Estimate, difference, mean
from vizpub.analytics.comparison.metrics import Metric, full_name
from vizpub.analytics.comparison.tables import (
    RunMetrics,
    are_paired,
    group_by_label,
    pair_values,
    sort_settings,
)
from vizpub.model.errors import UseError

NEEDS_TWO_GROUPS = "needs a second group of runs to compare with the first"
NO_INTERVAL_TO_JUDGE = "a single run has no confidence interval"
UNKNOWN_IN_EVERY_RUN = "the metric is unknown in every run"
UNKNOWN_IN_EVERY_PAIR = "the metric is unknown in a run of every pair"

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(
    r"\s*(?P<metric>[^\s<>=]+)\s*(?P<comparison><=|>=|<|>)"
    r"\s*(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?P<factor>x?)\s*",
    re.IGNORECASE,
)
_RESOLUTION = 1e-12
"""A difference below this share of the limit is 0: the last digits of sums are noise."""

Result = Literal["passed", "possible", "failed", "unknown"]

JUDGEMENTS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("condition", "group", "result")),
        *(pa.field(name, pa.float64()) for name in ("value", "limit", "difference", "low", "high")),
        *(pa.field(name, pa.int32()) for name in ("n", "runs")),
        *(pa.field(name, pa.string()) for name in ("unit", "over", "reason")),
    ]
)
"""A row for each condition and group. `low` and `high` bound the 95 % confidence interval of the
difference, value - limit; `reason` says why a result is unknown."""


@dataclass(frozen=True)
class Condition:
    """A condition under which a comparison fails."""

    text: str
    metric: str
    comparison: str
    number: float
    is_factor: bool
    """`number` is a multiple of the first group's mean."""
    fails_if_possible: bool
    """The comparison also fails where the condition may hold, but does not for certain."""

    @classmethod
    def parse(cls, text: str, *, fails_if_possible: bool = False) -> Condition:
        """Parse 'METRIC > NUMBER' or 'METRIC > Nx'. Raises: UseError."""
        match = _CONDITION.fullmatch(text)
        if match is None or not isfinite(float(match["number"])):
            raise UseError(
                f"'{text}' is not a condition; write a metric, one of "
                f"{' '.join(_COMPARISONS)}, and a number or a multiple of the first group's value, "
                "such as 'hit_ratio < 0.99' or 'delay_us_p95 > 1.1x'"
            )
        return cls(
            " ".join(text.split()),
            match["metric"],
            match["comparison"],
            float(match["number"]),
            bool(match["factor"]),
            fails_if_possible,
        )

    def judge(self, distance: Estimate) -> Result:
        """Judge whether the comparison fails, given the difference from the limit."""
        holds = _COMPARISONS[self.comparison]
        if distance.value is None or (distance.low is None and not self.fails_if_possible):
            return "unknown"
        ends = (distance.low, distance.high)
        if None in ends:  # of single runs there is only the value
            ends = (distance.value, distance.value)
        held = [holds(end, 0.0) for end in ends if end is not None]
        if all(held) or (any(held) and self.fails_if_possible):
            return "failed"
        return "possible" if any(held) else "passed"


def judge_conditions(
    runs: Sequence[RunMetrics],
    metrics: Sequence[Metric],
    conditions: Sequence[Condition],
    over: str | None = None,
) -> pa.Table:
    """Judge every condition on the groups after the first, or on the only group; with `over`, the
    name of a parameter or attribute, at each of its values.

    `metrics` are those that the conditions name. Returns a table of `JUDGEMENTS`.

    Raises: UseError for a multiple of the first group's value if there is no other group.
    """
    first_label, *other_labels = group_by_label(runs)
    by_name = {name: metric for metric in metrics for name in (full_name(metric), metric.name)}
    settings = sort_settings({run.setting for run in runs})
    by_place = {
        (label, setting): [run for run in of_group if run.setting == setting]
        for label, of_group in group_by_label(runs).items()
        for setting in settings
    }
    rows = []
    for condition, setting, label in product(conditions, settings, other_labels or [first_label]):
        if condition.is_factor and not other_labels:
            raise UseError(f"'{condition.text}' {NEEDS_TWO_GROUPS}")
        metric = by_name[condition.metric]
        first, group = by_place[first_label, setting], by_place[label, setting]
        value, limit, distance = _measure_difference(condition, metric.name, first, group)
        result, reason = condition.judge(distance), None
        if result == "unknown":
            concerned = {first_label: first} if condition.is_factor else {}
            concerned[label] = group
            reason = _find_reason(concerned, metric.name, distance)
        shown = f"{label} {over}={setting}" if over else label
        judged = (condition.text, shown, result, value, limit, distance.value)
        bounds = (distance.low, distance.high, distance.n, len(group))
        rows.append((*judged, *bounds, metric.unit, metric.over, reason))
    return pa.Table.from_pylist(
        [dict(zip(JUDGEMENTS.names, row, strict=True)) for row in rows], JUDGEMENTS
    )


def _measure_difference(
    condition: Condition, name: str, first: Sequence[RunMetrics], group: Sequence[RunMetrics]
) -> tuple[float | None, float | None, Estimate]:
    """The mean of the metric, the limit, and the difference of both with its interval."""
    paired = condition.is_factor and are_paired(group, first)
    values, base = (
        pair_values(group, first, name) if paired else (_known(group, name), _known(first, name))
    )
    value = mean(values).value
    if not condition.is_factor:
        limit: float | None = condition.number
        distance = mean([one - condition.number for one in values])
    else:
        base_mean = mean(base).value
        limit = None if base_mean is None else condition.number * base_mean
        distance = difference(values, [condition.number * one for one in base], paired=paired)
    zero = _RESOLUTION * abs(limit or 0)
    middle, low, high = (
        0.0 if one is not None and abs(one) <= zero else one
        for one in (distance.value, distance.low, distance.high)
    )
    return value, limit, replace(distance, value=middle, low=low, high=high)


def _known(runs: Sequence[RunMetrics], name: str) -> list[float]:
    return [value for run in runs if (value := run.values[name]) is not None]


def _find_reason(groups: Mapping[str, Sequence[RunMetrics]], name: str, distance: Estimate) -> str:
    """Why a condition on these groups cannot be judged."""
    if unknown := [label for label, runs in groups.items() if not _known(runs, name)]:
        return f"{UNKNOWN_IN_EVERY_RUN} of {', '.join(unknown)}"
    return UNKNOWN_IN_EVERY_PAIR if distance.value is None else NO_INTERVAL_TO_JUDGE
