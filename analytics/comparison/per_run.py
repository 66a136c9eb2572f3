"""The value of each metric per complete run, for comparison; from the store only.

A comparison takes three steps:

    runs = [Run.open(workspace, name) for name in ("poldercast-1", "scribe-1")]
    compared = measure_runs(runs, ComparisonRequest(metrics=("diameter", "hit_ratio")))
    table = compare_groups(compared.runs, compared.metrics)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.comparison.gauges import gauge_series, gauge_values
from vizpub.analytics.comparison.groups import group_runs
from vizpub.analytics.comparison.metrics import (
    DEFAULT,
    DEFAULT_SERIES,
    GAUGES,
    Metric,
    find_interval_metric,
    find_metric,
    restrict_over,
)
from vizpub.analytics.comparison.tables import RunMetrics, is_known
from vizpub.model.clock import Clock
from vizpub.model.errors import UseError
from vizpub.model.own import OwnMetric
from vizpub.model.progress import Progress, silent
from vizpub.questions.names import NamedRun
from vizpub.questions.run import Run
from vizpub.questions.snapshots import not_refused
from vizpub.questions.sums.totals import Span, whole_run

NO_COMMON_INTERVAL = "the runs have no interval in common"
NO_INTERVAL_OF_WINDOW = "has no interval of the window"

_REFUSABLE = frozenset(
    {"eligible", "delivered", "delivered_in_interval", "hit_ratio", "late_deliveries"}
)
"""Metrics of messages that leave out messages that a peer refused, as all pooled metrics do."""


@dataclass(frozen=True)
class ComparisonRequest:
    """Request for a comparison of runs."""

    metrics: tuple[str, ...] | None = None
    """Names as in vizpub.analytics.comparison.metrics; null = the default ones that are known in a
    run."""
    by: tuple[str, ...] | None = None
    """Traits that distinguish groups (vizpub.analytics.comparison.groups)."""
    window: tuple[int | None, int | None] = (None, None)
    """First and last interval; null = of each run, or of the common intervals."""
    common: bool = False
    """Measure over the intervals that all runs have, as with `per_interval`; else each run over its
    own, so that its values do not depend on the others."""
    per_interval: bool = False
    """A value of each metric per interval instead of one per run."""
    setting: str | None = None
    """The parameter to compare over; it does not distinguish groups."""
    patterns: tuple[str, ...] = ()
    """The pattern that selected each of the runs, if patterns did."""


@dataclass(frozen=True)
class ComparedRuns:
    """The metrics of the runs, and caveats."""

    runs: tuple[RunMetrics, ...]
    metrics: tuple[Metric, ...]
    first: int
    last: int
    """The ends of series."""
    scope: str
    """What the values are taken over: 'whole runs, intervals 0 to 59', 'intervals 20 to 59'."""
    notes: tuple[str, ...] = ()


def common_clock(runs: Sequence[Run]) -> Clock:
    """The intervals that all runs have; their length is null if it differs.

    Raises: UseError if they have none in common.
    """
    clocks = [run.clock for run in runs]
    first, last = max(c.first for c in clocks), min(c.last for c in clocks)
    if first > last:
        spans = ", ".join(f"{r.facts.name}: {r.clock.describe_range()}" for r in runs)
        raise UseError(f"{NO_COMMON_INTERVAL} ({spans})")
    lengths = {clock.interval_us for clock in clocks}
    return Clock(1, lengths.pop() if len(lengths) == 1 else None, first, last)


def measure_runs(
    runs: Sequence[Run], question: ComparisonRequest | None = None, progress: Progress = silent
) -> ComparedRuns:
    """The metrics of every run, over its intervals in the window.

    Raises: UnknownName, UseError for what cannot be compared; StoreBroken.
    """
    question = question or ComparisonRequest()
    spans = _choose_spans(runs, question)
    scope = _describe_spans(spans)
    is_whole = all((span.first, span.last) == _ends(span.run) for span in spans)
    find = find_interval_metric if question.per_interval else find_metric
    defaults = DEFAULT_SERIES if question.per_interval else DEFAULT
    own_metrics = _own_metrics(runs)
    requested = [find(name, own_metrics) for name in question.metrics or defaults]
    metrics = tuple({metric_.name: metric_ for metric_ in requested}.values())
    if not (is_whole or question.per_interval):
        metrics = tuple(replace(one, over=restrict_over(one.over, scope)) for one in metrics)
    facts = [run.facts for run in runs]
    grouping = group_runs(facts, question.by, question.setting, question.patterns)
    measure = _measure_intervals if question.per_interval else _measure_run
    measured = []
    places = zip(spans, grouping.groups, grouping.settings, strict=True)
    for done, (span, group, setting) in enumerate(places):
        progress("read the runs", done, len(runs), span.run.facts.name)
        measured.append(replace(measure(span, metrics), group=group, setting=setting))
    known = tuple(one for one in metrics if any(is_known(run, one.name) for run in measured))
    selected = metrics if question.metrics else known
    notes = (
        *_interval_notes(spans, question),
        *_difference_notes(runs, metrics),
        *grouping.notes,
        *_refusal_notes(runs, selected),
        *_unknown_notes(measured, metrics),
    )
    scope = f"whole runs, {scope}" if is_whole else scope
    return ComparedRuns(tuple(measured), selected, spans[0].first, spans[0].last, scope, notes)


def _choose_spans(runs: Sequence[Run], question: ComparisonRequest) -> list[Span]:
    """The intervals to measure of each run. Raises: UseError where a run has none of them."""
    shared = question.common or question.per_interval
    clocks = [common_clock(runs)] * len(runs) if shared else [run.clock for run in runs]
    spans = [
        Span(run, *clock.clip(*question.window)) for run, clock in zip(runs, clocks, strict=True)
    ]
    for span in spans:
        if span.first > span.last:
            name, intervals = span.run.facts.name, span.run.clock.describe_range()
            raise UseError(f"run '{name}' {NO_INTERVAL_OF_WINDOW}: it has {intervals}")
    return spans


def _describe_spans(spans: Sequence[Span]) -> str:
    """'intervals 20 to 59'; the ends of the runs where they differ."""
    firsts, lasts = {span.first for span in spans}, {span.last for span in spans}
    first = str(*firsts) if len(firsts) == 1 else "the first"
    last = str(*lasts) if len(lasts) == 1 else "the last"
    return f"intervals {first} to {last}"


def _ends(run: NamedRun) -> tuple[int, int]:
    return run.clock.first, run.clock.last


def _own_metrics(runs: Sequence[Run]) -> tuple[OwnMetric, ...]:
    """The own metrics of all runs. Raises: UseError where one name is of several levels."""
    metrics: dict[str, OwnMetric] = {}
    for own_metric in (own_metric for run in runs for own_metric in run.facts.own):
        if metrics.setdefault(own_metric.name, own_metric).level != own_metric.level:
            raise UseError(f"the own metric '{own_metric.name}' is of another level in another run")
    return tuple(metrics.values())


def _measure_run(span: Span, metrics: Sequence[Metric]) -> RunMetrics:
    values: dict[str, float | None] = dict.fromkeys([metric_.name for metric_ in metrics])
    values |= whole_run(span, [metric_.name for metric_ in metrics if not metric_.table])
    for table, table_metrics, rows in _read_tables(span, metrics):
        values |= {
            metric_.name: _mean_value(table, rows, metric_.column) for metric_ in table_metrics
        }
    if gauges := [metric_ for metric_ in metrics if metric_.table == GAUGES]:
        gauge_totals = gauge_values(span, [metric_.column for metric_ in gauges])
        values |= {metric_.name: gauge_totals[metric_.column] for metric_ in gauges}
    return RunMetrics(span.run.facts.name, seed=span.run.facts.seed, values=values)


def _measure_intervals(span: Span, metrics: Sequence[Metric]) -> RunMetrics:
    tables = _read_tables(span, metrics)
    nothing = [None] * (span.last - span.first + 1)
    series: dict[str, list[float | None]] = {metric_.name: [*nothing] for metric_ in metrics}
    series |= {
        metric_.name: _mean_series(span, rows, metric_.column)
        for _, table_metrics, rows in tables
        for metric_ in table_metrics
    }
    if gauges := [metric_ for metric_ in metrics if metric_.table == GAUGES]:
        reported = gauge_series(span, [metric_.column for metric_ in gauges])
        series |= {metric_.name: reported[metric_.column] for metric_ in gauges}
    return RunMetrics(span.run.facts.name, seed=span.run.facts.seed, series=series)


def _read_tables(
    span: Span, metrics: Sequence[Metric]
) -> Iterator[tuple[str, list[Metric], pa.Table]]:
    """Each metrics table once, with those of its metrics that the run has, and their rows."""
    for table in dict.fromkeys(
        metric_.table for metric_ in metrics if metric_.table not in ("", GAUGES)
    ):
        columns = span.run.stored.definition(f"metrics/{table}").names
        table_metrics = [
            metric_ for metric_ in metrics if metric_.table == table and metric_.column in columns
        ]
        yield (
            table,
            table_metrics,
            _read_rows(span, table, [metric_.column for metric_ in table_metrics]),
        )


def _read_rows(span: Span, table: str, columns: Sequence[str]) -> pa.Table:
    """interval and the columns: the rows of the window to average."""
    selected = ["interval", *dict.fromkeys(columns)]
    if table == "messages":
        return _hide_refused(span.messages, columns).select(selected)
    if table == "peers":
        is_present = span.inside & pc.coalesce(pc.field("present"), pc.scalar(True))
        return span.read("metrics/peers", selected, is_present)
    return span.read(f"metrics/{table}", selected, span.inside)


def _hide_refused(messages: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Messages; metrics of `_REFUSABLE` are null for messages that a peer refused."""
    is_accepted = pc.is_in(messages["message"], messages.filter(not_refused())["message"])
    for name in _REFUSABLE.intersection(columns):
        place = messages.column_names.index(name)
        values = pc.if_else(is_accepted, messages[name], pa.scalar(None, messages[name].type))
        messages = messages.set_column(place, name, values)
    return messages


