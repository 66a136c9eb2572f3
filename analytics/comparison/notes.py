"""Caveats of a comparison: how runs, their metrics and what is known of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from vizpub.analytics.comparison.metrics import Metric
from vizpub.analytics.comparison.tables import RunMetrics, is_known
from vizpub.questions.names import NamedRun
from vizpub.questions.run import Run
from vizpub.questions.snapshots import not_refused
from vizpub.questions.sums.totals import Span

if TYPE_CHECKING:
    from vizpub.analytics.comparison.per_run import ComparisonRequest

_LISTED = 4
_OF_HITS = ("hit_ratio", "hit_ratio_mean", "hit_ratio_in_interval", "duplicates_per_delivery")


def ends_of(run: NamedRun) -> tuple[int, int]:
    """Return the first and last interval of a run."""
    return run.clock.first, run.clock.last


def interval_notes(spans: Sequence[Span], question: ComparisonRequest) -> Iterator[str]:
    """Yield a note if the runs have different intervals, and the window does not make them one."""
    if None not in question.window or len({ends_of(span.run) for span in spans}) == 1:
        return
    ranges = {s.run.facts.name: "{} to {}".format(*ends_of(s.run)) for s in spans}
    of_all = f"the runs have different intervals ({_by_value(ranges)})"
    if question.common or question.per_interval:
        first, last = spans[0].first, spans[0].last
        yield f"{of_all}; they are compared over the common ones, {first} to {last}"
    elif len({(span.first, span.last) for span in spans}) > 1:
        yield (
            f"{of_all}, and each is measured over its own: sums and maxima grow with them; "
            "--common measures all over the common ones"
        )


def difference_notes(runs: Sequence[Run], metrics: Sequence[Metric]) -> Iterator[str]:
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


def refusal_notes(runs: Sequence[Run], metrics: Sequence[Metric]) -> Iterator[str]:
    """Messages that a peer refused, if hit ratios are compared."""
    if not any((metric_.column or metric_.name) in _OF_HITS for metric_ in metrics):
        return
    refused = {
        run.facts.name: len(run.stored.read("metrics/messages", ["message"], ~not_refused()))
        for run in runs
    }
    if counts := ", ".join(f"{name}: {count}" for name, count in refused.items() if count):
        yield f"the hit ratios leave out messages that a peer refused ({counts} in total)"


def unknown_notes(measured: Sequence[RunMetrics], metrics: Sequence[Metric]) -> Iterator[str]:
    """Metrics that are unknown in some or all runs."""
    missing = {
        metric_.name: list_some(r.run for r in measured if not is_known(r, metric_.name))
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
    return "; ".join(f"{list_some(names)}: {value}" for value, names in by_value.items())


def list_some(names: Iterator[str] | Sequence[str]) -> str:
    """Return 'a, b', or the first of many names and the number of the others."""
    every = list(dict.fromkeys(names))
    some = ", ".join(every[:_LISTED])
    return some if len(every) <= _LISTED else f"{some} and {len(every) - _LISTED} more"
