"""Nodes of VizPub's files → records as of the report contract.

An ordinary node matches an expression and is parsed by Spark alone; any other one is also
judged in Python, by the grammar that the expression is made from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.report_fields import INT32, Array, Key, Kind, Object, Whole
from ingest.report_records import Report, RunHeader
from ingest.sources.base import DUPLICATES_OF_MESSAGE
from ingest.sources.lines import INVALID_UTF8
from ingest.sources.reports_schema import HEADER_COLUMNS, REPORT_COLUMNS


@dataclass(frozen=True)
class ById:
    """Objects by the id that they carry themselves."""

    item: Object
    id: str

    @property
    def plain(self) -> str:
        """Without spaces, as VizPub writes."""
        return rf"\{{(?:{Key().plain}:{self.item.plain}(?:,(?!\}})|(?=\}})))*+\}}"

    def problems(self, value: object, at: str) -> Iterator[str]:
        """Not an object, wrong items, another key than the item's own."""
        if not isinstance(value, dict):
            yield f"'{at}' is not an object"
            return
        for key, item in value.items():
            yield from self.item.problems(item, f"{at}[]")
            if isinstance(item, dict) and item.get(self.id) != key:
                yield f"'{at}[].{self.id}' is not its key"

    def unknown(self, value: object, at: str) -> Iterator[str]:
        """Unknown fields of the items."""
        for item in value.values() if isinstance(value, dict) else ():
            yield from self.item.unknown(item, f"{at}[]")


_MESSAGES = ById(
    Object(
        {
            "msgId": Key(),
            "topicId": Key(),
            "originalSenderId": Key(),
            "sourceId": Key(),
            "destinationIds": Array(Key()),
            "hopCount": Whole(INT32),
        },
        required=("msgId",),
    ),
    "msgId",
)
COUNTERS = {
    "control_messages_sent": "controlMsgsSent",
    "control_messages_received": "controlMsgsReceived",
    # Bits by name, bytes by what is counted.
    "control_bytes_sent": "bitsSent",
    "control_bytes_received": "bitsReceived",
    "duplicates": "duplicateCount",
}
"""What a node counts from its start, and VizPub's name for it."""
BYTES = "publication.bytes"
NEVER_KNOWN = (BYTES, DUPLICATES_OF_MESSAGE)
"""What none of VizPub's files tells. A node's later copies of a message are only counted."""
_NUMBERS: dict[str, Kind] = {name: Whole() for name in COUNTERS.values()}
NODE = Object(
    {
        "id": Key(),
        "neighbors": Array(Key()),
        "topics": Array(Key()),
        "subscriptionSize": Whole(),
        **_NUMBERS,
        "publicationMsgsSent": _MESSAGES,
        "publicationMsgsReceived": _MESSAGES,
    },
    required=("id", "neighbors"),
)

_COPIES = (
    "map<string, struct<msgId: string, topicId: string, originalSenderId: string, "
    "sourceId: string, destinationIds: array<string>, hopCount: int>>"
)
_NODE = (
    "id string, neighbors array<string>, topics array<string>, "
    + ", ".join(f"{name} bigint" for name in _NUMBERS)
    + f", publicationMsgsSent {_COPIES}, publicationMsgsReceived {_COPIES}, corrupt string"
)
_JUDGEMENT = "reason string, unknown array<string>"


def node_records(nodes: DataFrame) -> DataFrame:
    """What `read_nodes` gives → records as `read_records` gives them.

    A file is the header of its protocol's run, whose counters are totals; a node is a report.
    """
    parsed = nodes.withColumn(
        "node", F.from_json("text", _NODE, {"columnNameOfCorruptRecord": "corrupt"})
    )
    judged = parsed.withColumn("judgement", _judgement())
    unread = F.col("key").isNotNull() & (F.col("node.corrupt").isNotNull() | F.isnull("node.id"))
    reason = F.coalesce("fault", "judgement.reason", F.when(unread, F.lit("cannot be read")))
    kind = F.when(F.col("key").isNull(), RunHeader.format).otherwise(Report.format)
    return judged.withColumn("reason", reason).select(
        "file",
        "position",
        "reason",
        F.when(F.col("reason").isNotNull(), F.col("text")).alias("text"),
        F.coalesce("unknown", "judgement.unknown").alias("unknown_fields"),
        kind.alias("format"),
        "run",
        _header().alias("header"),
        *(F.expr(_REPORT[name]).alias(name) for name in REPORT_COLUMNS),
    )


