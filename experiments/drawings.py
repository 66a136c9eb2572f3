"""The figures of an experiment, with the numbers that they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from vizpub.experiments.groups import WHOLE, Share, check_share, interval_range
from vizpub.experiments.results import check_metric
from vizpub.model.wording import amount

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from vizpub.experiments.groups import ExperimentGroup
    from vizpub.experiments.results import ExperimentResults, Replica
    from vizpub.model.own import OwnMetric

_FileName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]*$")]


@dataclass(frozen=True)
class DrawnFigure:
    """A figure and the numbers it shows."""

    name: str
    caption: str
    figure: Figure
    numbers: pa.Table
    message: tuple[Replica, str] | None = None
    """The run and the message that it shows; the message is written as GEXF as well."""


class _FigureFields(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", kw_only=True
):
    """Fields of every figure."""

    name: _FileName
    """Name of its files."""
    caption: str
    groups: tuple[str, ...] = ()
    """Groups to draw; all if none is named."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The groups that the figure names."""
        return self.groups

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName for an unknown metric."""

    @staticmethod
    def systems(groups: Sequence[ExperimentGroup]) -> list[str]:
        """The systems of the experiment; each has its colour in all figures."""
        return list(dict.fromkeys(group.system.name for group in groups))

    def chosen(self, groups: Sequence[ExperimentGroup]) -> list[ExperimentGroup]:
        """The groups to draw."""
        return [group for group in groups if not self.groups or group.name in self.groups]

    def check_groups(self, groups: Sequence[ExperimentGroup]) -> None:
        """Raises: UseError for more groups than the figure has room for."""


class _MetricsFigure(_FigureFields, frozen=True, kw_only=True):
    metrics: Annotated[tuple[str, ...], Meta(min_length=1)]

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError for a metric that cannot be drawn."""
        for metric in self.metrics:
            check_metric(metric, own_metrics=own_metrics)

    def check_groups(self, groups: Sequence[ExperimentGroup]) -> None:
        """Raises: UseError for more groups than the figure has room for."""
        from vizpub.analytics.figures.comparison import check_group_count

        check_group_count(len(self._drawn(groups)), "chosen by 'groups'")

    def _drawn(self, groups: Sequence[ExperimentGroup]) -> set[str]:
        """The names of what gets a line or place of its own."""
        return {group.name for group in self.chosen(groups)}


class SeriesFigure(_MetricsFigure, frozen=True, kw_only=True, tag="series"):
    """Metrics over the intervals, a line for each group, with 95 % intervals over the runs."""

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError for a metric that cannot be drawn."""
        from vizpub.analytics.comparison.metrics import find_interval_metric

        for metric in self.metrics:
            find_interval_metric(metric, own_metrics)

    def draw(
        self, results: ExperimentResults, groups: Sequence[ExperimentGroup]
    ) -> Iterator[DrawnFigure]:
        """The figure; none without a run."""
        from vizpub.analytics.comparison.metrics import find_interval_metric
        from vizpub.analytics.comparison.tables import compare_series
        from vizpub.analytics.figures.comparison import comparison_series

        compared = results.series(self.metrics, [group.name for group in self.chosen(groups)])
        if compared:
            metrics = [find_interval_metric(metric, results.own_metrics) for metric in self.metrics]
            table = compare_series(compared.runs, metrics, compared.first)
            figure = comparison_series(table, systems=self.systems(groups))
            yield DrawnFigure(self.name, self.caption, figure, table)


class MeansFigure(_MetricsFigure, frozen=True, kw_only=True, tag="means"):
    """The mean of metrics for each group, with 95 % intervals and every run."""

    during: Share = WHOLE

    def __post_init__(self) -> None:
        """Raises: ValueError for a part that ends before it begins."""
        check_share(self.during)

    def draw(
        self, results: ExperimentResults, groups: Sequence[ExperimentGroup]
    ) -> Iterator[DrawnFigure]:
        """The figure."""
        from vizpub.analytics.comparison.tables import compare_groups
        from vizpub.analytics.figures.comparison import comparison

        names = [group.name for group in self.chosen(groups)]
        run_metrics = [
            m for m in results.run_metrics(self.metrics, self.during) if m.group in names
        ]
        if run_metrics:
            table = compare_groups(run_metrics, results.describe(self.metrics))
            figure = comparison(table, run_metrics, systems=self.systems(groups))
            yield DrawnFigure(self.name, self.caption, figure, table)


class AxisFigure(_MetricsFigure, frozen=True, kw_only=True, tag="axis"):
    """Metrics over the settings' x, a line for each system, with 95 % intervals over the runs."""

    label: str
    """Meaning of x."""
    during: Share = WHOLE

    def __post_init__(self) -> None:
        """Raises: ValueError for a part that ends before it begins."""
        check_share(self.during)

    def _drawn(self, groups: Sequence[ExperimentGroup]) -> set[str]:
        return {group.system.name for group in self.chosen(groups)}

    def draw(
        self, results: ExperimentResults, groups: Sequence[ExperimentGroup]
    ) -> Iterator[DrawnFigure]:
        """The figure."""
        from vizpub.analytics.comparison.tables import compare_settings
        from vizpub.analytics.figures.comparison import comparison_settings

        shown = {group.name: group for group in self.chosen(groups) if group.setting.x is not None}
        run_metrics = [
            replace(metrics_of_run, group=group.system.name, setting=f"{group.setting.x:g}")
            for metrics_of_run in results.run_metrics(self.metrics, self.during)
            if (group := shown.get(metrics_of_run.group))
        ]
        if run_metrics:
            table = compare_settings(run_metrics, results.describe(self.metrics))
            figure = comparison_settings(table, self.label, systems=self.systems(groups))
            yield DrawnFigure(self.name, self.caption, figure, table)


