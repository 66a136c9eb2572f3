"""The metrics by which runs are compared: their names and what they are averaged over.

A metric of a table is named by its column, as 'diameter', or by table and column, as
'topics/hit_ratio'. A column of several tables means the metric of the whole run if there is one,
otherwise that of the first of overlay, peers, topics, messages.

Numbers that peers report of their own are named 'gauges/lookups' (their mean), with /total or /max
after it (their sum, the largest), or 'gauges/hops/per/lookups' (a total over another).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from vizpub.model.columns import Column, Table
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.metrics import METRICS
from vizpub.model.naming import GAUGE
from vizpub.model.own import OwnMetric, with_own

OF_A_WHOLE_RUN = "is a measure of a whole run"

_OVER = {
    "overlay": "mean of intervals",
    "peers": "mean of peers, then of intervals",
    "topics": "mean of topics, then of intervals",
    "messages": "mean of messages",
    "percolation": "mean of intervals",
}
_OVER_OF_INTERVAL = {
    "overlay": "interval",
    "peers": "mean of peers",
    "topics": "mean of topics",
    "messages": "mean of messages published",
    "percolation": "interval",
}
GAUGES = "gauges"
"""The table of metrics of numbers that peers report of their own."""
_OF_GAUGE = re.compile(rf"{GAUGES}/({GAUGE})(?:/(total|max)|/per/({GAUGE}))?")
_OVER_OF_GAUGE = {
    None: ("mean of peers, then of intervals", "mean of peers"),
    "total": ("sum over the run", "sum of peers"),
    "max": ("largest of the run", "largest of peers"),
    "per": ("pooled over the run", "pooled over peers"),
}
"""For a run, and for an interval."""
_NAMES = ("component", "strong_component")
"""Columns with numbers of peers, which have no mean."""


@dataclass(frozen=True)
class Metric:
    """A quantity with one value per run or per interval."""

    name: str
    unit: str
    over: str
    """What its value is a mean, sum or maximum over, as text."""
    meaning: str
    table: str = ""
    """Its metrics table; empty for a metric of the whole run."""
    column: str = ""


def _whole(name: str, over: str, meaning: str, unit: str = "") -> Metric:
    return Metric(name, unit, over, meaning)


WHOLE = (
    _whole("distinct_peers", "whole run", "peers that were ever present, N", "peers"),
    _whole("distinct_links", "whole run", "pairs (src, dst) ever linked, E", "links"),
    _whole("distinct_links_per_peer", "whole run", "E/N"),
    _whole("distinct_density", "whole run", "E/(N(N-1))"),
    _whole("publications", "sum over the run", "messages published", "messages"),
    _whole("hit_ratio", "pooled over messages", "Σ delivered / Σ eligible", "share"),
    _whole("hit_ratio_mean", "mean of messages", "delivered / eligible", "share"),
    _whole("hops_mean", "mean of first receptions", "links travelled from the publisher", "hops"),
    _whole("hops_max", "largest of first receptions", "links travelled", "hops"),
    _whole("duplicates_per_delivery", "pooled over messages", "Σ duplicates / Σ delivered"),
    _whole("relay_share", "pooled over messages", "Σ relay receptions / Σ receptions", "share"),
    _whole("convergence_us", "whole run", "last first reception - first publication", "µs"),
    _whole("busiest_tenth_messages", "per interval", "messages of each of the tenth", "messages"),
    _whole("busiest_tenth_share", "whole run", "messages of the busiest tenth of peers", "share"),
    _whole("busiest_tenth_bytes_share", "whole run", "bytes of the busiest tenth", "share"),
    _whole("rooted_topics_min", "last interval", "fewest topics that a peer is the root of"),
    _whole("rooted_topics_mean", "last interval", "topics that a peer is the root of"),
    _whole("rooted_topics_max", "last interval", "most topics that a peer is the root of"),
)
"""Metrics of whole runs. Hit ratios and duplicates leave out messages that a peer refused."""

DEFAULT = (
    "network_size", "distinct_peers", "distinct_links", "out_degree_mean", "density",
    "clustering_mean", "diameter", "average_path_length", "weak_components", "strong_components",
    "topic_diameter_mean", "control_messages_sent_mean", "control_kilobytes_sent_mean",
    "publications", "hit_ratio", "hops_mean", "hops_max", "duplicates_per_delivery",
    "relay_share",
)  # fmt: skip
DEFAULT_SERIES = (
    "network_size", "out_degree_mean", "clustering_mean", "average_path_length",
    "control_messages_sent_mean", "hit_ratio",
)  # fmt: skip


def metric(name: str, own: Iterable[OwnMetric] = ()) -> Metric:
    """The metric of that name, with one value per run; `own` are further ones of the runs.

    Raises: UnknownName.
    """
    return gauge_metric(name) or _found(name, (*WHOLE, *_columns(_OVER, own)))


def interval_metric(name: str, own: Iterable[OwnMetric] = ()) -> Metric:
    """The metric of that name, with one value per interval; `own` as in `metric`.

    Raises: UnknownName, UseError for a metric of whole runs only.
    """
    if found := gauge_metric(name, per_interval=True):
        return found
    columns = tuple(_columns(_OVER_OF_INTERVAL, own))
    if any(name == of.name for of in WHOLE) and all(name != of.column for of in columns):
        raise UseError(f"{name} {OF_A_WHOLE_RUN} and has no value per interval")
    return _found(name, columns)


def gauge_metric(name: str, *, per_interval: bool = False) -> Metric | None:
    """The metric of a number that peers report of their own; null if the name is of no such metric.
    Only the runs know which there are.
    """
    if (match := _OF_GAUGE.fullmatch(name)) is None:
        return None
    gauge, how, other = match.groups()
    over = _OVER_OF_GAUGE["per" if other else how][per_interval]
    meaning = f"{gauge} / {other}" if other else f"the gauge {gauge}"
    return Metric(name, "", over, meaning, GAUGES, name.removeprefix(f"{GAUGES}/"))


def names(own: Iterable[OwnMetric] = ()) -> list[str]:
    """Every name that `metric` knows, without those of gauges."""
    every = (*WHOLE, *_columns(_OVER, own))
    return sorted({name for of in every for name in (_full(of), of.column or of.name)})


def _found(name: str, among: tuple[Metric, ...]) -> Metric:
    for candidate in among:
        if name in (candidate.name, candidate.column, _full(candidate)):
            plain = candidate.column or candidate.name
            first = next(c for c in among if plain in (c.name, c.column))
            shown = plain if first is candidate else _full(candidate)
            return replace(candidate, name=shown)
    known = sorted({text for c in among for text in (c.column or c.name, _full(c))})
    raise UnknownName("metric", name, known, "vizpub tables --columns and docs/compare.md")


def _full(of: Metric) -> str:
    return f"{of.table}/{of.column}" if of.table else of.name


def _columns(over: dict[str, str], own: Iterable[OwnMetric] = ()) -> Iterator[Metric]:
    own = tuple(own)
    for table in (with_own(table, own) for table in METRICS):
        short = table.name.removeprefix("metrics/")
        for column in table:
            if _is_quantity(table, column):
                full = f"{short}/{column.name}"
                yield Metric(full, column.unit, over[short], column.meaning, short, column.name)


def _is_quantity(table: Table, column: Column) -> bool:
    return column.name not in (*table.key, *_NAMES) and column.type != "bool"
