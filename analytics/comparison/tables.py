"""Comparison of runs: every metric per group, and contrasts of two groups.

A group is a system or a setting; its runs differ in the seed and are independent. In: the metrics
of each run (`vizpub.analytics.comparison.per_run`). Out: Arrow tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from vizpub.analytics.comparison.estimates import Estimate, difference, mean, ratio, row_means
from vizpub.analytics.comparison.metrics import Metric

_NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
_WHAT = [pa.field(name, pa.string()) for name in ("metric", "unit", "over", "group")]
_VALUE = [pa.field(name, pa.float64()) for name in ("value", "low", "high", "sd")]
_COUNTS = [pa.field(name, pa.int32()) for name in ("n", "runs")]
COMPARISON = pa.schema([*_WHAT, pa.field("estimate", pa.string()), *_VALUE, *_COUNTS])
_OVER_SETTINGS = COMPARISON.insert(0, pa.field("setting", pa.string()))
SERIES = pa.schema([*_WHAT, pa.field("interval", pa.int32()), *_VALUE, *_COUNTS])


@dataclass(frozen=True)
class RunMetrics:
    """The metrics of a run, by name."""

    run: str
    group: str = ""
    seed: int | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    """A value of each metric; null is unknown."""
    series: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """A value of each metric in every interval of the window."""
    setting: str = ""
    """Its value of the parameter to compare over."""


def is_known(run: RunMetrics, name: str) -> bool:
    """Return True if the run has a value of the metric, in one interval at least."""
    return run.values.get(name) is not None or any(
        value is not None for value in run.series.get(name, ())
    )


def group_by_label(runs: Iterable[RunMetrics]) -> dict[str, list[RunMetrics]]:
    """Return the runs by group, both in the order of `runs`."""
    groups: dict[str, list[RunMetrics]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    return groups


def are_paired(x: Sequence[RunMetrics], y: Sequence[RunMetrics]) -> bool:
    """Return True if two groups are of the same runs, or have the same distinct seeds, that is the
    same random numbers.
    """
    return _pair_by(x, y) is not None


def _pair_by(x: Sequence[RunMetrics], y: Sequence[RunMetrics]) -> str | None:
    """Return what pairs the members of two groups; null if nothing does."""
    for name in ("run", "seed"):
        keys, others = ([getattr(one, name) for one in group] for group in (x, y))
        is_distinct = len({*keys}) == len(keys) == len(others) > 1
        if None not in keys and is_distinct and {*keys} == {*others}:
            return name
    return None


def compare_groups(runs: Sequence[RunMetrics], metrics: Sequence[Metric]) -> pa.Table:
    """The mean of every metric over the runs of each group, and contrasts of two groups.

    A row for each metric, group and `estimate`: 'mean' and, if there are exactly two groups,
    'ratio' and 'difference' of the first to the second ('paired ratio' and 'paired difference'
    if both have the same seeds or are of the same runs). `low` and `high` bound the 95 % confidence
    interval, null if there is none. `n` counts the runs (or pairs) with a known value, `runs` all
    of them.

        metric    unit  over               group       estimate  value  low   high  sd   n  runs
        diameter  hops  mean of intervals  poldercast  mean      6.5    6.1   6.9   .2   3  3
        diameter  hops  mean of intervals  poldercast / scribe  paired ratio  0.61 …
    """
    by_group = group_by_label(runs)
    rows: list[tuple[object, ...]] = []
    for metric in metrics:
        about = (metric.name, metric.unit, metric.over)
        for name, members in by_group.items():
            values = [run.values[metric.name] for run in members]
            estimate = mean([value for value in values if value is not None])
            rows.append((*about, name, "mean", *_cells(estimate), len(members)))
        if len(by_group) == 2:
            rows += [(*about, *row) for row in _contrasts(by_group, metric)]
    return pa.Table.from_pylist(
        [dict(zip(COMPARISON.names, row, strict=True)) for row in rows], COMPARISON
    )


def _contrasts(
    by_group: dict[str, list[RunMetrics]], metric: Metric
) -> Iterator[tuple[object, ...]]:
    (x_name, x), (y_name, y) = by_group.items()
    paired = are_paired(x, y)
    first, second = (
        pair_values(x, y, metric.name)
        if paired
        else (
            [value for run in group if (value := run.values[metric.name]) is not None]
            for group in (x, y)
        )
    )
    runs = len(x) if paired else len(x) + len(y)
    word = "paired " if paired else ""
    quotient = ratio(first, second, paired=paired)
    yield f"{x_name} / {y_name}", f"{word}ratio", *_cells(quotient), runs
    gap = difference(first, second, paired=paired)
    yield f"{x_name} - {y_name}", f"{word}difference", *_cells(gap), runs


def compare_settings(runs: Sequence[RunMetrics], metrics: Sequence[Metric]) -> pa.Table:
    """`compare` at each setting in numeric order; its columns after `setting`."""
    parts = [_OVER_SETTINGS.empty_table()]
    for metric in metrics:
        for setting in sort_settings({run.setting for run in runs}):
            table = compare_groups([run for run in runs if run.setting == setting], [metric])
            column = pa.array([setting] * table.num_rows, pa.string())
            parts.append(table.add_column(0, "setting", column))
    return pa.concat_tables(parts)


def sort_settings(settings: Iterable[str]) -> list[str]:
    """Settings in the order of the numbers in them: 'exponential:5s' before 'exponential:20s'."""
    texts = [*settings]
    try:
        return sorted(texts, key=float)
    except ValueError:
        return sorted(texts, key=_split_numbers)


def _split_numbers(text: str) -> list[str | float]:
    """Text and numbers in turns, so that two names compare part by part."""
    return [float(part) if i % 2 else part for i, part in enumerate(_NUMBER.split(text))]


def pair_values(
    x: Sequence[RunMetrics], y: Sequence[RunMetrics], name: str
) -> tuple[list[float], list[float]]:
    """Return the values of the members of each pair, if both are known."""
    key = _pair_by(x, y)
    assert key is not None
    others = {getattr(one, key): one.values[name] for one in y}
    both = [(one.values[name], others[getattr(one, key)]) for one in x]
    known_pairs = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in known_pairs], [b for _, b in known_pairs]


def _cells(estimate: Estimate) -> tuple[object, ...]:
    return estimate.value, estimate.low, estimate.high, estimate.sd, estimate.n


def compare_series(
    runs: Sequence[RunMetrics], metrics: Sequence[Metric], first_interval: int = 0
) -> pa.Table:
    """The mean of every metric over the runs of each group, interval by interval.

    Columns as of `compare`, with `interval` instead of `estimate`.
    """
    by_group = group_by_label(runs)
    parts = [
        _series_table(members, metric, first_interval)
        for metric in metrics
        for members in by_group.values()
    ]
    return pa.concat_tables([SERIES.empty_table(), *parts])


def _series_table(members: Sequence[RunMetrics], metric: Metric, first: int) -> pa.Table:
    values = np.array([run.series[metric.name] for run in members], dtype=float).T
    means = row_means(values.reshape(-1, len(members)))
    count = len(values)
    about = (metric.name, metric.unit, metric.over, members[0].group)
    columns = [
        *(pa.array([text] * count) for text in about),
        pa.array(range(first, first + count)),
        *(pa.array(means[name], from_pandas=True) for name in ("value", "low", "high", "sd")),
        pa.array(means["n"].astype(int)),
        pa.array([len(members)] * count),
    ]
    return pa.table([c.cast(f.type) for c, f in zip(columns, SERIES, strict=True)], schema=SERIES)
