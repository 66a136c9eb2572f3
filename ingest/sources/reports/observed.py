"""What was folded of reports → observed tables, by what is known of the run as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.periods import open_at
from ingest.sources.base import Description, Observed, SourceOptions
from ingest.sources.folded import names_of_reporters, no_rejections
from ingest.sources.reports.facts import COUNTED, Tally


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
        publications=tables["publications"] if arrivals else None,
        receptions=tables["receptions"] if "received" in arrivals else None,
        rejections=no_rejections(tables["peers"].sparkSession) if arrivals else None,
        untold=_untold(tables["untold"], run, options),
    )


def _untold(spans: DataFrame, run: Description, options: SourceOptions) -> DataFrame | None:
    """peer, interval, receptions, subscriptions: what is left open there, but told elsewhere.

    A missing report that is bridged leaves open what arrived, and what the one before it does.
    Null where every report tells all that any does.
    """
    known = {"received": "receptions", "topics": "subscriptions"}
    told = {what: field for field, what in known.items() if field not in run.unknown}
    counted = Tally.of(run.totals)
    complete = not any(counted.lacking(field) for field in told.values())
    if complete and not (told and options.gap_tolerance):
        return None
    each = F.explode(F.expr("transform(sequence(valid_from, valid_to - 1), at -> int(at))"))
    rows = spans.where(F.col("what").isin(*told)).select("peer", each.alias("interval"), "what")
    open_ = (F.bool_or(F.col("what") == what).alias(what) for what in known.values())
    return rows.groupBy("peer", "interval").agg(*open_)
