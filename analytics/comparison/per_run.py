"""The value of each metric per complete run, for comparison; from the store only.

A comparison takes three steps:

    runs = [Run.open(workspace, name) for name in ("poldercast-1", "scribe-1")]
    compared = measure_runs(runs, ComparisonRequest(metrics=("diameter", "hit_ratio")))
    table = compare_groups(compared.runs, compared.metrics)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.comparison.attributes import (
    BY_ATTRIBUTE,
    attribute_values,
    find_attribute,
    find_group_metric,
    measure_attribute,
)
from vizpub.analytics.comparison.gauges import gauge_series, gauge_values
from vizpub.analytics.comparison.groups import PATTERN, find_traits, group_runs
from vizpub.analytics.comparison.metrics import (
    DEFAULT,
    DEFAULT_SERIES,
    GAUGES,
    Metric,
    find_interval_metric,
    find_metric,
    restrict_over,
)
from vizpub.analytics.comparison.notes import (
    difference_notes,
    ends_of,
    interval_notes,
    list_some,
    refusal_notes,
    unknown_notes,
)
from vizpub.analytics.comparison.tables import RunMetrics, is_known
from vizpub.model.clock import Clock
from vizpub.model.errors import UseError
from vizpub.model.own import OwnMetric
from vizpub.model.progress import Progress, silent
from vizpub.questions.run import Run
from vizpub.questions.snapshots import not_refused
from vizpub.questions.sums.totals import Span, whole_run

NO_COMMON_INTERVAL = "the runs have no interval in common"
NO_INTERVAL_OF_WINDOW = "has no interval of the window"
NO_ATTRIBUTE = "messages have receivers in groups only by an attribute of peers: give --by KEY"

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
    """Traits that distinguish groups (vizpub.analytics.comparison.groups), and at most one
    attribute of peers: a run then has a value of each metric for the peers of each value."""
    window: tuple[int | None, int | None] = (None, None)
    """First and last interval; null = of each run, or of the common intervals."""
    common: bool = False
    """Measure over the intervals that all runs have, as with `per_interval`; else each run over its
    own, so that its values do not depend on the others."""
    per_interval: bool = False
    """A value of each metric per interval instead of one per run."""
    setting: str | None = None
    """The parameter, or attribute of peers, to compare over; it does not distinguish groups."""
    patterns: tuple[str, ...] = ()
    """The pattern that selected each of the runs, if patterns did."""
    receivers: bool = False
    """With an attribute: group messages by who received them, not by their publishers."""


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
    return replace(joint_clock(runs), first=first, last=last)


def joint_clock(runs: Sequence[Run]) -> Clock:
    """The intervals from the first to the last that any run has; their length is null if it
    differs.
    """
    clocks = [run.clock for run in runs]
    lengths = {clock.interval_us for clock in clocks}
    length = lengths.pop() if len(lengths) == 1 else None
    return Clock(1, length, min(c.first for c in clocks), max(c.last for c in clocks))


def measure_runs(
    runs: Sequence[Run], question: ComparisonRequest | None = None, progress: Progress = silent
) -> ComparedRuns:
    """The metrics of every run, or of every group of its peers, over its intervals in the window.

    Raises: UnknownName, UseError for what cannot be compared; StoreBroken.
    """
    question = question or ComparisonRequest()
    spans = _choose_spans(runs, question)
    scope = _describe_spans(spans)
    is_whole = all((span.first, span.last) == ends_of(span.run) for span in spans)
    key = _attribute_of(runs, question)
    metrics = _choose_metrics(runs, question, key)
    if not (is_whole or question.per_interval):
        metrics = tuple(replace(one, over=restrict_over(one.over, scope)) for one in metrics)
    parts = [*_parts_of_runs(runs, question, key)]
    facts, more_traits = [runs[number].facts for number, _ in parts], [of for _, of in parts]
    grouping = group_runs(facts, question.by, question.setting, more_traits)
    measured, ungrouped = [], []
    places = [*zip(parts, grouping.groups, grouping.settings, strict=True)]
    for number, span in enumerate(spans):
        progress("read the runs", number, len(runs), span.run.facts.name)
        by_value = _measure(span, metrics, question, key)
        measured += [
            replace(by_value[traits.get(key or "")], group=group, setting=setting)
            for (of, traits), group, setting in places
            if of == number
        ]
        ungrouped += [span.run.facts.name] if key and None in by_value else []
    known = tuple(one for one in metrics if any(is_known(run, one.name) for run in measured))
    selected = metrics if question.metrics else known
    notes = (
        *interval_notes(spans, question),
        *difference_notes(runs, metrics),
        *grouping.notes,
        *refusal_notes(runs, selected),
        *unknown_notes(measured, metrics),
        *([f"left out: peers without {key}, of {list_some(ungrouped)}"] if ungrouped else ()),
    )
    scope = f"whole runs, {scope}" if is_whole else scope
    return ComparedRuns(tuple(measured), selected, spans[0].first, spans[0].last, scope, notes)


def _attribute_of(runs: Sequence[Run], question: ComparisonRequest) -> str | None:
    """The attribute of peers that distinguishes groups, or that is compared over; null = none.

    Raises: UseError for questions that have no answer by groups of peers.
    """
    traits = [trait for run in runs for trait in find_traits(run.facts)]
    names = filter(None, (*(question.by or ()), question.setting))
    key = find_attribute(runs, names, (*traits, PATTERN))
    if key and question.per_interval:
        raise UseError(f"groups of peers by {key} are not compared over intervals")
    if question.receivers and not key:
        raise UseError(NO_ATTRIBUTE)
    return key


def _choose_metrics(
    runs: Sequence[Run], question: ComparisonRequest, key: str | None
) -> tuple[Metric, ...]:
    """The metrics that are asked for, each once. Raises: UnknownName, UseError."""
    own_metrics, find = _own_metrics(runs), partial(find_metric)
    defaults: Sequence[str] = DEFAULT
    if key:
        find, defaults = partial(find_group_metric, receivers=question.receivers), BY_ATTRIBUTE
    elif question.per_interval:
        find, defaults = partial(find_interval_metric), DEFAULT_SERIES
    requested = [find(name, own_metrics) for name in question.metrics or defaults]
    return tuple({metric_.name: metric_ for metric_ in requested}.values())


def _parts_of_runs(
    runs: Sequence[Run], question: ComparisonRequest, key: str | None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each run with the traits that it has besides its own, and with an
    attribute one such pair for each of its values.
    """
    for number, run in enumerate(runs):
        traits = {PATTERN: question.patterns[number]} if question.patterns else {}
        if key is None:
            yield number, traits
        else:
            yield from ((number, {**traits, key: value}) for value in attribute_values(run, key))


def _measure(
    span: Span, metrics: Sequence[Metric], question: ComparisonRequest, key: str | None
) -> Mapping[str | None, RunMetrics]:
    """The metrics of a run, or with an attribute those of each value that its peers have."""
    if key is not None:
        return measure_attribute(span, key, metrics, receivers=question.receivers)
    measure = _measure_intervals if question.per_interval else _measure_run
    return {None: measure(span, metrics)}


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
