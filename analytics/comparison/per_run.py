"""The value of each metric per complete run, for comparison; from the store only.

A comparison takes three steps:

    runs = [Run.open(workspace, name) for name in ("poldercast-1", "scribe-1")]
    found = measured(runs, Question(metrics=("diameter", "hit_ratio")))
    table = compare(found.runs, found.metrics)  # of vizpub.analytics.comparison.tables
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.comparison.gauges import gauge_series, gauge_values
from vizpub.analytics.comparison.groups import grouped
from vizpub.analytics.comparison.metrics import (
    DEFAULT,
    DEFAULT_SERIES,
    GAUGES,
    Metric,
    interval_metric,
    metric,
)
from vizpub.analytics.comparison.tables import Measured, is_known
from vizpub.model.clock import Clock
from vizpub.model.errors import UseError
from vizpub.model.own import OwnMetric
from vizpub.model.progress import Progress, silent
from vizpub.questions.run import Run
from vizpub.questions.totals import Span, whole_run

NO_COMMON_INTERVAL = "the runs have no interval in common"

_REFUSABLE = frozenset(
    {"eligible", "delivered", "delivered_in_interval", "hit_ratio", "late_deliveries"}
)
"""Metrics of messages that leave out messages that a peer refused, as all pooled metrics do."""


@dataclass(frozen=True)
class Question:
    """What to compare."""

    metrics: tuple[str, ...] | None = None
    """Names as in vizpub.analytics.comparison.metrics; null = the default ones that are known in a
    run."""
    by: tuple[str, ...] | None = None
    """Traits that distinguish groups (vizpub.analytics.comparison.groups)."""
    window: tuple[int | None, int | None] = (None, None)
    """First and last interval; null = of the intervals that all runs have."""
    per_interval: bool = False
    """A value of each metric per interval instead of one per run."""
    setting: str | None = None
    """The parameter to compare over; it does not distinguish groups."""


@dataclass(frozen=True)
class Answer:
    """The metrics of the runs in intervals `first` to `last`, and caveats."""

    runs: tuple[Measured, ...]
    metrics: tuple[Metric, ...]
    first: int
    last: int
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


def measured(
    runs: Sequence[Run], question: Question | None = None, progress: Progress = silent
) -> Answer:
    """The metrics of every run, over the intervals that all of them have.

    Raises: UnknownName, UseError for what cannot be compared; StoreBroken.
    """
    question = question or Question()
    clock, (low, high) = common_clock(runs), question.window
    first = clock.first if low is None else max(low, clock.first)
    last = clock.last if high is None else min(high, clock.last)
    metrics = _metrics(question, _own_metrics(runs))
    grouping = grouped([run.facts for run in runs], question.by, question.setting)
    find = _in_intervals if question.per_interval else _as_a_whole
    found = []
    places = zip(runs, grouping.groups, grouping.settings, strict=True)
    for done, (run, group, setting) in enumerate(places):
        progress("read the runs", done, len(runs), run.facts.name)
        one = find(Span(run, first, last), metrics)
        found.append(replace(one, group=group, setting=setting))
    kept = metrics if question.metrics else _known_somewhere(found, metrics)
    notes = (
        *_clock_notes(runs, first, last, cut=low is None or high is None),
        *_layer_notes(runs),
        *_own_notes(runs, metrics),
        *grouping.notes,
        *_refusal_notes(runs, kept),
        *_unknown_notes(found, metrics),
    )
    return Answer(tuple(found), kept, first, last, notes)


def _own_metrics(runs: Sequence[Run]) -> tuple[OwnMetric, ...]:
    """The own metrics of all runs. Raises: UseError where one name is of several levels."""
    found: dict[str, OwnMetric] = {}
    for own in (own for run in runs for own in run.facts.own):
        if found.setdefault(own.name, own).level != own.level:
            raise UseError(f"the own metric '{own.name}' is of another level in another run")
    return tuple(found.values())


def _metrics(question: Question, own: Sequence[OwnMetric]) -> tuple[Metric, ...]:
    find = interval_metric if question.per_interval else metric
    usual = DEFAULT_SERIES if question.per_interval else DEFAULT
    found = [find(name, own) for name in question.metrics or usual]
    return tuple({of.name: of for of in found}.values())


def _as_a_whole(span: Span, metrics: Sequence[Metric]) -> Measured:
    values: dict[str, float | None] = dict.fromkeys([of.name for of in metrics])
    values |= whole_run(span, [of.name for of in metrics if not of.table])
    for table, own, rows in _tables(span, metrics):
        values |= {of.name: _value(table, rows, of.column) for of in own}
    if gauges := [of for of in metrics if of.table == GAUGES]:
        found = gauge_values(span, [of.column for of in gauges])
        values |= {of.name: found[of.column] for of in gauges}
    return Measured(span.run.facts.name, seed=span.run.facts.seed, values=values)


def _in_intervals(span: Span, metrics: Sequence[Metric]) -> Measured:
    found = _tables(span, metrics)
    nothing = [None] * (span.last - span.first + 1)
    series: dict[str, list[float | None]] = {of.name: [*nothing] for of in metrics}
    series |= {of.name: _series(span, rows, of.column) for _, own, rows in found for of in own}
    if gauges := [of for of in metrics if of.table == GAUGES]:
        reported = gauge_series(span, [of.column for of in gauges])
        series |= {of.name: reported[of.column] for of in gauges}
    return Measured(span.run.facts.name, seed=span.run.facts.seed, series=series)


def _tables(span: Span, metrics: Sequence[Metric]) -> Iterator[tuple[str, list[Metric], pa.Table]]:
    """Each metrics table once, with those of its metrics that the run has, and their rows."""
    for table in dict.fromkeys(of.table for of in metrics if of.table not in ("", GAUGES)):
        there = span.run.stored.definition(f"metrics/{table}").names
        own = [of for of in metrics if of.table == table and of.column in there]
        yield table, own, _rows(span, table, [of.column for of in own])


def _rows(span: Span, table: str, columns: Sequence[str]) -> pa.Table:
    """interval and the columns: the rows of the window to average."""
    wanted = ["interval", *dict.fromkeys(columns)]
    if table == "messages":
        return _accepted(span.messages, columns).select(wanted)
    if table == "peers":
        here = span.inside & pc.coalesce(pc.field("present"), pc.scalar(True))
        return span.read("metrics/peers", wanted, here)
    return span.read(f"metrics/{table}", wanted, span.inside)


def _accepted(messages: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Messages; metrics of `_REFUSABLE` are null for messages that a peer refused."""
    refused = pc.fill_null(pc.greater(messages["rejections"], 0), False)
    for name in _REFUSABLE.intersection(columns):
        place = messages.column_names.index(name)
        accepted = pc.if_else(refused, pa.scalar(None, messages[name].type), messages[name])
        messages = messages.set_column(place, name, accepted)
    return messages