def _judgement() -> Column:
    """The judgement of nodes that are not plain; null for the others."""
    own = "forall(map_entries(node.publicationMsgs{0}), e -> e.key = e.value.msgId)"
    plain = (
        F.is_valid_utf8("text")
        & F.col("text").rlike(rf"\A\{{{NODE.members}\z")
        & (F.col("node.id") == F.col("key"))
        & F.col("node.neighbors").isNotNull()
        & F.expr(f"coalesce({own.format('Sent')}, true)")
        & F.expr(f"coalesce({own.format('Received')}, true)")
    )
    doubtful = F.col("key").isNotNull() & ~F.coalesce(plain, F.lit(False))
    judge = F.arrow_udf(_judge, _JUDGEMENT)  # type: ignore[attr-defined]
    judgement: Column = judge(F.when(doubtful, F.col("text").cast("binary")), F.col("key"))
    return judgement


def _judge(texts: pa.Array, keys: pa.Array) -> pa.Array:
    judged = [
        None if text is None else _judge_node(text, key)
        for text, key in zip(texts.to_pylist(), keys.to_pylist(), strict=True)
    ]
    kind = pa.struct([("reason", pa.string()), ("unknown", pa.list_(pa.string()))])
    return pa.array(judged, kind)


def _judge_node(text: bytes, key: str) -> dict[str, object]:
    try:
        node = json.loads(text)
    except UnicodeDecodeError:
        return {"reason": INVALID_UTF8, "unknown": None}
    except RecursionError:
        return {"reason": "nested too deep", "unknown": None}
    except ValueError:
        return {"reason": "not JSON", "unknown": None}
    wrong = list(NODE.problems(node, ""))
    if not wrong and node["id"] != key:
        wrong.append("'id' is not the node's key")
    if wrong:
        return {"reason": "; ".join(wrong), "unknown": None}
    unknown = list(dict.fromkeys(NODE.unknown(node, "")))
    try:
        "".join(unknown).encode()
    except UnicodeEncodeError:
        return {"reason": "half of a surrogate pair in the name of a field", "unknown": None}
    return {"reason": None, "unknown": unknown or None}


def _header() -> Column:
    told = {
        "protocol": F.col("run"),
        "counters": F.lit("total"),
        "unknown": F.array(*map(F.lit, NEVER_KNOWN)),
    }
    of_file = F.to_json(F.struct(*(value.alias(name) for name, value in told.items())))
    return F.from_json(F.when(F.col("key").isNull(), of_file), HEADER_COLUMNS)


def _copies(way: str, far_end: str) -> str:
    """A map of messages as the contract's array `sent` or `received`."""
    return (
        f"array_sort(transform(map_values(node.publicationMsgs{way}), copy -> named_struct("
        "'message', copy.msgId, 'topic', copy.topicId, 'publisher', copy.originalSenderId, "
        "'hops', copy.hopCount, 'time_us', CAST(NULL AS BIGINT), 'bytes', CAST(NULL AS BIGINT), "
        f"{far_end})))"
    )


# VizPub's sets and maps come in any order; sorted, what says the same is the same.
_REPORT = {
    **dict.fromkeys(REPORT_COLUMNS, "CAST(NULL AS BIGINT)"),
    "peer": "node.id",
    "interval": "interval",
    "left": "false",
    "neighbors": "array_sort(node.neighbors)",
    "topics": "array_sort(node.topics)",
    "roles": "CAST(NULL AS ARRAY<STRUCT<role: STRING, topic: STRING>>)",
    **{name: f"node.{theirs}" for name, theirs in COUNTERS.items()},
    "sent": _copies("Sent", "'to', copy.destinationIds"),
    "received": _copies("Received", "'from', copy.sourceId"),
}
