"""The one staged table of a libp2p trace, whatever its files were written in.

`records` come from ingest.sources.libp2p_json and libp2p_proto, one per line or protobuf
message, as they were read; `stage` parts them into the events and what is refused.
"""

from __future__ import annotations

from enum import IntEnum

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


class Type(IntEnum):
    """What an event tells; the numbers of `TraceEvent.type`."""

    PUBLISH = 0
    REJECT = 1
    DUPLICATE = 2
    DELIVER = 3
    STREAM_OPENED = 4
    STREAM_CLOSED = 5
    RECV_RPC = 6
    SEND_RPC = 7
    DROP_RPC = 8
    JOIN = 9
    LEAVE = 10
    GRAFT = 11
    PRUNE = 12


SPELLINGS = {
    Type.PUBLISH: ("publishMessage",),
    Type.REJECT: ("rejectMessage",),
    Type.DUPLICATE: ("duplicateMessage",),
    Type.DELIVER: ("deliverMessage",),
    Type.STREAM_OPENED: ("onNewOutboundStream", "addPeer"),
    Type.STREAM_CLOSED: ("onClosedOutboundStream", "removePeer"),
    Type.RECV_RPC: ("recvRPC",),
    Type.SEND_RPC: ("sendRPC",),
    Type.DROP_RPC: ("dropRPC",),
    Type.JOIN: ("join",),
    Type.LEAVE: ("leave",),
    Type.GRAFT: ("graft",),
    Type.PRUNE: ("prune",),
}
"""The key of each type's payload; the second one was written up to v0.15."""

RPCS = (Type.RECV_RPC, Type.SEND_RPC, Type.DROP_RPC)
_ABOUT_MESSAGE = (Type.PUBLISH, Type.REJECT, Type.DUPLICATE, Type.DELIVER)
_ABOUT_TOPIC = (Type.PUBLISH, Type.JOIN, Type.LEAVE, Type.GRAFT, Type.PRUNE)
_ABOUT_OTHER = (
    *(Type.REJECT, Type.DUPLICATE, Type.STREAM_OPENED, Type.STREAM_CLOSED),
    *(*RPCS, Type.GRAFT, Type.PRUNE),
)

CONTROL = ("subscription", "ihave", "iwant", "graft", "prune", "idontwant")
"""The kinds of control entries in an RPC; a column each, counting its entries."""
IDS = ("ihave_ids", "iwant_ids", "idontwant_ids")
"""How many message ids those entries name in all."""
COUNTS = ("messages", *CONTROL, *IDS)

COLUMNS = pa.schema(
    [
        ("fault", pa.string()),
        ("unknown", pa.list_(pa.string())),
        ("type", pa.int64()),
        ("peer", pa.string()),
        ("ts_ns", pa.int64()),
        *((name, pa.string()) for name in ("other", "topic", "message", "reason", "proto")),
        *((name, pa.int32()) for name in COUNTS),
    ]
)
"""Of a record, but for its place in the input."""
RECORDS = pa.schema(
    [
        ("file", pa.string()),
        ("position", pa.int64()),
        ("text", pa.string()),
        *COLUMNS,
    ]
)
"""A record as it was read. `position` orders the records of a file; `fault` says why it
cannot be taken, null = it could be read; `unknown` names the fields that nobody here knows,
null = none; `text` is the record for people. Ids of peers (peer, other) and of messages are
base64, the counts null where it is not an RPC."""

# Standard, padded, and canonical (the bits that pad are 0), so that one id has one text.
_BASE64 = (
    r"\A(?:[A-Za-z0-9+/]{4})*"
    r"(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)\z"
)


def stage(records: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Records → the events, and the records that are refused.

    events     peer and other (base64), ts_ns (int64, of Unix time), file, position, type,
               topic, message (lower-case hex), reason, proto, counts, unknown (field names)
    refused    file, position, text, reason
    """
    judged = records.withColumn("refusal", _refusal())
    refused = judged.where("refusal IS NOT NULL").select(
        "file", "position", "text", F.col("refusal").alias("reason")
    )
    events = judged.where("refusal IS NULL").withColumn(
        "message", F.lower(F.hex(F.unbase64("message")))
    )
    return events.drop("text", "fault", "refusal"), refused


def _refusal() -> Column:
    """Why the record is refused, null = it is not."""
    return F.coalesce(
        F.col("fault"),
        *(_missing(name, F.lit(True)) for name in ("type", "peer", "ts_ns")),
        F.when(F.col("type") < 0, "negative type"),
        F.when(F.col("ts_ns") < 0, "negative timestamp"),
        _missing("message", F.col("type").isin(*_ABOUT_MESSAGE)),
        _missing("topic", F.col("type").isin(*_ABOUT_TOPIC)),
        _missing("other", F.col("type").isin(*_ABOUT_OTHER)),
        *(_not_base64(name) for name in ("peer", "other", "message")),
        F.when(F.col("topic").rlike(r"\p{Cc}"), "control character in topic"),
    )


_KEYS = {
    "peer": "peerID",
    "ts_ns": "timestamp",
    "message": "messageID",
    "other": "the other peer's id",
}


def _missing(name: str, wanted: Column) -> Column:
    return F.when(wanted & F.col(name).isNull(), f"missing key: {_KEYS.get(name, name)}")


def _not_base64(name: str) -> Column:
    return F.when(~F.col(name).rlike(_BASE64), f"not base64: {_KEYS[name]}")
