"""Staged reports → observed tables.

A peer's state is turned into lives by what *changes* from one report to the next, so a
neighbour that stays for a thousand intervals is two rows and not a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ingest.sources.base import Description, Observed, SourceOptions
from ingest.sources.reports_facts import lacking
from ingest.sources.reports_items import neighbor_parts, role_items, role_parts, topic_parts
from ingest.sources.reports_traffic import traffic, traffic_known
from ingest.versions import lives
from model.clock import OPEN

Parts = Callable[[Column], dict[str, Column]]
_STATES: dict[str, tuple[Callable[[str], Column], Parts]] = {
    "neighbors": (F.col, neighbor_parts),
    "topics": (F.col, topic_parts),
    "roles": (role_items, role_parts),
}
"""The lists of a report's state: as items, and what an item says."""


def observe(
    staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
) -> Observed:
    """See Reports.observe."""
    reports = staged["reports"]
    unknown = set(description.unknown)
    last = description.clock.last
    peers = reports.select(F.col("peer").alias("key")).distinct()
    held = {
        name: _lives(_told(reports, name, description, options), last, parts)
        for name, (_, parts) in _STATES.items()
        if name not in unknown
    }
    counted = traffic_known().keys() - unknown
    arrivals = {"sent", "received"} - unknown
    return Observed(
        peers=peers.withColumn("reports", F.lit(True)),
        presence=_presence(steps(reports, options.gap_tolerance), last),
        links=_links(held["neighbors"], peers, options) if "neighbors" in held else None,
        subscriptions=held.get("topics"),
        roles=held.get("roles"),
        traffic=traffic(staged, options.only) if counted else None,
        publications=_publications(reports) if arrivals else None,
        receptions=_receptions(reports) if "received" in arrivals else None,
        rejections=_rejections(reports) if arrivals else None,
        untold=_untold(reports, description, options),
    )


def steps(reports: DataFrame, gap_tolerance: int) -> DataFrame:
    """Each report beside the one before it.

    Adds bridges (the peer was there from the one before to this one) and joined (so that
    its state went on, too: this report does not say that the peer left).
    """
    missing = F.col("interval") - F.lag("interval").over(_by_time()) - 1
    bridges = ~F.lag("left").over(_by_time()) & (missing <= gap_tolerance)
    return reports.withColumn("bridges", F.coalesce(bridges, F.lit(False))).withColumn(
        "joined", F.col("bridges") & ~F.col("left")
    )


def _presence(told: DataFrame, last: int) -> DataFrame:
    """peer, vf, vt. A stay begins at a report that follows on none, ends after one that none
    follows on; a report with `left` says the peer was there before it, not in it.
    """
    followed = F.coalesce(F.lead("bridges").over(_by_time()), F.lit(False))
    leaves = followed & F.lead("left").over(_by_time())
    end = F.when(leaves, F.lead("interval").over(_by_time())).otherwise(_end(last))
    ends = ~followed | leaves
    edges = (
        told.select(
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


def _links(lives_of_links: DataFrame, peers: DataFrame, options: SourceOptions) -> DataFrame:
    links = lives_of_links.withColumnRenamed("peer", "src")
    if not options.reporters_only:
        return links
    reporters = peers.withColumnRenamed("key", "dst")
    return links.join(reporters, "dst", "left_semi").select(*links.columns)


def _told(
    reports: DataFrame, name: str, description: Description, options: SourceOptions
) -> DataFrame:
    """peer, interval, joined, state: the items as reported, or as last reported in this stay.

    Null where that is unknown, and for a peer that left.
    """
    items, _ = _STATES[name]
    state = F.when(~F.col("left"), items(name)).alias("state")
    told = steps(reports.select("peer", "interval", "left", state), options.gap_tolerance)
    return _kept(told) if lacking(name) in description.notes else told


def _kept(reports: DataFrame) -> DataFrame:
    """The steps, but a state that is unknown is the one before it in the same stay."""
    stay = F.count_if(~F.col("joined")).over(_by_time())
    told = F.when(F.col("state").isNotNull(), F.struct("stay", "state"))
    latest = F.last("told", ignorenulls=True).over(_by_time())
    is_held = ~F.col("left") & (F.col("latest.stay") == F.col("stay"))
    return (
        reports.withColumn("stay", stay)
        .withColumn("told", told)
        .withColumn("latest", latest)
        .withColumn("state", F.when(is_held, F.col("latest.state")))
        .drop("stay", "told", "latest")
    )


def _lives(told: DataFrame, last: int, parts: Parts) -> DataFrame:
    """peer, the parts of an item, vf, vt. Takes what `_told` gives.

    A report tells what is new in it, and what ended with the one before it; the last one of
    a peer also when its own items end.
    """
    turns = told.withColumns(
        {
            "before": F.lag("state").over(_by_time()),
            "over": F.lag("interval").over(_by_time()) + 1,
            "is_last": F.lead("interval").over(_by_time()).isNull(),
        }
    )
    on, at = F.col("joined"), F.col("interval")
    is_over = F.col("is_last") & (at != last)
    changes = (
        _changes(_new("state", F.when(on, F.col("before"))), at, opens=True),
        _changes(_new("before", F.when(on, F.col("state"))), F.col("over"), opens=False),
        _changes(F.when(is_over, F.col("state")), at + 1, opens=False),
    )
    items = turns.select("peer", F.inline(F.concat(*changes)))
    named = [part.alias(name) for name, part in parts(F.col("item")).items()]
    return lives(items, ["peer", "item"]).select("peer", *named, "vf", "vt")


def _new(items: str, known: Column) -> Column:
    """The items that are not among the known ones; all, where those are null."""
    return F.coalesce(F.array_except(items, known), F.col(items))


def _changes(items: Column, tick: Column, *, opens: bool) -> Column:
    """A change per item, none where they are null; in one tick, ends come first."""

    def change(item: Column) -> Column:
        return F.struct(
            item.alias("item"),
            tick.cast("bigint").alias("tick"),
            F.lit(int(opens)).alias("order"),
            F.lit(opens).alias("opens"),
        )

    return F.transform(F.coalesce(items, F.array().cast("array<string>")), change)


def _untold(
    reports: DataFrame, description: Description, options: SourceOptions
) -> DataFrame | None:
    """peer, interval, receptions, subscriptions: what is left open there, but told elsewhere.

    A missing report that is bridged leaves open what arrived, and what the one before it does.
    Null where every report tells all that any does.
    """
    known = {"received", "topics"} - set(description.unknown)
    complete = all(lacking(name) not in description.notes for name in known)
    if complete and not (known and options.gap_tolerance):
        return None
    arrivals = F.lit("received" in known)
    narrow = reports.select(
        "peer",
        "interval",
        "left",
        (arrivals & F.col("received").isNull()).alias("silent"),
        F.when(~F.col("left"), F.col("topics")).alias("state"),
    )
    told = _kept(steps(narrow, options.gap_tolerance))
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
