"""Traces of go-libp2p-pubsub: JSON (`NewJSONTracer`) and protobuf (`NewPBTracer`).

Streams opened and closed are links of layer `overlay`, GRAFT and PRUNE links of layer
`mesh`; JOIN and LEAVE are subscriptions. All keep the time they happened.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import islice
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from ingest.sources import libp2p_observed as observed
from ingest.sources import libp2p_presence as presence
from ingest.sources.base import Description, InputFile, Observed, ParsedSource, SourceOptions
from ingest.sources.libp2p_binary import binary_records
from ingest.sources.libp2p_events import Type, stage
from ingest.sources.libp2p_json import BLANK, json_lines
from ingest.sources.libp2p_proto import StreamBroken, parse_event, records
from ingest.sources.text import quarantine
from model.clock import Clock
from model.errors import InputError

_INTERVAL_US = 1_000_000
_MOST_INTERVALS = 10_000_000
_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
_LOOK_AT = 50
"""Records at the beginning of a file that are looked at to recognise it."""


class Libp2p(ParsedSource):
    """The source; see ingest.sources.base.Source for its four steps.

    Peers go by the base64 of their id in the observed tables, messages by the lower-case
    hex of theirs.
    """

    name = "libp2p"
    options = frozenset({"interval_us", "reporters_only", "max_line"})

    def recognises(self, path: str, head: bytes) -> str | None:
        """'json' or 'protobuf', by content alone."""
        if any(map(_is_json_event, head.split(b"\n")[:_LOOK_AT])):
            return "json"
        with suppress(StreamBroken):
            if any(map(_is_binary_event, islice(records([head]), _LOOK_AT))):
                return "protobuf"
        return None

    def parse(
        self, spark: SparkSession, files: Sequence[InputFile], options: SourceOptions
    ) -> dict[str, DataFrame]:
        """`events` (libp2p_events.stage) and `quarantine`."""
        text = [file for file in files if file.encoding == "json"]
        binary = [file for file in files if file.encoding != "json"]
        parts = [_parse_json(spark, text, options.max_line)] if text else []
        parts += [_parse_binary(spark, binary)] if binary else []
        events, refused = (reduce(DataFrame.unionByName, part) for part in zip(*parts, strict=True))
        return {"events": events, "quarantine": refused}

    def describe(self, staged: Mapping[str, DataFrame], options: SourceOptions) -> Description:
        """The clock is Unix time in µs from the first event's interval on.

        Raises: InputError where there is no event, where a peer's events stand in two
        files, or where the events lie too far apart.
        """
        events = staged["events"]
        facts = _facts(events)
        _check_copies(events)
        clock, epoch = _clock(facts, options.interval_us or _INTERVAL_US)
        return Description(
            clock=clock,
            protocol=_protocol(facts.protocols),
            parameters={"protocols": facts.protocols} if facts.protocols else {},
            epoch=epoch,
            unknown=_unknown(facts),
            notes=_notes(events, facts),
        )

    def observe(
        self, staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
    ) -> Observed:
        """Lazily; traffic has a row for each interval in which a peer that reports was there."""
        clock = description.clock
        events = observed.on_clock(staged["events"], _epoch_us(description), clock)
        streams = observed.streams(events)
        reporting = presence.reporting(events, streams)
        links = observed.links(streams, observed.mesh(events))
        present = reporting
        if options.reporters_only:
            links = links.join(reporting.select(F.col("peer").alias("dst")), "dst", "left_semi")
        else:
            present = reporting.union(presence.named(streams, reporting))
        return Observed(
            peers=observed.reporters(events),
            presence=present,
            links=links,
            subscriptions=observed.subscriptions(events),
            traffic=observed.traffic(events, reporting, clock),
            publications=observed.publications(events),
            receptions=observed.receptions(events),
            rejections=observed.rejections(events),
        )

    def peer_key(self, peer: Column) -> Column:
        """Base64 of a peer's id → base58btc, as libp2p writes it for people ('12D3KooW…')."""
        encoded: Column = F.arrow_udf(_base58, "string")(peer)  # type: ignore[attr-defined]
        return encoded


def _base58(peers: pa.Array) -> pa.Array:
    from base58 import b58encode

    return pa.array([b58encode(b64decode(peer)).decode() for peer in peers.to_pylist()])


def _is_json_event(line: bytes) -> bool:
    with suppress(ValueError, RecursionError):
        event = json.loads(line)
        return isinstance(event, dict) and {"type", "peerID", "timestamp"} <= event.keys()
    return False


def _is_binary_event(record: bytes) -> bool:
    with suppress(DecodeError):
        event = parse_event(record)
        return all(event.HasField(name) for name in ("type", "peerID", "timestamp"))
    return False


