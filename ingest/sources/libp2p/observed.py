"""What was folded of a trace → observed tables, by what is known of the run as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.sources.base import Description, Observed, SourceOptions
from ingest.sources.libp2p.facts import Tally, epoch_us
from ingest.sources.libp2p.fold import COUNTED
from ingest.sources.libp2p.presence import STAYS, stays
from ingest.versions import clip
from model.clock import OPEN, Clock
from model.columns import TRAFFIC_COLUMNS


def observe(tables: Mapping[str, DataFrame], run: Description, options: SourceOptions) -> Observed:
    """See Libp2p.observe_run."""
    clock, epoch = run.clock, epoch_us(run)
    # Only names, and streams to peers that fell silent: little enough for one task.
    reporting = tables["peers"].coalesce(1).mapInArrow(stays, STAYS)
    present = reporting.select("peer", "vf", "vt")
    links = tables["links"]
    if options.reporters_only:
        reporters = tables["peers"].select(F.col("peer").alias("dst"))
        links = links.join(reporters, "dst", "left_semi").select(*links.columns)
    elif Tally.of(run.totals).named:
        present = present.unionAll(_named(tables["named"], present))
    return Observed(
        peers=tables["peers"].select(F.col("peer").alias("key"), F.lit(True).alias("reports")),
        presence=_spans(present, epoch),
        links=_spans(links, epoch),
        subscriptions=_spans(tables["subscriptions"], epoch),
        traffic=_traffic(tables["traffic"], reporting, epoch, clock),
        publications=_events(tables["publications"], epoch, clock),
        receptions=_events(tables["receptions"], epoch, clock).withColumns(
            {"publisher": _null("string"), "hop": _null("int")}
        ),
        rejections=_events(tables["rejections"], epoch, clock),
    )


def _null(kind: str) -> Column:
    return F.lit(None).cast(kind)


def _spans(spans: DataFrame, epoch: int) -> DataFrame:
    """On the run's clock."""
    end = F.when(F.col("vt") == OPEN, F.lit(OPEN)).otherwise(F.col("vt") - epoch)
    return spans.withColumns({"vf": F.col("vf") - epoch, "vt": end})


def _events(events: DataFrame, epoch: int, clock: Clock) -> DataFrame:
    """On the run's clock: tick, time_us, which is the same, and interval."""
    tick = F.col("tick") - epoch
    interval = F.expr(f"CAST((tick - {epoch}) DIV {clock.ticks_per_interval} AS INT)")
    return events.withColumns({"tick": tick, "time_us": tick, "interval": interval})


def _named(streams: DataFrame, reporting: DataFrame) -> DataFrame:
    """The stays of peers that only others name: peer, vf, vt; these may overlap. A peer is there
    while one that reports, and is there, holds a stream to it.
    """
    stays = clip(streams, reporting, "src").select("peer", "vf", "vt")
    return stays.join(reporting, "peer", "left_anti")


def _traffic(counted: DataFrame, reporting: DataFrame, epoch: int, clock: Clock) -> DataFrame:
    """Peer and interval: control entries and messages of sent and received RPCs.

    A trace is complete, so a peer that was present and said nothing sent nothing: 0. `dropped`
    counts DROP_RPC events, which are not sent. Bytes are in no trace: null.
    """
    length, first = clock.ticks_per_interval, epoch // clock.ticks_per_interval
    nothing = (F.lit(0).cast("bigint").alias(name) for name in COUNTED)
    over = F.least(F.expr(f"(vt - 1) DIV {length}"), F.lit(first + clock.last)) + 1
    quiet = reporting.select(
        "peer", F.expr(f"last DIV {length} + 1").alias("vf"), over.alias("vt"), *nothing
    )
    each = F.explode(F.sequence("vf", F.col("vt") - 1)).alias("interval")
    rows = counted.unionAll(quiet.where("vf < vt")).select("peer", each, *COUNTED)
    names = [*TRAFFIC_COLUMNS, "dropped", "duplicates"]
    unknown = {name: _null("bigint") for name in names if name not in COUNTED}
    interval = (F.col("interval") - first).cast("int")
    return rows.withColumns({"interval": interval, **unknown}).select("peer", "interval", *names)