def _means(rows: pa.Table, column: str) -> pa.Table:
    """interval, <column>_mean; in one thread, so that it is the same to the last digit."""
    return rows.group_by("interval", use_threads=False).aggregate([(column, "mean")])


def _mean_value(table: str, rows: pa.Table, column: str) -> float | None:
    """The mean over messages, or over intervals of the means in each."""
    values = rows[column] if table == "messages" else _means(rows, column)[f"{column}_mean"]
    value: float | None = pc.mean(values).as_py()
    return value


def _mean_series(span: Span, rows: pa.Table, column: str) -> list[float | None]:
    means = _means(rows, column)
    values = dict(
        zip(means["interval"].to_pylist(), means[f"{column}_mean"].to_pylist(), strict=True)
    )
    return [values.get(interval) for interval in range(span.first, span.last + 1)]


_LISTED = 4
_OF_HITS = ("hit_ratio", "hit_ratio_mean", "hit_ratio_in_interval", "duplicates_per_delivery")


def _interval_notes(spans: Sequence[Span], question: ComparisonRequest) -> Iterator[str]:
    """Yield a note if the runs have different intervals, and the window does not make them one."""
    if None not in question.window or len({_ends(span.run) for span in spans}) == 1:
        return
    ranges = {s.run.facts.name: "{} to {}".format(*_ends(s.run)) for s in spans}
    of_all = f"the runs have different intervals ({_by_value(ranges)})"
    if question.common or question.per_interval:
        first, last = spans[0].first, spans[0].last
        yield f"{of_all}; they are compared over the common ones, {first} to {last}"
    elif len({(span.first, span.last) for span in spans}) > 1:
        yield (
            f"{of_all}, and each is measured over its own: sums and maxima grow with them; "
            "--common measures all over the common ones"
        )


