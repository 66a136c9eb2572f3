"""Folded tables of reports → observed tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.periods import open_at
from ingest.sources.base import Description, Observed, SourceOptions
from ingest.sources.folded import names_of_reporters, no_rejections
from ingest.sources.reports.facts import COUNTED, Tally, partly_listed
from ingest.sources.reports.traffic import ARRIVALS, REPEATED
from model.run import DUPLICATES


def observe(tables: Mapping[str, DataFrame], run: Description, options: SourceOptions) -> Observed:
    """See Reports.observe."""
    unknown, end = set(run.unknown), run.clock.last + 1
    arrivals = {"sent", "received"} - unknown
    peers = tables["peers"].select("name", F.lit(True).alias("is_reporter"), "interval")
    names = tables["names"]
    links = None if "neighbors" in unknown else open_at(tables["links"], end)
    if links is not None and options.reporters_only:
        reporters = peers.select(F.col("name").alias("dst"))
        links = links.join(reporters, "dst", "left_semi").select(*links.columns)
        names = names_of_reporters(names, peers)
    return Observed(
        peers=peers,
        names=names,
        presence=open_at(tables["presence"], end),
        links=links,
        subscriptions=None if "topics" in unknown else open_at(tables["subscriptions"], end),
        roles=None if "roles" in unknown else open_at(tables["roles"], end),
        traffic=tables["traffic"] if COUNTED.keys() - unknown else None,
        gauges=tables["gauges"] if Tally.of(run.totals).gauges else None,
        publications=tables["publications"] if arrivals else None,
        receptions=tables["receptions"] if "received" in arrivals else None,
        rejections=no_rejections(tables["peers"].sparkSession) if arrivals else None,
        unreported=_unreported(tables["unreported"], run, options),
    )


def _unreported(periods: DataFrame, run: Description, options: SourceOptions) -> DataFrame | None:
    """peer, interval, receptions, subscriptions: true where a report lacks what others have.

    A bridged missing report lacks receptions, and what the report before it lacks. A list that
    lacks arrivals counts as left out.
    Null where all reports have the same fields, and lists are complete.
    """
    fields = {"receptions": "received", "subscriptions": "topics"}
    reported = {what: field for what, field in fields.items() if field not in run.unknown}
    counted = Tally.of(run.totals)
    partly = partly_listed(counted, options.only, run.unknown)
    complete = not partly and not any(counted.lacking(field) for field in reported.values())
    if complete and not (reported and options.gap_tolerance):
        return None
    each = F.explode(F.expr("transform(sequence(valid_from, valid_to - 1), at -> int(at))"))
    if partly:
        lack = [ARRIVALS] if DUPLICATES in run.unknown else [ARRIVALS, REPEATED]
        what = F.when(F.col("what").isin(lack), "receptions").otherwise(F.col("what"))
        periods = periods.withColumn("what", what)
    rows = periods.where(F.col("what").isin(*reported)).select(
        "peer", each.alias("interval"), "what"
    )
    open_ = (F.bool_or(F.col("what") == what).alias(what) for what in fields)
    return rows.groupBy("peer", "interval").agg(*open_)
