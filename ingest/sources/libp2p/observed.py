"""What was folded of a trace → observed tables, by what is known of the run as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

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
        reporters = tables["peers"].selectExpr("peer AS dst")
        links = links.join(reporters, "dst", "left_semi").select(*links.columns)
    elif Tally.of(run.totals).named:
        present = present.unionAll(_named(tables["named"], present))
    arrivals = tables["receptions"].selectExpr(
        "*", "CAST(NULL AS STRING) AS publisher", "CAST(NULL AS INT) AS hop"
    )
    return Observed(
        peers=tables["peers"].selectExpr("peer AS key", "true AS reports"),
        presence=_spans(present, epoch),
        links=_spans(links, epoch),
        subscriptions=_spans(tables["subscriptions"], epoch),
        traffic=_traffic(tables["traffic"], reporting, epoch, clock),
        publications=_events(tables["publications"], epoch, clock),
        receptions=_events(arrivals, epoch, clock),
        rejections=_events(tables["rejections"], epoch, clock),
    )


def _spans(spans: DataFrame, epoch: int) -> DataFrame:
    """On the run's clock."""
    ends = f"vf - {epoch} AS vf", f"IF(vt = {OPEN}, vt, vt - {epoch}) AS vt"
    return spans.selectExpr("* EXCEPT (vf, vt)", *ends)


def _events(events: DataFrame, epoch: int, clock: Clock) -> DataFrame:
    """On the run's clock: tick, time_us, which is the same, and interval."""
    tick = f"tick - {epoch}"
    interval = f"CAST(({tick}) DIV {clock.ticks_per_interval} AS INT) AS interval"
    return events.selectExpr("* EXCEPT (tick)", f"{tick} AS tick", f"{tick} AS time_us", interval)


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
    over = f"LEAST((vt - 1) DIV {length}, {first + clock.last}) + 1 AS vt"
    nothing = (f"0L AS {name}" for name in COUNTED)
    quiet = reporting.selectExpr("peer", f"last DIV {length} + 1 AS vf", over, *nothing)
    rows = counted.unionAll(quiet.where("vf < vt"))
    each = f"EXPLODE(TRANSFORM(SEQUENCE(vf, vt - 1), at -> INT(at - {first}))) AS interval"
    names = [*TRAFFIC_COLUMNS, "dropped", "duplicates"]
    unknown = (f"CAST(NULL AS BIGINT) AS {name}" for name in names if name not in COUNTED)
    return rows.selectExpr("peer", each, *COUNTED, *unknown)
