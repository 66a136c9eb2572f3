"""metrics/peers, metrics/topics and metrics/overlay, from the tables and the structure of a run.

All functions are lazy. A table that is null is unknown, and so are the metrics that need it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.frames import conform, count_if, if_known, join_all, mean_in_order
from analytics.intervals import every_interval, per_interval
from model.clock import Clock
from model.columns import TRAFFIC_COLUMNS
from model.metrics import METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from model.own import OwnMetric, with_own

_SUMS = ("receptions", "duplicates")


@dataclass(frozen=True)
class Seen:
    """Tables about peers and topics. `structure` has analytics.structure's rows."""

    clock: Clock
    peers: DataFrame
    structure: DataFrame | None
    subscriptions: DataFrame | None
    traffic: DataFrame | None
    publications: DataFrame | None
    receptions: DataFrame | None
    unreported: DataFrame | None = None
    """What reports leave out: peer, interval, receptions, subscriptions (true = not reported)."""
    duplicates_known: bool = True
    """All arrivals are reported, not only the first ones."""
    links_known: bool = True
    """Without links `structure` has presence and subscriptions only."""
    own: tuple[OwnMetric, ...] = ()
    """Own metrics, which `structure` has too."""


@dataclass(frozen=True)
class Metrics:
    """Metrics tables that are complete, and links to absent peers."""

    clock: Clock
    peers: DataFrame
    structure: DataFrame | None
    messages: DataFrame | None
    publications: DataFrame | None
    dangling_links: DataFrame | None
    receptions_known: bool
    links_known: bool
    rejections_known: bool = True
    own: tuple[OwnMetric, ...] = ()


def peers_table(seen: Seen) -> DataFrame:
    """metrics/peers: peers present at an interval's end, or with events in it."""
    # The widest frame last: each join shuffles and sorts the result of the previous ones again.
    parts = (seen.traffic, _arrivals_at_peers(seen), _graph_of_peers(seen))
    known = [part for part in parts if part is not None]
    if not known:
        return conform(seen.peers.limit(0), with_own(METRICS_PEERS, seen.own))
    rows = _with_reported(join_all(known, ["interval", "peer"]), seen)
    repeated = F.when(F.col("reports_receptions"), F.coalesce(_column(rows, "repeated"), F.lit(0)))
    received = _reported(rows, "receptions")
    if not seen.duplicates_known:  # only first ones are listed; duplicates are counted at most
        received = F.try_add(received, _column(rows, "duplicates").cast("long"))
        repeated = F.lit(None)
    own = {
        "present": F.when(F.lit(seen.structure is not None), _column(rows, "present").isNotNull()),
        "subscriptions": _reported(rows, "subscriptions"),
        "receptions": received,
        # The peer's own count takes precedence over ours.
        "duplicates": F.coalesce(_column(rows, "duplicates"), repeated),
    }
    return conform(rows.withColumns(own), with_own(METRICS_PEERS, seen.own))


def _with_reported(rows: DataFrame, seen: Seen) -> DataFrame:
    """Adds whether the peer reports its subscriptions and its receptions in the interval."""
    rows = rows.join(F.broadcast(seen.peers.select("peer", "is_reporter")), "peer")
    sources = {"subscriptions": seen.subscriptions, "receptions": seen.receptions}
    left_open = {name: F.lit(False) for name in sources}
    if seen.unreported is not None:
        renamed = {name: f"unreported_{name}" for name in sources}
        unreported = seen.unreported.withColumnsRenamed(renamed)
        rows = rows.join(unreported, ["interval", "peer"], "left")
        left_open = {name: F.coalesce(f"unreported_{name}", F.lit(False)) for name in sources}
    return rows.withColumns(
        {
            f"reports_{name}": F.col("is_reporter") & F.lit(source is not None) & ~left_open[name]
            for name, source in sources.items()
        }
    )


def _reported(rows: DataFrame, name: str) -> Column:
    """A count that only the peer can report: null if it does not, 0 if it reports none."""
    return F.when(F.col(f"reports_{name}"), F.coalesce(_column(rows, name), F.lit(0)))


def _column(rows: DataFrame, name: str) -> Column:
    return F.col(name) if name in rows.columns else F.lit(None)


def _graph_of_peers(seen: Seen) -> DataFrame | None:
    if seen.structure is None:
        return None
    here = F.lit(True).alias("present")
    if not seen.links_known:
        return seen.structure.select("interval", "peer", here, "subscriptions")
    return seen.structure.drop("topics", "overlay").select("*", here)


def _arrivals_at_peers(seen: Seen) -> DataFrame | None:
    if seen.receptions is None:
        return None
    return seen.receptions.groupBy("interval", "peer").agg(
        F.count("*").alias("receptions"), count_if(~F.col("first")).alias("repeated")
    )


