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
class Measured:
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


def is_known(run: Measured, name: str) -> bool:
    """Whether the run has a value of the metric, in one interval at least."""
    return run.values.get(name) is not None or any(
        value is not None for value in run.series.get(name, ())
    )


def _groups(runs: Iterable[Measured]) -> dict[str, list[Measured]]:
    """The runs by group, both in the order of `runs`."""
    found: dict[str, list[Measured]] = {}
    for run in runs:
        found.setdefault(run.group, []).append(run)
    return found


def are_paired(x: Sequence[Measured], y: Sequence[Measured]) -> bool:
    """Whether two groups have the same distinct seeds, that is the same random numbers."""
    seeds, others = ([run.seed for run in group] for group in (x, y))
    return None not in seeds and len({*seeds}) == len(seeds) == len(others) > 1 and (
        set(seeds) == set(others)
    )  # fmt: skip


def compare(runs: Sequence[Measured], metrics: Sequence[Metric]) -> pa.Table:
    """The mean of every metric over the runs of each group, and contrasts of two groups.

    A row for each metric, group and `estimate`: 'mean' and, if there are exactly two groups,
    'ratio' and 'difference' of the first to the second ('paired ratio' and 'paired difference'
    if both have the same seeds). `low` and `high` bound the 95 % confidence interval, null if
    there is none. `n` counts the runs (or pairs) with a known value, `runs` all of them.

        metric    unit  over               group       estimate  value  low   high  sd   n  runs
        diameter  hops  mean of intervals  poldercast  mean      6.5    6.1   6.9   .2   3  3
        diameter  hops  mean of intervals  poldercast / scribe  paired ratio  0.61 …
    """
    by_group = _groups(runs)
    rows: list[tuple[object, ...]] = []
    for metric in metrics:
        about = (metric.name, metric.unit, metric.over)
        for name, members in by_group.items():
            known = [run.values[metric.name] for run in members]
            found = mean([value for value in known if value is not None])
            rows.append((*about, name, "mean", *_cells(found), len(members)))
        if len(by_group) == 2:
            rows += [(*about, *row) for row in _contrasts(by_group, metric)]
    return _table(rows, COMPARISON)


def _contrasts(by_group: dict[str, list[Measured]], metric: Metric) -> Iterator[tuple[object, ...]]:
    (x_name, x), (y_name, y) = by_group.items()
    paired = are_paired(x, y)
    first, second = (
        _pairs(x, y, metric.name) if paired else (_known(g, metric.name) for g in (x, y))
    )
    runs = len(x) if paired else len(x) + len(y)
    word = "paired " if paired else ""
    quotient = ratio(first, second, paired=paired)
    yield f"{x_name} / {y_name}", f"{word}ratio", *_cells(quotient), runs
    apart = difference(first, second, paired=paired)
    yield f"{x_name} - {y_name}", f"{word}difference", *_cells(apart), runs


def compare_settings(runs: Sequence[Measured], metrics: Sequence[Metric]) -> pa.Table:
    """`compare` at each setting in numeric order; its columns after `setting`."""
    parts = [_OVER_SETTINGS.empty_table()]
    for metric in metrics:
        for setting in ordered({run.setting for run in runs}):
            found = compare([run for run in runs if run.setting == setting], [metric])
            column = pa.array([setting] * found.num_rows, pa.string())
            parts.append(found.add_column(0, "setting", column))
    return pa.concat_tables(parts)


def ordered(settings: Iterable[str]) -> list[str]:
    """Settings in the order of the numbers in them: 'exponential:5s' before 'exponential:20s'."""
    return sorted(settings, key=_alternating)


def _alternating(text: str) -> list[str | float]:
    """Text and numbers in turns, so that two names compare part by part."""
    return [float(part) if i % 2 else part for i, part in enumerate(_NUMBER.split(text))]


def _known(runs: Sequence[Measured], name: str) -> list[float]:
    return [value for run in runs if (value := run.values[name]) is not None]


def _pairs(
    x: Sequence[Measured], y: Sequence[Measured], name: str
) -> tuple[list[float], list[float]]:
    """Values of the runs of each seed, if both are known."""
    others = {run.seed: run.values[name] for run in y}
    both = [(run.values[name], others[run.seed]) for run in x]
    known = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in known], [b for _, b in known]


def _cells(found: Estimate) -> tuple[object, ...]:
    return found.value, found.low, found.high, found.sd, found.n


def compare_series(
    runs: Sequence[Measured], metrics: Sequence[Metric], first_interval: int = 0
) -> pa.Table:
    """The mean of every metric over the runs of each group, interval by interval.

    Columns as of `compare`, with `interval` instead of `estimate`.
    """
    by_group = _groups(runs)
    parts = [
        _series(members, metric, first_interval)
        for metric in metrics
        for members in by_group.values()
    ]
    return pa.concat_tables([SERIES.empty_table(), *parts])


def _series(members: Sequence[Measured], metric: Metric, first: int) -> pa.Table:
    values = np.array([run.series[metric.name] for run in members], dtype=float).T
    found = row_means(values.reshape(-1, len(members)))
    count = len(values)
    about = (metric.name, metric.unit, metric.over, members[0].group)
    columns = [
        *(pa.array([text] * count) for text in about),
        pa.array(range(first, first + count)),
        *(pa.array(found[name], from_pandas=True) for name in ("value", "low", "high", "sd")),
        pa.array(found["n"].astype(int)),
        pa.array([len(members)] * count),
    ]
    return pa.table([c.cast(f.type) for c, f in zip(columns, SERIES, strict=True)], schema=SERIES)


def _table(rows: Sequence[Sequence[object]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