def _difference_notes(runs: Sequence[Run], metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield notes on lengths of intervals, layers, and files of own metrics, that differ."""
    lengths_us = {run.facts.name: run.clock.interval_us for run in runs}
    lengths = {name: f"{us / 1e6:g} s" if us else "unknown" for name, us in lengths_us.items()}
    if len({*lengths.values()}) > 1:
        yield (
            f"the length of an interval differs between runs ({_by_value(lengths)}): intervals "
            "are matched by number, and counts per interval cannot be compared"
        )
    layers = {run.facts.name: ", ".join(run.facts.layers or ("all",)) for run in runs}
    if len({*layers.values()}) > 1:
        yield f"the metrics count links of different layers ({_by_value(layers)})"
    for name in (metric_.column for metric_ in metrics if metric_.table):
        files = {
            run.facts.name: own_metric.digest
            for run in runs
            for own_metric in run.facts.own
            if own_metric.name == name
        }
        if len({*files.values()}) > 1:
            yield f"the runs were measured by different files of {name} ({_by_value(files)})"


def _refusal_notes(runs: Sequence[Run], metrics: Sequence[Metric]) -> Iterator[str]:
    """Messages that a peer refused, if hit ratios are compared."""
    if not any((metric_.column or metric_.name) in _OF_HITS for metric_ in metrics):
        return
    refused = {
        run.facts.name: len(run.stored.read("metrics/messages", ["message"], ~not_refused()))
        for run in runs
    }
    if counts := ", ".join(f"{name}: {count}" for name, count in refused.items() if count):
        yield f"the hit ratios leave out messages that a peer refused ({counts} in total)"


def _unknown_notes(measured: Sequence[RunMetrics], metrics: Sequence[Metric]) -> Iterator[str]:
    """Metrics that are unknown in some or all runs."""
    missing = {
        metric_.name: _list_some(r.run for r in measured if not is_known(r, metric_.name))
        for metric_ in metrics
    }
    nowhere = [
        metric_.name
        for metric_ in metrics
        if not any(is_known(run, metric_.name) for run in measured)
    ]
    if nowhere:
        yield f"unknown in every run: {', '.join(nowhere)}"
    partly_unknown = {name: runs for name, runs in missing.items() if runs and name not in nowhere}
    for runs, names in groupby(partly_unknown, partly_unknown.__getitem__):
        yield f"unknown, and left out of the means, in {runs}: {', '.join(names)}"


def _by_value(values: dict[str, str]) -> str:
    """'a, b: 1 s; c: 10 s'."""
    by_value: dict[str, list[str]] = {}
    for name, value in values.items():
        by_value.setdefault(value, []).append(name)
    return "; ".join(f"{_list_some(names)}: {value}" for value, names in by_value.items())


def _list_some(names: Iterator[str] | Sequence[str]) -> str:
    every = list(names)
    some = ", ".join(every[:_LISTED])
    return some if len(every) <= _LISTED else f"{some} and {len(every) - _LISTED} more"
