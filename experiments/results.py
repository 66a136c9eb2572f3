"""Results of an experiment's runs, by metric, group and part of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from typing import TYPE_CHECKING, Literal, NamedTuple

from vizpub.experiments.groups import OVER, WHOLE, Share, groups_of, interval_range
from vizpub.model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from vizpub.analytics.comparison.estimates import Estimate
    from vizpub.analytics.comparison.metrics import Metric
    from vizpub.analytics.comparison.per_run import ComparedRuns
    from vizpub.analytics.comparison.tables import RunMetrics
    from vizpub.model.own import OwnMetric
    from vizpub.questions.run import Run
    from vizpub.simulators.engine.folder import Result as SimulationResult

_UNION = {
    "nodes": "peers",
    "links": "links",
    "degree": "",
    "density": "",
    "clustering": "",
    "diameter": "hops",
    "average_path_length": "hops",
    "weak_components": "",
    "strong_components": "",
}
EXPERIMENT_METRICS = {
    **{f"union/{name}": unit for name, unit in _UNION.items()},
    "undirected/average_path_length": "hops",
    "publisher_copies": "copies",
    "subscriptions_per_peer": "topics",
}
"""Metrics that only experiments have, with their units: of the union graph of the run, and hops at
the end of the window along links in either direction (`vizpub.experiments.union`); copies that the
publisher of the first message sent; subscriptions per peer and interval."""
_KINDS = "kinds/"
_TRAFFIC = "traffic/"
_COUNTS = {"sent": "messages", "bytes": "bytes", "received": "messages", "lost": "messages"}
"""'kinds/tree join/sent' is the number of messages of this kind in the whole simulation,
'traffic/control/sent' that of all kinds of control messages ('traffic/publication/…': the others).
"""


UNLIKE_PARTS = "one part is a total and the other is a mean"
"""Separates two metrics of the same runs: their quotient."""


def check_metric(name: str, table: str = "", own_metrics: Sequence[OwnMetric] = ()) -> None:
    """Raises: UnknownName for an unknown metric; UseError if it is not of that table."""
    from vizpub.analytics.comparison.metrics import find_metric, metric_names, parse_gauge_metric

    if OVER in name:
        parts = name.split(OVER, 1)
        for part in parts:
            check_metric(part, own_metrics=own_metrics)
        metrics = [describe_metric(part, own_metrics) for part in parts]
        if len({metric.is_total for metric in metrics}) > 1:
            overs = "; ".join(metric.over for metric in metrics)
            raise UseError(f"{name}: {UNLIKE_PARTS} ({overs})")
        return
    if not table and (name in EXPERIMENT_METRICS or _parse_message_count(name)):
        return
    if parse_gauge_metric(name) and not table:
        return
    if name not in metric_names(own_metrics):
        raise UnknownName(
            "metric",
            name,
            [*EXPERIMENT_METRICS, *metric_names(own_metrics)],
            "vizpub runs tables and docs/compare.md",
        )
    if table and not find_metric(f"{table}/{name}", own_metrics):
        raise UseError(f"{name} is not a metric of {table}")


class _MessageCount(NamedTuple):
    """Messages that a simulation counted."""

    by: Literal["kind", "traffic"]
    name: str
    counted: str
    """One of `_COUNTS`."""


def _parse_message_count(name: str) -> _MessageCount | None:
    """The messages of a metric of counted messages; null for other metrics."""
    which, _, count = name.rpartition("/")
    if count not in _COUNTS:
        return None
    if kind := which.removeprefix(_KINDS) if which.startswith(_KINDS) else "":
        return _MessageCount("kind", kind, count)
    if which in (f"{_TRAFFIC}control", f"{_TRAFFIC}publication"):
        return _MessageCount("traffic", which.removeprefix(_TRAFFIC), count)
    return None


def describe_metric(name: str, own_metrics: Sequence[OwnMetric] = ()) -> Metric:
    """The description of a metric, including `EXPERIMENT_METRICS` and own metrics of users."""
    from vizpub.analytics.comparison.metrics import Metric, find_metric

    if OVER in name:
        above, below = (describe_metric(part, own_metrics) for part in name.split(OVER, 1))
        unit = f"{above.unit or '1'} / {below.unit or '1'}" if above.unit != below.unit else ""
        return Metric(name, unit, f"quotient: {above.over} / {below.over}", "")
    if count := _parse_message_count(name):
        unit = _COUNTS[count.counted]
        return Metric(name, unit, "whole simulation, all of it", "", is_total=True)
    if name in EXPERIMENT_METRICS:
        over = "whole run, all of it" if name.startswith("union/") else "whole run"
        return Metric(name, EXPERIMENT_METRICS[name], over, "")
    return find_metric(name, own_metrics)


@dataclass(frozen=True)
class Replica:
    """A complete run with its group and seed."""

    group: str
    seed: int
    run: Run
    result: SimulationResult | None = None
    """What its simulation counted."""


@dataclass
class ExperimentResults:
    """Values of complete runs; each is computed once."""

    replicas: Sequence[Replica]
    own_metrics: tuple[OwnMetric, ...] = ()
    """Own metrics of users."""
    _cache: dict[tuple[str, str, Share], float | None] = field(default_factory=dict)

    def of(self, metric: str, group: str, during: Share = WHOLE) -> dict[int, float]:
        """The metric in a part of each run of the group, by seed, without unknown values."""
        values = {r.seed: self._value(metric, r, during) for r in self.replicas if r.group == group}
        return {seed: value for seed, value in values.items() if value is not None}

    def estimate(self, metric: str, term: str, during: Share = WHOLE) -> Estimate:
        """The mean over a group's runs, or the ratio of two groups' means, paired by seed."""
        return estimate_term(lambda group: self.of(metric, group, during), term)

    def difference(self, metric: str, terms: tuple[str, str], during: Share = WHOLE) -> Estimate:
        """The first term minus the second, in pairs of runs with the same seed."""
        return estimate_difference(lambda group: self.of(metric, group, during), terms)

    def change(self, metric: str, group: str, parts: tuple[Share, Share]) -> Estimate:
        """Relative increase of the metric from the first to the second part of the run."""
        from vizpub.analytics.comparison.estimates import mean

        earlier, later = (self.of(metric, group, part) for part in parts)
        both = [seed for seed in earlier if seed in later and earlier[seed]]
        return mean([later[seed] / earlier[seed] - 1 for seed in both])

    def correlation(self, metrics: tuple[str, str], group: str, during: Share) -> Estimate:
        """Mean over the runs of Spearman's rank correlation over the peers, of metrics that are
        averaged over the intervals in which a peer is present.
        """
        from vizpub.analytics.comparison.estimates import mean

        correlations = []
        for replica in (r for r in self.replicas if r.group == group):
            rows = _present_peers(replica.run, during, ["peer", *metrics])
            means = rows.group_by("peer").aggregate([(name, "mean") for name in metrics])
            known = means.drop_null()
            x, y = (known[f"{name}_mean"].to_numpy() for name in metrics)
            correlations.append(rank_correlation(x, y))
        return mean([value for value in correlations if value is not None])

    def fit(self, metrics: tuple[str, str], groups: Sequence[str], during: Share) -> Estimate:
        """Mean over the seeds of R² of a straight line through a point for each group: the first
        metric over the second one. Unknown for a seed that lacks a point.
        """
        from vizpub.analytics.comparison.estimates import mean

        y, x = ([self.of(metric, group, during) for group in groups] for metric in metrics)
        seeds = sorted(set.intersection(*(set(values) for values in (*y, *x))))
        determinations = [
            determination([values[s] for values in x], [values[s] for values in y]) for s in seeds
        ]
        return mean([value for value in determinations if value is not None])

    def run_metrics(self, metrics: Sequence[str], during: Share) -> list[RunMetrics]:
        """One value of each metric for every run, by the names that `metric_of` gives them."""
        from vizpub.analytics.comparison.tables import RunMetrics

        described = list(zip(metrics, self.describe(metrics), strict=True))
        return [
            RunMetrics(
                r.run.facts.name,
                r.group,
                r.seed,
                {
                    described_metric.name: self._value(metric, r, during)
                    for metric, described_metric in described
                },
            )
            for r in self.replicas
        ]

    def describe(self, metrics: Sequence[str]) -> list[Metric]:
        """Describe each metric as `describe_metric` does."""
        return [describe_metric(metric, self.own_metrics) for metric in metrics]

    def series(self, metrics: Sequence[str], groups: Sequence[str]) -> ComparedRuns | None:
        """The metrics in every interval that the runs of the groups share; null without a run."""
        from vizpub.analytics.comparison.per_run import ComparisonRequest, measure_runs

        replicas = [r for group in groups for r in self.replicas if r.group == group]
        if not replicas:
            return None
        compared = measure_runs(
            [r.run for r in replicas], ComparisonRequest(tuple(metrics), per_interval=True)
        )
        runs = zip(compared.runs, replicas, strict=True)
        return replace(compared, runs=tuple(replace(m, group=r.group) for m, r in runs))

    def _value(self, metric: str, replica: Replica, during: Share) -> float | None:
        if OVER in metric:
            parts = [self._value(part, replica, during) for part in metric.split(OVER, 1)]
            return parts[0] / parts[1] if parts[0] is not None and parts[1] else None
        if count := _parse_message_count(metric):
            messages = replica.result.messages if replica.result else ()
            counts = [
                getattr(m, count.counted) for m in messages if getattr(m, count.by) == count.name
            ]
            # A system without messages of a kind cannot send them; one without traffic sends none.
            is_known = counts or (replica.result and count.by == "traffic")
            return float(sum(counts)) if is_known else None
        name = replica.run.facts.name
        if (metric, name, during) not in self._cache:
            for computed, value in _measure(metric, replica.run, during).items():
                is_known = value is not None and isfinite(value)
                self._cache[computed, name, during] = value if is_known else None
        return self._cache[metric, name, during]


def estimate_term(of_group: Callable[[str], dict[int, float]], term: str) -> Estimate:
    """Estimate a term from the values of its groups by seed: the mean of a group, or the ratio of
    two groups' means, in pairs of the seeds that both have.
    """
    from vizpub.analytics.comparison.estimates import mean, ratio

    first, *others = map(of_group, groups_of(term))
    if not others:
        return mean(list(first.values()))
    (second,) = others
    numerators, denominators, paired = _in_pairs(first, second)
    quotient = ratio(numerators, denominators, paired=paired)
    are_several = min(len(numerators), len(denominators)) > 1
    if quotient.value is not None and quotient.low is None and are_several:
        return replace(quotient, low=-inf, high=inf)  # every ratio would be possible
    return quotient


def estimate_difference(
    of_group: Callable[[str], dict[int, float]], terms: tuple[str, str]
) -> Estimate:
    """Estimate the first term minus the second: of two groups in pairs of the seeds that both have;
    of ratios, within what the intervals of both allow.
    """
    from vizpub.analytics.comparison.estimates import difference

    if any(len(groups_of(term)) > 1 for term in terms):
        first, second = (estimate_term(of_group, term) for term in terms)
        return subtract_estimates(first, second)
    minuends, subtrahends, paired = _in_pairs(*map(of_group, terms))
    return difference(minuends, subtrahends, paired=paired)


def subtract_estimates(first: Estimate, second: Estimate) -> Estimate:
    """The difference of two estimates, with the interval that their intervals allow."""
    from vizpub.analytics.comparison.estimates import Estimate

    if first.value is None or second.value is None:
        return Estimate(None)
    value = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(value)
    return Estimate(value, first.low - second.high, first.high - second.low)


def _in_pairs(
    first: dict[int, float], second: dict[int, float]
) -> tuple[list[float], list[float], bool]:
    """The values of two groups, and whether they are pairs: of the seeds that both have, if these
    are several; otherwise all.
    """
    common = first.keys() & second.keys()
    paired = len(common) > 1
    x, y = ([v[seed] for seed in sorted(common if paired else v)] for v in (first, second))
    return x, y, paired


def _measure(metric: str, run: Run, during: Share) -> Mapping[str, float | None]:
    """The metric, and others that are computed with it."""
    import pyarrow.compute as pc

    from vizpub.analytics.comparison.per_run import ComparisonRequest, measure_runs

    if metric == "publisher_copies":
        return {metric: _count_publisher_copies(run)}
    if metric == "subscriptions_per_peer":
        mean = pc.mean(_present_peers(run, during, ["subscriptions"])["subscriptions"])
        return {metric: mean.as_py()}
    if metric in EXPERIMENT_METRICS:
        from vizpub.experiments.union import undirected_path_length, union_graph

        if metric.startswith("undirected/"):
            return {metric: undirected_path_length(run, during)}
        graph = asdict(union_graph(run, during))
        return {f"union/{name}": float(value) for name, value in graph.items()}
    (run_metrics,) = measure_runs(
        [run], ComparisonRequest((metric,), window=interval_range(run.clock, during))
    ).runs
    (value,) = run_metrics.values.values()
    return {metric: value}


def _count_publisher_copies(run: Run) -> float | None:
    import pyarrow.compute as pc

    published = run.table("publications", ["message", "publisher"])
    if not published.num_rows:
        return None
    message, publisher = (published[name][0].as_py() for name in ("message", "publisher"))
    by_publisher = (pc.field("message") == message) & (pc.field("previous_hop") == publisher)
    return float(run.stored.read("receptions", ["peer"], by_publisher).num_rows)


def _present_peers(run: Run, during: Share, columns: Sequence[str]) -> pa.Table:
    """Rows of metrics/peers, of the intervals of a window in which a peer is present."""
    import pyarrow.compute as pc

    first, last = interval_range(run.clock, during)
    inside = (pc.field("interval") >= first) & (pc.field("interval") <= last)
    return run.stored.read("metrics/peers", columns, inside & pc.field("present"))


def determination(x: Sequence[float], y: Sequence[float]) -> float | None:
    """R² of the least-squares line of y over x; null if either is constant."""
    import numpy as np

    if any(np.ptp(values) == 0 for values in (x, y)):
        return None
    return float(np.corrcoef(x, y)[0, 1] ** 2)


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float | None:
    """Spearman's rank correlation, with ties at their mean rank; null if one is constant."""
    import numpy as np
    from scipy.stats import rankdata

    ranks = rankdata(x), rankdata(y)
    if len(x) < 2 or any(np.ptp(values) == 0 for values in ranks):
        return None
    return float(np.corrcoef(*ranks)[0, 1])