def _parse_json(
    spark: SparkSession, files: Sequence[InputFile], max_line: int | None
) -> tuple[DataFrame, DataFrame]:
    lines = json_lines(spark, files, max_line)
    events, refused = stage(lines.where(~F.col("fault").eqNullSafe(BLANK)))
    return events, quarantine(refused)


def _parse_binary(spark: SparkSession, files: Sequence[InputFile]) -> tuple[DataFrame, DataFrame]:
    events, refused = stage(binary_records(spark, files))
    line = F.col("position").alias("line")
    return events, refused.select("file", line, "reason", "text")


def _facts(events: DataFrame) -> Row:
    """One row: first and last ts_ns, protocols, deliveries and those that say from where,
    rejections by the publisher itself.
    """
    is_deliver = F.col("type") == Type.DELIVER
    facts = events.agg(
        F.min("ts_ns").alias("first"),
        F.max("ts_ns").alias("last"),
        F.array_sort(F.collect_set("proto")).alias("protocols"),
        F.count_if(is_deliver).alias("deliveries"),
        F.count_if(is_deliver & F.col("other").isNotNull()).alias("told_from"),
        F.count_if((F.col("type") == Type.REJECT) & (F.col("peer") == F.col("other"))).alias(
            "own_rejections"
        ),
    ).first()
    if facts is None or facts["first"] is None:
        raise InputError("no event of the trace could be read", "see its quarantine for why")
    return facts


def _check_copies(events: DataFrame) -> None:
    """A peer writes one trace: two files that tell of it at the same time are copies."""
    spans = events.groupBy("peer", "file").agg(
        F.min("ts_ns").alias("since"), F.max("ts_ns").alias("until")
    )
    one, other = spans.alias("one"), spans.alias("other")
    same_time = F.expr(
        "one.since < other.until AND other.since < one.until"
        " OR one.since = other.since AND one.until = other.until"
    )
    both = (
        one.join(other, F.expr("one.peer = other.peer AND one.file < other.file") & same_time)
        .select(F.col("one.file"), F.col("other.file"))
        .first()
    )
    if both is not None:
        raise InputError(
            f"{both[0]} and {both[1]} tell of the same peer at the same time",
            "give one encoding of the trace, for example: vizpub ingest TRACE/json",
        )


def _clock(facts: Row, interval_us: int) -> tuple[Clock, str]:
    """The clock and its epoch in ISO 8601."""
    epoch_us = facts["first"] // 1000 // interval_us * interval_us
    last = (facts["last"] // 1000 - epoch_us) // interval_us
    if last >= _MOST_INTERVALS:
        raise InputError(
            f"the events lie {(facts['last'] - facts['first']) / 1e9:.0f} s apart: "
            f"{last + 1} intervals of {interval_us / 1e6:g} s",
            "give a longer --interval, or take out records with a wrong timestamp",
        )
    epoch = (_UNIX + timedelta(microseconds=epoch_us)).isoformat().replace("+00:00", "Z")
    return Clock(ticks_per_interval=interval_us, tick_us=1, last=last), epoch


def _epoch_us(description: Description) -> int:
    if description.epoch is None:
        raise InputError("a trace of events needs its epoch")
    return (datetime.fromisoformat(description.epoch) - _UNIX) // timedelta(microseconds=1)


def _protocol(protocols: Sequence[str]) -> str:
    floods = protocols and all(name.startswith("/floodsub/") for name in protocols)
    return "floodsub" if floods else "gossipsub"


def _unknown(facts: Row) -> tuple[str, ...]:
    bytes_unknown = "traffic in bytes (traces have no sizes)"
    if facts["deliveries"] and not facts["told_from"]:
        return (
            bytes_unknown,
            "previous hop of first receptions, so hops and dissemination trees "
            "(the trace does not say whom a delivery came from)",
            "IDONTWANT entries, so control traffic is a lower bound "
            "(the tools that write this format leave them out)",
        )
    return (bytes_unknown,)


def _notes(events: DataFrame, facts: Row) -> dict[str, int]:
    """Events of unknown types, unknown fields, and what is no arrival, with their numbers."""
    types = events.where(~F.col("type").isin(*Type)).select(
        F.concat(F.lit("unknown event type "), "type").alias("note")
    )
    fields = events.select(F.explode("unknown").alias("name")).select(
        F.concat(F.lit("unknown field "), "name").alias("note")
    )
    found = types.union(fields).groupBy("note").count().orderBy("note").collect()
    notes: dict[str, Any] = {row["note"]: row["count"] for row in found}
    unsaid = facts["deliveries"] - facts["told_from"]
    if unsaid and facts["told_from"]:
        notes["deliveries that do not say whom they came from"] = unsaid
    if facts["own_rejections"]:
        notes["messages their own publisher rejected"] = facts["own_rejections"]
    return notes