def topics_table(seen: Seen, messages: DataFrame | None) -> DataFrame:
    """metrics/topics: topics with subscribers at an interval's end, or with events in it.

    `messages` is metrics/messages.
    """
    parts = []
    if seen.structure is not None and seen.subscriptions is not None:
        parts.append(_graph_of_topics(seen.structure, seen.links_known))
    if seen.publications is not None and messages is not None:
        of_message = seen.publications.select("message", "topic", "interval")
        parts.append(_hits(messages.join(of_message, "message"), "interval", "topic"))
        if seen.receptions is not None:
            parts.append(_arrivals_of_topics(seen, seen.receptions, of_message))
    if not parts:
        return conform(seen.peers.limit(0), with_own(METRICS_TOPICS, seen.own))
    rows = join_all(parts, ["interval", "topic"]).where("topic IS NOT NULL")
    counts = ["publications", *(["duplicates"] if seen.duplicates_known else [])]
    if seen.subscriptions is not None:
        counts += ["subscribers", *(["relay_receptions"] if seen.duplicates_known else [])]
        counts += ["topic_links", "components"] if seen.links_known else []
    rows = rows.fillna(0, [c for c in counts if c in rows.columns])
    if "unclear" in rows.columns:
        clear = F.coalesce("unclear", F.lit(0)) == 0
        rows = rows.withColumn("relay_receptions", F.when(clear, F.col("relay_receptions")))
    return conform(rows, with_own(METRICS_TOPICS, seen.own))


def _graph_of_topics(structure: DataFrame, links_known: bool) -> DataFrame:
    rows = structure.select(F.inline("topics"))
    return rows if links_known else rows.select("interval", "topic", "subscribers")


def _arrivals_of_topics(seen: Seen, receptions: DataFrame, of_message: DataFrame) -> DataFrame:
    rows = receptions.join(of_message.drop("interval"), "message")
    repeated = count_if(~F.col("first"))
    relayed = count_if(~F.col("subscribed"))
    counts = {"duplicates": repeated, "relay_receptions": relayed}
    every = F.lit(seen.duplicates_known)
    return rows.groupBy("interval", "topic").agg(
        *(F.when(every, count).cast("long").alias(name) for name, count in counts.items()),
        count_if(F.col("subscribed").isNull()).alias("unclear"),
    )


def _hits(messages: DataFrame, *keys: str) -> DataFrame:
    """Messages published per key, and their hit ratios without messages that a peer refused."""
    # Where refusals are unknown, no message is known to be refused.
    counted = F.coalesce("rejections", F.lit(0)) == 0
    eligible = F.nullif(F.sum(F.when(counted, F.col("eligible"))), F.lit(0))
    at_once = F.sum(F.when(counted, F.col("delivered_in_interval")))
    return messages.groupBy(*keys).agg(
        F.count("*").alias("publications"),
        (F.sum(F.when(counted, F.col("delivered"))) / eligible).alias("hit_ratio"),
        mean_in_order(F.when(counted, F.col("hit_ratio"))).alias("hit_ratio_mean"),
        count_if(~counted).alias("rejected_publications"),
        (at_once / eligible).alias("hit_ratio_in_interval"),
    )


def overlay_table(metrics: Metrics) -> DataFrame:
    """metrics/overlay: a row for every interval of the run."""
    parts = [every_interval(metrics.peers, metrics.clock), _traffic_of_overlay(metrics.peers)]
    zero: list[str] = []
    if metrics.structure is not None:
        parts.append(_graph_of_overlay(metrics.structure, metrics.links_known))
        zero += ["network_size", "unknown_reports"]
    if metrics.dangling_links is not None:
        parts.append(_dangling(metrics.dangling_links, metrics.clock))
        zero += ["dangling_links", "links", "weak_components", "strong_components"]
    if metrics.messages is not None and metrics.publications is not None:
        published = metrics.publications.select("message", "interval")
        hits = _hits(metrics.messages.join(published, "message"), "interval")
        refused = "rejected_publications"
        parts.append(hits if metrics.rejections_known else hits.drop(refused))
        zero += ["publications", *([refused] if metrics.rejections_known else [])]
    rows = join_all(parts, ["interval"], "left").fillna(0, zero)
    without = F.lit(0 if metrics.receptions_known else None)
    sums = {
        name: F.when(F.col(f"{name}.known") > 0, F.col(f"{name}.sum")).otherwise(without)
        for name in _SUMS
    }
    return conform(rows.withColumns(sums), with_own(METRICS_OVERLAY, metrics.own))


def _graph_of_overlay(structure: DataFrame, links_known: bool) -> DataFrame:
    rows = structure.select(F.inline("overlay"))
    return rows if links_known else rows.select("interval", "network_size")


def _traffic_of_overlay(peers: DataFrame) -> DataFrame:
    """Means per present peer; for _SUMS a struct over all peers (sum: null beyond 64 bits, known:
    number of peers with a value).
    """
    here = F.coalesce("present", F.lit(True))
    # Without presence, missing reports are unknown.
    unreported = F.col("present") & F.coalesce(*TRAFFIC_COLUMNS).isNull()
    control = [(f"control_messages_{way}", 1) for way in ("sent", "received")]
    control += [(f"control_bytes_{way}", 1000) for way in ("sent", "received")]
    # Sums of whole numbers are exact in any order; sums of kilobytes would not be.
    means = [
        (F.mean(F.when(here, F.col(name))) / unit).alias(
            f"{name.replace('bytes', 'kilobytes')}_mean"
        )
        for name, unit in control
    ]
    return peers.groupBy("interval").agg(
        *means,
        if_known("present", count_if(unreported)).alias("unknown_reports"),
        *(
            F.struct(F.try_sum(name).alias("sum"), F.count(name).alias("known")).alias(name)
            for name in _SUMS
        ),
    )


def _dangling(dangling_links: DataFrame, clock: Clock) -> DataFrame:
    rows = per_interval(dangling_links, clock).select("interval", "src", "dst").distinct()
    return rows.groupBy("interval").agg(F.count("*").alias("dangling_links"))
