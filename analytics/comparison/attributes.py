"""Metrics of the groups of peers that have the same value of an attribute, for a comparison.

The groups of a run are measured as `Run.metrics(…, by=KEY)` does: peers by the value they have at
an interval's end, messages by the one that their publisher, or their receiver, has at publication.
Peers without the attribute are in no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.comparison.metrics import Metric, find_column_metric
from vizpub.analytics.comparison.tables import RunMetrics, sort_settings
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.own import OwnMetric
from vizpub.questions.attributes.groups import OF_ONE_PEER, attribute_keys
from vizpub.questions.names import Where
from vizpub.questions.run import Run
from vizpub.questions.sums.totals import Span

BY_ATTRIBUTE = (
    "out_degree", "clustering", "control_messages_sent", "receptions", "duplicates",
    "hit_ratio", "hops_mean", "delay_us_p50", "delay_us_p95",
)  # fmt: skip

_MESSAGES = "messages"
_TOPIC_METRICS = (
    "subscribers", "publications", "hit_ratio", "hit_ratio_mean", "hops_mean", "hops_max",
    "duplicates_per_delivery", "relay_share", "duplicates",
)  # fmt: skip
_MESSAGE_METRICS = (
    "eligible", "delivered", "hit_ratio", "receptions", "first_receptions", "duplicates",
    "relay_receptions", "redundancy", "hops_mean", "hops_max", "delay_us_mean", "delay_us_p50",
    "delay_us_p95", "delay_us_p99", "delay_us_max",
)  # fmt: skip


def find_attribute(runs: Sequence[Run], names: Iterable[str], traits: Iterable[str]) -> str | None:
    """Return the one of the names that is an attribute of peers, and no trait of a run; null if
    there is none.

    Raises: UnknownName for a name that is neither, UseError for several attributes, and for a run
    that lacks the attribute.
    """
    keys = {run.facts.name: attribute_keys(run) for run in runs if run.stored.has("attributes")}
    every, of_runs = {key for keys_of_run in keys.values() for key in keys_of_run}, {*traits}
    others = [name for name in dict.fromkeys(names) if name not in of_runs]
    for name in others if every else ():
        if name not in every:
            raise UnknownName("property or attribute", name, sorted(of_runs | every))
    attributes = [name for name in others if name in every]
    if len(attributes) > 1:
        raise UseError(f"peers are grouped by one attribute, not by {' and '.join(attributes)}")
    for run in runs if attributes else ():
        if attributes[0] not in keys.get(run.facts.name, ()):
            raise UseError(f"run '{run.facts.name}' has no attribute '{attributes[0]}' of peers")
    return attributes[0] if attributes else None


def attribute_values(run: Run, key: str) -> list[str]:
    """Return the values that peers of a run have, in the order of the numbers in them."""
    batches = run.stored.scan("attributes", ["value"], pc.field("key") == key)
    return sort_settings({value for rows in batches for value in rows["value"].to_pylist()})


def find_group_metric(name: str, own_metrics: Iterable[OwnMetric], *, receivers: bool) -> Metric:
    """The metric of that name for groups of peers; `receivers` groups messages by receiver.

    Raises: UnknownName.
    """
    metric = find_column_metric(name, ("peers", _MESSAGES, "topics"), own_metrics, _has_groups)
    if metric.table != _MESSAGES:
        return metric
    over = "arrivals at peers of the group" if receivers else "messages of publishers in the group"
    return replace(metric, over=over)


def _has_groups(table: str, column: str) -> bool:
    if table == "peers":
        return column not in OF_ONE_PEER
    return column in (_MESSAGE_METRICS if table == _MESSAGES else _TOPIC_METRICS)


def measure_attribute(
    span: Span, key: str, metrics: Sequence[Metric], *, receivers: bool
) -> dict[str | None, RunMetrics]:
    """Return the metrics of the peers of a run that have each value of the attribute; null is for
    peers without one, if there are any.
    """
    run, nothing = span.run, dict.fromkeys(metric.name for metric in metrics)
    assert isinstance(run, Run)
    groups: dict[str | None, dict[str, float | None]] = {
        value: {**nothing} for value in attribute_values(run, key)
    }
    for table in dict.fromkeys(metric.table for metric in metrics):
        is_by_receiver = receivers and table == _MESSAGES
        needed = [f"metrics/{table}", *(["receptions"] if is_by_receiver else [])]
        if not all(map(run.facts.knows, needed)):
            continue
        names = run.stored.definition(f"metrics/{table}").names
        of_table = [one for one in metrics if one.table == table and one.column in names]
        columns = [metric.column for metric in of_table] if table == "peers" else None
        where = Where(span.first, span.last)
        rows = run.metrics(table, columns, where, by=key, receivers=is_by_receiver).to_arrow()
        for metric in of_table:
            column = f"{metric.column}_mean" if table == "peers" else metric.column
            for group, value in _means(rows, column):
                groups.setdefault(group, {**nothing})[metric.name] = value
    name, seed = run.facts.name, run.facts.seed
    return {value: RunMetrics(name, seed=seed, values=of) for value, of in groups.items()}


def _means(rows: pa.Table, column: str) -> Iterator[tuple[str | None, float | None]]:
    """Yield the mean of a column of each group, over rows and then over intervals; in one thread,
    so that it is the same to the last digit.
    """
    for keys in (["group", "interval"], ["group"]):
        if {*keys} <= {*rows.column_names}:
            means = rows.group_by(keys, use_threads=False).aggregate([(column, "mean")])
            rows = means.rename_columns([*keys, column])
    yield from zip(rows["group"].to_pylist(), rows[column].to_pylist(), strict=True)
