"""Results of an experiment's runs, by metric, group and part of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Literal, NamedTuple

from vizpub.experiments.groups import WHOLE, Share, groups_of, intervals
from vizpub.model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import numpy as np

    from vizpub.analytics.comparison.estimates import Estimate
    from vizpub.analytics.comparison.metrics import Metric
    from vizpub.analytics.comparison.tables import Measured
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
OWN = {
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


_OVER = " / "
"""Separates two metrics of the same runs: their quotient."""


def check_metric(name: str, table: str = "", own: Sequence[OwnMetric] = ()) -> None:
    """Raises: UnknownName for an unknown metric; UseError if it is not of that table."""
    from vizpub.analytics.comparison.metrics import gauge_metric, metric, names

    if _OVER in name:
        for part in name.split(_OVER, 1):
            check_metric(part, own=own)
        return
    if not table and (name in OWN or _kind_of(name)):
        return
    if gauge_metric(name) and not table:
        return
    if name not in names(own):
        raise UnknownName("metric", name, [*OWN, *names(own)], "vizpub tables and docs/compare.md")
    if table and not metric(f"{table}/{name}", own):
        raise UseError(f"{name} is not a metric of {table}")


class _Counted(NamedTuple):
    """Messages that a simulation counted."""

    by: Literal["kind", "traffic"]
    name: str
    what: str
    """What of them is counted."""


def _kind_of(name: str) -> _Counted | None:
    """The messages of a metric of counted messages; null for other metrics."""
    which, _, count = name.rpartition("/")
    if count not in _COUNTS:
        return None
    if kind := which.removeprefix(_KINDS) if which.startswith(_KINDS) else "":
        return _Counted("kind", kind, count)
    if which in (f"{_TRAFFIC}control", f"{_TRAFFIC}publication"):
        return _Counted("traffic", which.removeprefix(_TRAFFIC), count)
    return None


def metric_of(name: str, own: Sequence[OwnMetric] = ()) -> Metric:
    """The description of a metric, including `OWN`, and `own` ones of users."""
    from vizpub.analytics.comparison.metrics import Metric, metric

    if _OVER in name:
        return Metric(name, "", "quotient", "")
    if of_kind := _kind_of(name):
        return Metric(name, _COUNTS[of_kind.what], "whole simulation, all of it", "")
    if name in OWN:
        over = "whole run, all of it" if name.startswith("union/") else "whole run"
        return Metric(name, OWN[name], over, "")
    return metric(name, own)


@dataclass(frozen=True)
class Replica:
    """A complete run with its group and seed."""

    group: str
    seed: int
    run: Run
    result: SimulationResult | None = None
    """What its simulation counted."""


@dataclass
class Results:
    """Values of complete runs; each is computed once."""

    replicas: Sequence[Replica]
    own: tuple[OwnMetric, ...] = ()
    """Own metrics of users."""
    _found: dict[tuple[str, str, Share], float | None] = field(default_factory=dict)

    def of(self, metric: str, group: str, during: Share = WHOLE) -> dict[int, float]:
        """The metric in a part of each run of the group, by seed, without unknown values."""
        values = {r.seed: self._value(metric, r, during) for r in self.replicas if r.group == group}
        return {seed: value for seed, value in values.items() if value is not None}

    def estimate(self, metric: str, term: str, during: Share = WHOLE) -> Estimate:
        """The mean over a group's runs, or the ratio of two groups' means, paired by seed."""
        from vizpub.analytics.comparison.estimates import mean, ratio

        first, *others = (self.of(metric, group, during) for group in groups_of(term))
        if not others:
            return mean(list(first.values()))
        paired = first.keys() == others[0].keys() and len(first) > 1
        return ratio(
            [first[seed] for seed in sorted(first)],
            [others[0][seed] for seed in sorted(others[0])],
            paired=paired,
        )

    def change(self, metric: str, group: str, parts: tuple[Share, Share]) -> Estimate:
        """Relative increase of the metric from the first to the second part of the run."""
        from vizpub.analytics.comparison.estimates import mean

        before, after = (self.of(metric, group, part) for part in parts)
        both = [seed for seed in before if seed in after and before[seed]]
        return mean([after[seed] / before[seed] - 1 for seed in both])

    def correlation(self, metrics: tuple[str, str], group: str, during: Share) -> Estimate:
        """Mean over the runs of Spearman's rank correlation over the peers."""
        from vizpub.analytics.comparison.estimates import mean

        found = [_spearman(r.run, metrics, during) for r in self.replicas if r.group == group]
        return mean([value for value in found if value is not None])

    def fit(self, metrics: tuple[str, str], groups: Sequence[str], during: Share) -> Estimate:
        """Mean over the seeds of R² of a straight line through a point for each group: the first
        metric over the second one. Unknown for a seed that lacks a point.
        """
        from vizpub.analytics.comparison.estimates import mean

        y, x = ([self.of(metric, group, during) for group in groups] for metric in metrics)
        seeds = sorted(set.intersection(*(set(values) for values in (*y, *x))))
        found = [determination([of[s] for of in x], [of[s] for of in y]) for s in seeds]
        return mean([value for value in found if value is not None])

    def measured(self, metrics: Sequence[str], during: Share) -> list[Measured]:
        """One value of each metric for every run, by the names that `metric_of` gives them."""
        from vizpub.analytics.comparison.tables import Measured

        described = list(zip(metrics, self.described(metrics), strict=True))
        return [
            Measured(
                r.run.facts.name,
                r.group,
                r.seed,
                {of.name: self._value(metric, r, during) for metric, of in described},
            )
            for r in self.replicas
        ]

    def described(self, metrics: Sequence[str]) -> list[Metric]:
        """As `metric_of`."""
        return [metric_of(metric, self.own) for metric in metrics]

    def series(self, metrics: Sequence[str], groups: Sequence[str]) -> list[Measured]:
        """The metrics in every interval, of the runs of the groups."""
        from dataclasses import replace

        from vizpub.analytics.comparison.per_run import Question, measured

        chosen = [r for group in groups for r in self.replicas if r.group == group]
        if not chosen:
            return []
        found = measured([r.run for r in chosen], Question(tuple(metrics), per_interval=True))
        return [replace(m, group=r.group) for m, r in zip(found.runs, chosen, strict=True)]

    def _value(self, metric: str, replica: Replica, during: Share) -> float | None:
        if _OVER in metric:
            parts = [self._value(part, replica, during) for part in metric.split(_OVER, 1)]
            return parts[0] / parts[1] if parts[0] is not None and parts[1] else None
        if of_kind := _kind_of(metric):
            return _counted(replica.result, of_kind)
        name = replica.run.facts.name
        if (metric, name, during) not in self._found:
            for found, value in _measured(metric, replica.run, during).items():
                known = value is not None and isfinite(value)
                self._found[found, name, during] = value if known else None
        return self._found[metric, name, during]