class DistributionFigure(_FigureFields, frozen=True, kw_only=True, tag="distribution"):
    """Share of peers with a value of at least x at a time, for the first run of each group."""

    metric: str
    at: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Time as a share of the run's length."""

    def check(self, own_metrics: Sequence[OwnMetric] = ()) -> None:
        """Raises: UnknownName, UseError for a metric that cannot be drawn."""
        check_metric(self.metric, "peers", own_metrics)

    def draw(
        self, results: ExperimentResults, groups: Sequence[ExperimentGroup]
    ) -> Iterator[DrawnFigure]:
        """The figure."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from vizpub.analytics.figures import colours_of, distribution
        from vizpub.questions.run import Where

        parts = []
        for group in self.chosen(groups):
            if (replica := _first(results, group)) is None:
                continue
            interval, _ = interval_range(replica.run.clock, (self.at, self.at))
            at = Where(interval, interval)
            rows: Any = replica.run.metrics("peers", ["present", self.metric], at).to_arrow()
            rows = rows.filter(pc.coalesce(rows["present"], True)).drop_columns(["present"])
            names = pa.array([group.name] * len(rows), pa.string())
            parts.append(rows.append_column("group", names))
        if parts:
            table = pa.concat_tables(parts)
            chosen = colours_of([group.name for group in self.chosen(groups)], self.systems(groups))
            figure = distribution(
                table, [self.metric], complementary=True, by="group", chosen=chosen
            )
            yield DrawnFigure(self.name, self.caption, figure, table)


class TreeFigure(_FigureFields, frozen=True, kw_only=True, tag="tree"):
    """How the first message of the first run of each group spread, hop by hop; GEXF as well."""

    hops: tuple[int, ...] = ()
    """Draw a figure up to each of these hops as well."""

    def draw(
        self, results: ExperimentResults, groups: Sequence[ExperimentGroup]
    ) -> Iterator[DrawnFigure]:
        """A figure for each group and number of hops."""
        from vizpub.analytics.figures import dissemination_tree
        from vizpub.questions.snapshots import spread

        for group in self.chosen(groups):
            replica = _first(results, group)
            if replica is None:
                continue
            run = replica.run
            messages: list[str] = run.table("publications", ["name"])["name"].to_pylist()
            for message in messages[:1]:
                peers, copies = spread(run, message)
                for hops in (*self.hops, None):
                    title, name = group.name, f"{self.name}-{group.slug}"
                    if hops is not None:
                        title, name = f"{title}: up to hop {hops}", f"{name}-hop-{hops}"
                    figure = dissemination_tree(peers, copies, title, hops=hops)
                    caption = f"{self.caption} {title}, message {message} of {run.facts.name}."
                    exported = (replica, message) if hops is None else None
                    yield DrawnFigure(name, caption, figure, copies, exported)


class OverlayFigure(_FigureFields, frozen=True, kw_only=True, tag="overlay"):
    """The overlay of the first run of each group at a time, with its peers on a ring."""

    at: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Time as a share of the run's length."""

    def draw(
        self, results: ExperimentResults, groups: Sequence[ExperimentGroup]
    ) -> Iterator[DrawnFigure]:
        """A figure for each group."""
        from vizpub.analytics.figures import overlay_snapshot
        from vizpub.questions.snapshots import snapshot

        for group in self.chosen(groups):
            if (replica := _first(results, group)) is not None:
                run = replica.run
                interval, _ = interval_range(run.clock, (self.at, self.at))
                peers, links = snapshot(run, run.clock.sampling_tick(interval))
                about = f"{group.name}, seed {replica.seed}, interval {interval}"
                title = f"{about}: {amount(len(peers), 'peer')}, {amount(len(links), 'link')}"
                figure = overlay_snapshot(peers, links, len(run.peers), title)
                yield DrawnFigure(
                    f"{self.name}-{group.slug}", f"{self.caption} {title}.", figure, links
                )


Drawing = SeriesFigure | MeansFigure | AxisFigure | DistributionFigure | TreeFigure | OverlayFigure


def _first(results: ExperimentResults, group: ExperimentGroup) -> Replica | None:
    return next((r for r in results.replicas if r.group == group.name), None)