def _means(rows: pa.Table, column: str) -> pa.Table:
    """interval, <column>_mean; in one thread, so that it is the same to the last digit."""
    return rows.group_by("interval", use_threads=False).aggregate([(column, "mean")])


def _value(table: str, rows: pa.Table, column: str) -> float | None:
    """The mean over messages, or over intervals of the means in each."""
    every = rows[column] if table == "messages" else _means(rows, column)[f"{column}_mean"]
    found: float | None = pc.mean(every).as_py()
    return found


def _series(span: Span, rows: pa.Table, column: str) -> list[float | None]:
    means = _means(rows, column)
    known = dict(
        zip(means["interval"].to_pylist(), means[f"{column}_mean"].to_pylist(), strict=True)
    )
    return [known.get(interval) for interval in range(span.first, span.last + 1)]


def _known_somewhere(found: Sequence[Measured], metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    return tuple(of for of in metrics if any(is_known(run, of.name) for run in found))


_LISTED = 4
_OF_HITS = ("hit_ratio", "hit_ratio_mean", "hit_ratio_in_interval", "duplicates_per_delivery")


def _clock_notes(runs: Sequence[Run], first: int, last: int, *, cut: bool) -> Iterator[str]:
    """Runs with different intervals. `cut`: the window was not given."""
    spans = {run.facts.name: f"{run.clock.first} to {run.clock.last}" for run in runs}
    if cut and len({*spans.values()}) > 1:
        yield (
            f"the runs have different intervals ({_by_value(spans)}); they are compared over "
            f"the common ones, {first} to {last}"
        )
    lengths = {run.facts.name: _length(run) for run in runs}
    if len({*lengths.values()}) > 1:
        yield (
            f"the length of an interval differs between runs ({_by_value(lengths)}): intervals "
            "are matched by number, and counts per interval cannot be compared"
        )


def _length(run: Run) -> str:
    length = run.clock.interval_us
    return "unknown" if length is None else f"{length / 1e6:g} s"


def _layer_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Runs whose metrics count links of different layers."""
    layers = {run.facts.name: ", ".join(run.facts.layers or ("all",)) for run in runs}
    if len({*layers.values()}) > 1:
        yield f"the metrics count links of different layers ({_by_value(layers)})"


def _own_notes(runs: Sequence[Run], metrics: Sequence[Metric]) -> Iterator[str]:
    """Own metrics whose files differ between runs."""
    for name in (of.column for of in metrics if of.table):
        files = {
            run.facts.name: own.digest for run in runs for own in run.facts.own if own.name == name
        }
        if len({*files.values()}) > 1:
            yield f"the runs were measured by different files of {name} ({_by_value(files)})"


def _refusal_notes(runs: Sequence[Run], metrics: Sequence[Metric]) -> Iterator[str]:
    """Messages that a peer refused, if hit ratios are compared."""
    if not any((of.column or of.name) in _OF_HITS for of in metrics):
        return
    refused = {run.facts.name: _refused(run) for run in runs}
    if counts := ", ".join(f"{name}: {count}" for name, count in refused.items() if count):
        yield f"the hit ratios leave out messages that a peer refused ({counts} in total)"


def _refused(run: Run) -> int:
    where = pc.field("rejections") > 0
    return len(run.stored.read("metrics/messages", ["message"], where))


def _unknown_notes(found: Sequence[Measured], metrics: Sequence[Metric]) -> Iterator[str]:
    """Metrics that are unknown in some or all runs."""
    missing = {of.name: _list(r.run for r in found if not is_known(r, of.name)) for of in metrics}
    nowhere = [of.name for of in metrics if not any(is_known(run, of.name) for run in found)]
    if nowhere:
        yield f"unknown in every run: {', '.join(nowhere)}"
    some = {name: runs for name, runs in missing.items() if runs and name not in nowhere}
    for runs, names in groupby(some, some.__getitem__):
        yield f"unknown, and left out of the means, in {runs}: {', '.join(names)}"


def _by_value(values: dict[str, str]) -> str:
    """'a, b: 1 s; c: 10 s'."""
    by_value: dict[str, list[str]] = {}
    for name, value in values.items():
        by_value.setdefault(value, []).append(name)
    return "; ".join(f"{_list(names)}: {value}" for value, names in by_value.items())


def _list(names: Iterator[str] | Sequence[str]) -> str:
    every = list(names)
    some = ", ".join(every[:_LISTED])
    return some if len(every) <= _LISTED else f"{some} and {len(every) - _LISTED} more"