def _counted(result: SimulationResult | None, wanted: _Counted) -> float | None:
    """Null if the system has no such messages."""
    every = result.messages if result else ()
    found = [of for of in every if getattr(of, wanted.by) == wanted.name]
    return float(sum(getattr(of, wanted.what) for of in found)) if found else None


def _measured(metric: str, run: Run, during: Share) -> Mapping[str, float | None]:
    """The metric, and others that are computed with it."""
    from vizpub.analytics.comparison.per_run import Question, measured

    if metric == "publisher_copies":
        return {metric: _publisher_copies(run)}
    if metric == "subscriptions_per_peer":
        return {metric: _subscriptions(run, during)}
    if metric in OWN:
        from vizpub.experiments.union import undirected_path_length, union_graph

        if metric.startswith("undirected/"):
            return {metric: undirected_path_length(run, during)}
        graph = asdict(union_graph(run, during))
        return {f"union/{name}": float(value) for name, value in graph.items()}
    (found,) = measured([run], Question((metric,), window=intervals(run.clock, during))).runs
    (value,) = found.values.values()
    return {metric: value}


def _publisher_copies(run: Run) -> float | None:
    import pyarrow.compute as pc

    published = run.table("publications", ["message", "publisher"])
    if not published.num_rows:
        return None
    message, publisher = (published[name][0].as_py() for name in ("message", "publisher"))
    of_it = (pc.field("message") == message) & (pc.field("previous_hop") == publisher)
    return float(run.stored.read("receptions", ["peer"], of_it).num_rows)


def _subscriptions(run: Run, during: Share) -> float | None:
    import pyarrow.compute as pc

    first, last = intervals(run.clock, during)
    inside = (pc.field("interval") >= first) & (pc.field("interval") <= last)
    inside &= pc.field("present")
    found: float | None = pc.mean(
        run.stored.read("metrics/peers", ["subscriptions"], inside)["subscriptions"]
    ).as_py()
    return found


def _spearman(run: Run, metrics: tuple[str, str], during: Share) -> float | None:
    """Correlation of two metrics, each averaged over the intervals in which a peer is present."""
    import pyarrow.compute as pc

    first, last = intervals(run.clock, during)
    inside = (pc.field("interval") >= first) & (pc.field("interval") <= last)
    rows = run.stored.read("metrics/peers", ["peer", *metrics], inside & pc.field("present"))
    means = rows.group_by("peer").aggregate([(name, "mean") for name in metrics])
    x, y = (means[f"{name}_mean"].fill_null(0).to_numpy() for name in metrics)
    return rank_correlation(x, y)


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
    if len(x) < 2 or any(np.ptp(of) == 0 for of in ranks):
        return None
    return float(np.corrcoef(*ranks)[0, 1])
