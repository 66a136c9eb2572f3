"""Lines of JSON as go-libp2p-pubsub's `NewJSONTracer` writes them → records.

Spark parses each line twice: into a variant, whose shape tells wrong types and unknown
fields apart from what was simply left out, and into columns.
"""

from __future__ import annotations

from itertools import product

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.sources.libp2p_events import CONTROL, COUNTS, RPCS, SPELLINGS
from ingest.sources.lines import CUT_OFF, INVALID_UTF8

_META = (
    "STRUCT<messages: ARRAY<STRUCT<topic: STRING>>, subscription: ARRAY<STRUCT<topic: STRING>>,"
    " control: STRUCT<ihave: ARRAY<STRUCT<messageIDs: ARRAY<STRING>>>,"
    " iwant: ARRAY<STRUCT<messageIDs: ARRAY<STRING>>>,"
    " graft: ARRAY<STRUCT<topic: STRING>>, prune: ARRAY<STRUCT<topic: STRING>>,"
    " idontwant: ARRAY<STRUCT<messageIDs: ARRAY<STRING>>>>>"
)
_PAYLOAD = (
    "STRUCT<messageID: STRING, topic: STRING, receivedFrom: STRING, sendTo: STRING,"
    f" peerID: STRING, proto: STRING, reason: STRING, meta: {_META}>"
)
_SPELLINGS = [name for names in SPELLINGS.values() for name in names]
_EVENT = "type BIGINT, peerID STRING, timestamp BIGINT, " + ", ".join(
    f"{name} {_PAYLOAD}" for name in _SPELLINGS
)

_ENTRIES = ("messages", *CONTROL)
_KNOWN = {
    "BIGINT": ("type", "timestamp"),
    "STRING": ("peerID", "messageID", "topic", "receivedFrom", "sendTo", "proto", "reason"),
    "BOOLEAN": ("subscribe",),
    "OBJECT": (*_SPELLINGS, "meta", "control"),
    "ARRAY<OBJECT": _ENTRIES,
    "ARRAY<STRING": ("messageIDs", "peers"),
    "ARRAY<VOID": (*_ENTRIES, "messageIDs", "peers"),
}
_NAMES = sorted({name for names in _KNOWN.values() for name in names})
# What a field may be, as `schema_of_variant` writes it; VOID (null) is as good as left out.
_FIELDS = [f"{n}: {t}" for t, names in _KNOWN.items() for n in names]
_FIELDS += [f"{n}: {t}" for n, t in product(_NAMES, ["VOID"])]
_FIELD = r"(`(?:[^`]|``)+`|\w+): ((?:ARRAY<)*[A-Z]+)"


def json_records(lines: DataFrame) -> DataFrame:
    """What `read_lines` gives → records (libp2p_events.RECORDS). Blank lines are no records."""
    judged = (
        lines.where(r"NOT text RLIKE '^\\s*$'")
        .withColumn("parsed", F.try_parse_json(F.concat(F.lit("["), F.col("text"), F.lit("]"))))
        .withColumn("shape", _shape("parsed"))
        .withColumn("odd", F.array_except(_fields("shape"), F.array(*map(F.lit, _FIELDS))))
        .withColumn("odd", F.transform("odd", lambda f: F.regexp_extract(f, _FIELD, 1)))
    )
    known = F.array(*map(F.lit, _NAMES))
    unknown = F.array_except("odd", known)
    event = F.from_json("text", _EVENT)
    read = judged.select("*", event.alias("event")).withColumn("payload", _payload())
    return read.select(
        "file",
        "position",
        "text",
        _fault(F.array_intersect("odd", known)).alias("fault"),
        F.when(F.size(unknown) > 0, unknown).alias("unknown"),
        "event.type",
        F.col("event.peerID").alias("peer"),
        F.col("event.timestamp").alias("ts_ns"),
        F.coalesce("payload.receivedFrom", "payload.sendTo", "payload.peerID").alias("other"),
        "payload.topic",
        F.col("payload.messageID").alias("message"),
        "payload.reason",
        "payload.proto",
        *_counts(),
    )


def _shape(parsed: str) -> Column:
    """The types of the line's one object by field, null where it is not one object.

    The line was parsed inside brackets: the parser does not look at what follows a value.
    """
    shape = F.schema_of_variant(parsed)
    alone = F.try_variant_get(parsed, "$[1]", "variant").isNull()
    return F.when(shape.startswith("ARRAY<OBJECT<") & alone, shape)


def _fields(shape: str) -> Column:
    return F.regexp_extract_all(shape, F.lit(_FIELD), F.lit(0))


def _fault(mistyped: Column) -> Column:
    wrong = F.concat(F.lit("wrong type: "), F.array_join(F.array_sort(mistyped), ", "))
    return (
        F.when(F.col("cut"), CUT_OFF)
        .when(~F.is_valid_utf8("text"), INVALID_UTF8)
        .when(F.col("shape").isNull(), "not one JSON object")
        .when(F.size(mistyped) > 0, wrong)
    )


def _payload() -> Column:
    """The payload that belongs to the event's type; others beside it mean nothing."""
    return F.coalesce(
        *(
            F.when(F.col("event.type") == number, F.col(f"event.{name}"))
            for number, names in SPELLINGS.items()
            for name in names
        )
    )


def _counts() -> list[Column]:
    is_rpc = F.col("event.type").isin(*RPCS)
    return [F.when(is_rpc, _count(name)).alias(name) for name in COUNTS]


def _count(name: str) -> Column:
    kind = name.removesuffix("_ids")
    inside = "" if kind in ("messages", "subscription") else "control."
    entries = F.col(f"payload.meta.{inside}{kind}")
    number = F.array_size(entries)
    if kind != name:
        number = F.aggregate(
            entries, F.lit(0), lambda n, e: n + F.coalesce(F.array_size(e.messageIDs), F.lit(0))
        )
    return F.coalesce(number, F.lit(0))
