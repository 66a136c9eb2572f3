"""What reports leave behind for those that come later.

A peer's next report goes on from its last one: what it still holds, what its counters stood at.
So an append reads one report a peer beside its own, however long the run is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingest.sources.base import BEFORE, Description, Observed, SourceOptions
from ingest.sources.reports_facts import lacking
from ingest.sources.reports_observed import steps
from model.columns import TRAFFIC_COLUMNS

_STATE = ("neighbors", "topics", "roles")
_COUNTERS = (*TRAFFIC_COLUMNS, "duplicates")


def carried(
    staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
) -> dict[str, DataFrame]:
    """`reports` (one of each peer that a later one may go on from), `headers`, `counts`."""
    tables = together(staged)
    reports = tables["reports"]
    if not _needs_all(tables["headers"], description):
        reports = reports.where(F.col("interval") >= description.clock.last - options.gap_tolerance)
    return {
        "reports": _last_of_each(reports, options.gap_tolerance),
        "headers": tables["headers"],
        "counts": tables["counts"],
    }


def _needs_all(headers: DataFrame, description: Description) -> bool:
    """Whether what a peer last told of its state or of counters that run on may lie far back."""
    if any(lacking(name) in description.notes for name in _STATE):
        return True
    return bool(headers.where("counters = 'total'").limit(1).count())


def _last_of_each(reports: DataFrame, gap_tolerance: int) -> DataFrame:
    """The last report of each peer, with its state as last told in this stay and its counters as
    last told at all, and without events.
    """
    by_time = Window.partitionBy("peer").orderBy("interval")
    stays = steps(reports, gap_tolerance).withColumn(
        "stay", F.count_if(~F.col("joined")).over(by_time)
    )
    here = {name: F.when(~F.col("left"), F.col(name)) for name in _STATE}
    here |= {name: F.col(name) for name in _COUNTERS}
    of_stay = stays.groupBy("peer", "stay").agg(
        F.max("run").alias("run"),
        F.max("interval").alias("interval"),
        F.bool_or("left").alias("left"),
        *(_last(told, "interval").alias(name) for name, told in here.items()),
    )
    kept = ("run", "interval", "left", *_STATE)
    last = of_stay.groupBy("peer").agg(
        F.max_by(F.struct(*kept), "stay").alias("last"),
        *(_last(F.col(name), "stay").alias(name) for name in _COUNTERS),
    )
    return _shaped(last.select("peer", "last.*", *_COUNTERS), reports)


def _last(told: Column, order: str) -> Column:
    return F.max_by(told, F.when(told.isNotNull(), F.col(order)))


def _shaped(rows: DataFrame, like: DataFrame) -> DataFrame:
    """The columns of another frame; null where there is none."""
    return like.limit(0).unionByName(rows, allowMissingColumns=True)


def together(staged: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The staged tables, those of an append with what was carried; the reports that are new are
    also in `new`.
    """
    if f"{BEFORE}reports" not in staged:
        return dict(staged)
    both = {
        name: staged[f"{BEFORE}{name}"].unionByName(staged[name])
        for name in ("reports", "headers", "counts")
    }
    counts = both["counts"].groupBy("what", "name").agg(F.sum("records").alias("records"))
    headers = both["headers"].distinct()
    return {**staged, **both, "counts": counts, "headers": headers, "new": staged["reports"]}


def go_on(observed: Observed, staged: Mapping[str, DataFrame]) -> Observed:
    """Observed from reports `together`: with the first interval of each peer, and without what
    was said of the last reports before.
    """
    reports = together(staged)["reports"]
    peers = reports.groupBy(F.col("peer").alias("key")).agg(
        F.lit(True).alias("reports"), F.min("interval").alias("interval")
    )
    untold, before = observed.untold, staged.get(f"{BEFORE}reports")
    if untold is not None and before is not None:
        untold = untold.join(before.select("peer", "interval"), ["peer", "interval"], "left_anti")
    return replace(observed, peers=peers, untold=untold)
