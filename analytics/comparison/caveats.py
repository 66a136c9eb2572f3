"""Caveats of a comparison: how the compared runs differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow.compute as pc

from analytics.comparison.metrics import Metric
from analytics.comparison.tables import Measured, is_known
from runstore.run import Run

_LISTED = 4
_OF_HITS = ("hit_ratio", "hit_ratio_mean", "hit_ratio_in_interval", "duplicates_per_delivery")


def clock_notes(runs: Sequence[Run], first: int, last: int, *, cut: bool) -> Iterator[str]:
    """Runs of other lengths or with other intervals. `cut`: the window was not chosen."""
    spans = {run.facts.name: f"{run.clock.first} to {run.clock.last}" for run in runs}
    if cut and len({*spans.values()}) > 1:
        yield (
            f"the runs have different intervals ({_by_value(spans)}); compared are the "
            f"intervals that all have, {first} to {last}"
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


def layer_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Runs whose metrics count links of other layers."""
    layers = {run.facts.name: ", ".join(run.facts.layers or ("all",)) for run in runs}
    if len({*layers.values()}) > 1:
        yield f"the metrics count links of different layers ({_by_value(layers)})"


def refusal_notes(runs: Sequence[Run], metrics: Sequence[Metric]) -> Iterator[str]:
    """Messages that somebody refused, where hit ratios are compared."""
    if not any((of.column or of.name) in _OF_HITS for of in metrics):
        return
    refused = {run.facts.name: _refused(run) for run in runs}
    if told := ", ".join(f"{name}: {count}" for name, count in refused.items() if count):
        yield f"the hit ratios leave out messages that a peer refused ({told} in total)"


def _refused(run: Run) -> int:
    where = pc.field("rejections") > 0
    return len(run.stored.read("metrics/messages", ["message"], where))


def unknown_notes(found: Sequence[Measured], metrics: Sequence[Metric]) -> Iterator[str]:
    """Metrics that nobody knows in some runs, or in all."""
    missing = {of.name: _list(r.run for r in found if not is_known(r, of.name)) for of in metrics}
    nowhere = [of.name for of in metrics if not any(is_known(run, of.name) for run in found)]
    if nowhere:
        yield f"unknown in every run: {', '.join(nowhere)}"
    some = {name: runs for name, runs in missing.items() if runs and name not in nowhere}
    for runs, names in groupby(some, some.__getitem__):
        yield f"unknown in {runs}, which is left out there: {', '.join(names)}"


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
