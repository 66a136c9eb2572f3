"""Folded tables of a trace → observed tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from ingest.periods import clip
from ingest.sources.base import Description, Observed, SourceOptions
from ingest.sources.folded import names_of_reporters
from ingest.sources.libp2p.facts import Tally
from ingest.sources.libp2p.fold import COUNTED
from ingest.sources.libp2p.presence import STAYS, stays
from model.clock import Clock
from model.columns import TRAFFIC_COLUMNS


def observe(tables: Mapping[str, DataFrame], run: Description, options: SourceOptions) -> Observed:
    """See Libp2p.observe."""
    # Only names, and streams to failed peers: few enough for one task.
    reporting = tables["peers"].coalesce(1).mapInArrow(stays, STAYS)
    present, links = reporting.select("peer", "valid_from", "valid_to"), tables["links"]
    peers, names = (
        tables["peers"].selectExpr("peer AS name", "true AS is_reporter"),
        tables["names"],
    )
    if options.reporters_only:
        reporters = tables["peers"].selectExpr("peer AS dst")
        links = links.join(reporters, "dst", "left_semi").select(*links.columns)
        names = names_of_reporters(names, peers)
    elif Tally.of(run.totals).named:
        present = present.unionAll(_named(tables["named"], present))
    return Observed(
        peers=peers,
        names=names,
        presence=present,
        links=links,
        subscriptions=tables["subscriptions"],
        traffic=_traffic(tables["traffic"], reporting, run.clock),
        publications=tables["publications"],
        receptions=tables["receptions"],
        rejections=tables["rejections"],
    )


def _named(streams: DataFrame, reporting: DataFrame) -> DataFrame:
    """The presence of peers that do not report: peer, valid_from, valid_to; may overlap. Such a
    peer is present while a present reporter holds a stream to it.
    """
    stays = clip(streams, reporting, "src").select("peer", "valid_from", "valid_to")
    return stays.join(reporting, "peer", "left_anti")


def _traffic(counted: DataFrame, reporting: DataFrame, clock: Clock) -> DataFrame:
    """Peer and interval: sent and received RPCs, and the control entries and messages in them.

    A trace is complete, so a present peer without events has no traffic: 0. `dropped`
    counts DROP_RPC events, which are not sent. Bytes are in no trace: null.
    """
    length = clock.ticks_per_interval
    over = f"LEAST((valid_to - 1) DIV {length}, {clock.last}) + 1 AS valid_to"
    nothing = (f"0L AS {name}" for name in COUNTED)
    quiet = reporting.selectExpr("peer", f"last DIV {length} + 1 AS valid_from", over, *nothing)
    rows = counted.unionAll(quiet.where("valid_from < valid_to"))
    names = [*TRAFFIC_COLUMNS, "dropped", "duplicates"]
    unknown = (f"CAST(NULL AS BIGINT) AS {name}" for name in names if name not in COUNTED)
    each = "EXPLODE(SEQUENCE(INT(valid_from), INT(valid_to - 1))) AS interval"
    return rows.selectExpr("peer", each, *COUNTED, *unknown)
