"""Staged reports → observed tables.

A peer's state is turned into lives by what *changes* from one report to the next, so a
neighbour that stays for a thousand intervals is two rows and not a thousand.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ingest.sources.base import Description, Observed, SourceOptions
from ingest.sources.reports_facts import lacking
from ingest.sources.reports_traffic import traffic, traffic_known
from ingest.versions import lives
from model.clock import OPEN


def observe(
    staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
) -> Observed:
    """See Reports.observe."""
    reports = staged["reports"]
    unknown = set(description.unknown)
    last = description.clock.last
    steps = _steps(reports, options.gap_tolerance)
    peers = reports.select(F.col("peer").alias("key")).distinct()
    told = {name: name not in unknown for name in ("neighbors", "topics", "roles")}
    counted = traffic_known().keys() - unknown
    arrivals = {"sent", "received"} - unknown
    return Observed(
        peers=peers.withColumn("reports", F.lit(True)),
        presence=_presence(steps, last),
        links=_links(steps, last, peers, options) if told["neighbors"] else None,
        subscriptions=_lives(steps, "topics", last, "item AS topic") if told["topics"] else None,
        roles=_lives(steps, "roles", last, "item.role", "item.topic") if told["roles"] else None,
        traffic=traffic(staged, options.only) if counted else None,
        publications=_publications(reports) if arrivals else None,
        receptions=_receptions(reports) if "received" in arrivals else None,
        rejections=_rejections(reports) if arrivals else None,
        untold=_untold(steps, description, options),
    )


def _steps(reports: DataFrame, gap_tolerance: int) -> DataFrame:
    """Each report beside the one before it.

    Adds bridges (the peer was there from the one before to this one) and joined (so that
    its state went on, too: this report does not say that the peer left).
    """
    missing = F.col("interval") - F.lag("interval").over(_by_time()) - 1
    bridges = ~F.lag("left").over(_by_time()) & (missing <= gap_tolerance)
    return reports.withColumn("bridges", F.coalesce(bridges, F.lit(False))).withColumn(
        "joined", F.col("bridges") & ~F.col("left")
    )


def _presence(steps: DataFrame, last: int) -> DataFrame:
    """peer, vf, vt. A stay begins at a report that follows on none, ends after one that none
    follows on; a report with `left` says the peer was there before it, not in it.
    """
    followed = F.coalesce(F.lead("bridges").over(_by_time()), F.lit(False))
    leaves = followed & F.lead("left").over(_by_time())
    end = F.when(leaves, F.lead("interval").over(_by_time())).otherwise(_end(last))
    ends = ~followed | leaves
    edges = (
        steps.select(
            "peer",
            "interval",
            "left",
            (~F.col("bridges")).alias("begins"),
            F.when(ends, end.cast("bigint")).alias("end"),
        )
        .where("NOT left AND (begins OR end IS NOT NULL)")
        .withColumn("vt", F.coalesce("end", F.lead("end").over(_by_time())))
    )
    return edges.where("begins").select("peer", F.col("interval").cast("bigint").alias("vf"), "vt")


def _by_time() -> WindowSpec:
    return Window.partitionBy("peer").orderBy("interval")


def _end(last: int) -> Column:
    """When what held in a report ends if nothing follows: after it, or not yet."""
    after = F.col("interval").cast("bigint") + 1
    return F.when(F.col("interval") == last, F.lit(OPEN)).otherwise(after)


def _links(steps: DataFrame, last: int, peers: DataFrame, options: SourceOptions) -> DataFrame:
    columns = ("item.peer AS dst", "item.layer", "item.topic")
    links = _lives(steps, "neighbors", last, *columns).withColumnRenamed("peer", "src")
    if not options.reporters_only:
        return links
    reporters = peers.withColumnRenamed("key", "dst")
    return links.join(reporters, "dst", "left_semi").select(*links.columns)


def _lives(steps: DataFrame, state: str, last: int, *columns: str) -> DataFrame:
    """peer, the columns of the items of a state, vf, vt. Takes what `_steps` gives."""
    kept = _kept(steps, state)
    before, after = F.lag("state").over(_by_time()), F.lead("state").over(_by_time())
    nothing = F.array_except("state", "state")
    goes_on = F.lead("joined").over(_by_time())
    opened = F.when(F.col("joined"), F.array_except("state", F.coalesce(before, nothing)))
    closed = F.when(goes_on, F.array_except("state", after)).otherwise(
        F.when(goes_on.isNull() & (F.col("interval") == last), nothing).otherwise(F.col("state"))
    )
    turns = kept.select(
        "peer",
        "interval",
        opened.otherwise(F.col("state")).alias("opened"),
        closed.alias("closed"),
    )
    # A state that is unknown is null, and so are its changes: no row.
    changes = turns.select("peer", F.inline(F.concat(_changes("opened", 0), _changes("closed", 1))))
    return lives(changes, ["peer", "item"]).selectExpr("peer", *columns, "vf", "vt")


def _untold(steps: DataFrame, description: Description, options: SourceOptions) -> DataFrame | None:
    """peer, interval, receptions, subscriptions: what is left open there, but told elsewhere.

    A missing report that is bridged leaves open what arrived, and what the one before it does.
    Null where every report tells all that any does.
    """
    known = {"received", "topics"} - set(description.unknown)
    complete = all(lacking(name) not in description.notes for name in known)
    if complete and not (known and options.gap_tolerance):
        return None
    arrivals = F.lit("received" in known)
    silent = steps.withColumn("silent", arrivals & F.col("received").isNull())
    told = _kept(silent, "topics", "bridges", "silent")
    until = F.when(F.lead("bridges").over(_by_time()), F.lead("interval").over(_by_time()) - 1)
    covered = F.sequence(F.col("interval"), F.coalesce(until, F.col("interval")))
    never = F.lit("topics" in known) & F.col("state").isNull() & ~F.col("left")
    return (
        told.withColumns({"covered": covered, "subscriptions": never})
        .withColumn("at", F.explode("covered"))
        .select(
            "peer",
            F.col("at").alias("interval"),
            F.when(F.col("at") > F.col("interval"), arrivals)
            .otherwise(F.col("silent"))
            .alias("receptions"),
            "subscriptions",
        )
        .where("receptions OR subscriptions")
    )


def _kept(steps: DataFrame, state: str, *more: str) -> DataFrame:
    """peer, interval, joined, left, more; state: as reported, or as last reported in this stay."""
    stay = F.count_if(~F.col("joined")).over(_by_time())
    told = F.when(~F.col("left") & F.col(state).isNotNull(), F.struct("stay", state))
    latest = F.last("told", ignorenulls=True).over(_by_time())
    return (
        steps.select("peer", "interval", "joined", "left", *more, state, stay.alias("stay"))
        .withColumn("told", told)
        .withColumn("latest", latest)
        .select(
            "peer",
            "interval",
            "joined",
            "left",
            *more,
            F.when(
                ~F.col("left") & (F.col("latest.stay") == F.col("stay")), F.col(f"latest.{state}")
            ).alias("state"),
        )
    )


def _changes(items: str, later: int) -> Column:
    """What opens does so at the interval, what closes after it; none where unknown."""
    return F.transform(
        items,
        lambda item: F.struct(
            item.alias("item"),
            (F.col("interval") + later).cast("bigint").alias("tick"),
            F.lit(1 - later).alias("order"),
            F.lit(not later).alias("opens"),
        ),
    )


def _publications(reports: DataFrame) -> DataFrame:
    """What a peer sent without having received it."""
    own = "copy.hops = 0 OR (copy.hops IS NULL AND copy.publisher = peer)"
    return (
        reports.select("peer", "interval", F.explode("sent").alias("copy"))
        .where(own)
        .select(
            "copy.message",
            "copy.topic",
            F.coalesce("copy.publisher", "peer").alias("publisher"),
            "interval",
            "copy.time_us",
            _tick(),
        )
    )


def _receptions(reports: DataFrame) -> DataFrame:
    """Every arrival, in the order in which its report has them."""
    arrivals = reports.select("peer", "interval", F.posexplode("received").alias("at", "copy"))
    return arrivals.select(
        "copy.message",
        "copy.topic",
        "copy.publisher",
        "peer",
        F.col("copy.from").alias("previous_hop"),
        "copy.time_us",
        "interval",
        _tick(),
        F.col("at").cast("bigint").alias("arrival"),
        F.lit(None).cast("boolean").alias("first"),
        F.col("copy.hops").alias("hop"),
    )


def _rejections(reports: DataFrame) -> DataFrame:
    """None: a report has no place for them."""
    columns = ("message", "topic", "peer", "previous_hop", "time_us", "interval", "tick")
    none = _receptions(reports).select(*columns).where(F.lit(False))
    return none.withColumn("reason", F.lit(None).cast("string"))


def _tick() -> Column:
    return F.col("interval").cast("bigint").alias("tick")
