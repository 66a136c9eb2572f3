"""The metrics by which runs are compared: their names and what they are averaged over.

A metric of a table is named by its column, as 'diameter', or by table and column, as
'topics/hit_ratio'. A column of several tables means the metric of the whole run if there is one,
otherwise that of the first of overlay, peers, topics, messages.

Numbers that peers report of their own are named 'gauges/lookups' (their mean), with /total, /max or
/p99 after it (their sum, the largest, a percentile), or 'gauges/hops/per/lookups' (a total over
another).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

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
_OF_GAUGE = re.compile(rf"{GAUGES}/({GAUGE})(?:/(total|max|p[1-9]\d?)|/per/({GAUGE}))?")
_OVER_OF_GAUGE = {
    None: ("mean of peers, then of intervals", "mean of peers"),
    "total": ("sum over the run", "sum of peers"),
    "max": ("largest of the run", "largest of peers"),
    "per": ("pooled over the run", "pooled over peers"),
    "p": ("percentile of peers, then mean of intervals", "percentile of peers"),
}
"""For a run, and for an interval."""
_RUN = re.compile("(whole|the) run")
_INTERVALS = "intervals"
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
    is_total: bool = False
    """Its value grows with the run, as a sum does; a mean, a share or a maximum does not."""


def _run_metric(
    name: str, over: str, meaning: str, unit: str = "", *, is_total: bool = False
) -> Metric:
    return Metric(name, unit, over, meaning, is_total=is_total)


RUN_METRICS = (
    _run_metric("distinct_peers", "whole run", "peers that were ever present, N", "peers"),
    _run_metric("distinct_links", "whole run", "pairs (src, dst) ever linked, E", "links"),
    _run_metric("distinct_links_per_peer", "whole run", "E/N"),
    _run_metric("distinct_density", "whole run", "E/(N(N-1))"),
    _run_metric(
        "publications", "sum over the run", "messages published", "messages", is_total=True
    ),
    _run_metric("hit_ratio", "pooled over messages", "Σ delivered / Σ eligible", "share"),
    _run_metric("hit_ratio_mean", "mean of messages", "delivered / eligible", "share"),
    _run_metric(
        "hops_mean", "mean of first receptions", "links travelled from the publisher", "hops"
    ),
    _run_metric("hops_max", "largest of first receptions", "links travelled", "hops"),
    _run_metric("duplicates_per_delivery", "pooled over messages", "Σ duplicates / Σ delivered"),
    _run_metric(
        "relay_share", "pooled over messages", "Σ relay receptions / Σ receptions", "share"
    ),
    _run_metric("convergence_us", "whole run", "last first reception - first publication", "µs"),
    _run_metric(
        "busiest_tenth_messages", "per interval", "messages of each of the tenth", "messages"
    ),
    _run_metric(
        "busiest_tenth_share", "whole run", "messages of the busiest tenth of peers", "share"
    ),
    _run_metric("busiest_tenth_bytes_share", "whole run", "bytes of the busiest tenth", "share"),
    _run_metric("rooted_topics_min", "last interval", "fewest topics that a peer is the root of"),
    _run_metric("rooted_topics_mean", "last interval", "topics that a peer is the root of"),
    _run_metric("rooted_topics_max", "last interval", "most topics that a peer is the root of"),
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


def find_metric(name: str, own_metrics: Iterable[OwnMetric] = ()) -> Metric:
    """The metric of that name, with one value per run; `own` are further ones of the runs.

    Raises: UnknownName.
    """
    return parse_gauge_metric(name) or _find(
        name, (*RUN_METRICS, *_column_metrics(_OVER, own_metrics))
    )


def find_interval_metric(name: str, own_metrics: Iterable[OwnMetric] = ()) -> Metric:
    """The metric of that name, with one value per interval; `own` as in `metric`.

    Raises: UnknownName, UseError for a metric of whole runs only.
    """
    if gauge := parse_gauge_metric(name, per_interval=True):
        return gauge
    columns = tuple(_column_metrics(_OVER_OF_INTERVAL, own_metrics))
    if any(name == metric.name for metric in RUN_METRICS) and all(
        name != metric.column for metric in columns
    ):
        raise UseError(f"{name} {OF_A_WHOLE_RUN} and has no value per interval")
    return _find(name, columns)


def find_column_metric(
    name: str,
    tables: Iterable[str],
    own_metrics: Iterable[OwnMetric],
    is_chosen: Callable[[str, str], bool],
) -> Metric:
    """The metric of that name among columns of tables, the first of these first; `is_chosen` takes
    a table and a column.

    Raises: UnknownName.
    """
    columns = [
        one for one in _column_metrics(_OVER, own_metrics) if is_chosen(one.table, one.column)
    ]
    return _find(name, tuple(one for table in tables for one in columns if one.table == table))


def parse_gauge_metric(name: str, *, per_interval: bool = False) -> Metric | None:
    """The metric of a number that peers report of their own; null if the name is of no such metric.
    Only the runs know which there are.
    """
    if (match := _OF_GAUGE.fullmatch(name)) is None:
        return None
    gauge, statistic, divisor = match.groups()
    kind = "per" if divisor else statistic and statistic.rstrip("0123456789")
    return Metric(
        name,
        "",
        _OVER_OF_GAUGE[kind][per_interval],
        f"{gauge} / {divisor}" if divisor else f"the gauge {gauge}",
        GAUGES,
        name.removeprefix(f"{GAUGES}/"),
        is_total=statistic == "total",
    )


def restrict_over(over: str, window: str) -> str:
    """`over` of a run of which only some intervals count: 'mean of intervals 20 to 59'.

    `window` names them: 'intervals 20 to 59'.
    """
    if over == "last interval":
        return f"last of {window}"
    if "run" in over:
        return _RUN.sub(window, over)
    if over.endswith(_INTERVALS):
        return f"{over.removesuffix(_INTERVALS)}{window}"
    return f"{over}, {window}"


def metric_names(own_metrics: Iterable[OwnMetric] = ()) -> list[str]:
    """Every name that `metric` knows, without those of gauges."""
    metrics = (*RUN_METRICS, *_column_metrics(_OVER, own_metrics))
    return sorted(
        {name for metric in metrics for name in (full_name(metric), metric.column or metric.name)}
    )


def _find(name: str, among: tuple[Metric, ...]) -> Metric:
    for candidate in among:
        if name in (candidate.name, candidate.column, full_name(candidate)):
            plain = candidate.column or candidate.name
            first = next(
                other_metric
                for other_metric in among
                if plain in (other_metric.name, other_metric.column)
            )
            shown = plain if first is candidate else full_name(candidate)
            return replace(candidate, name=shown)
    names = sorted(
        {
            text
            for other_metric in among
            for text in (other_metric.column or other_metric.name, full_name(other_metric))
        }
    )
    raise UnknownName("metric", name, names, "vizpub runs tables --columns and docs/compare.md")


def full_name(metric: Metric) -> str:
    """Return the name with the table, such as 'overlay/diameter'."""
    return f"{metric.table}/{metric.column}" if metric.table else metric.name


def _column_metrics(
    over_by_table: dict[str, str], own_metrics: Iterable[OwnMetric]
) -> Iterator[Metric]:
    own_metrics = tuple(own_metrics)
    for table in (with_own(table, own_metrics) for table in METRICS):
        short = table.name.removeprefix("metrics/")
        for column in table:
            if column.name not in (*table.key, *_NAMES) and column.type != "bool":
                full = f"{short}/{column.name}"
                yield Metric(
                    full, column.unit, over_by_table[short], column.meaning, short, column.name
                )
