"""Lines of reports → judged, typed records.

An ordinary line matches `PLAIN_REPORT` and is parsed by Spark alone; any other one is also
judged by `ingest.reports`, whose words are the reasons in the quarantine.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.report_fields import PLAIN_REPORT
from ingest.report_records import OVERLAY, Report
from ingest.reports import parse, unknown_fields
from model.columns import TRAFFIC_COLUMNS

HEADER_COLUMNS = (
    "protocol string, parameters string, seed bigint, interval_us bigint, epoch string, "
    "counters string, unknown array<string>, last_interval int"
)
"""What run headers and ends hold, beside format and run; `parameters` stays JSON."""

_WAY = "struct<messages: bigint, bytes: bigint>"
_COUNTERS = f"struct<sent: {_WAY}, received: {_WAY}>"
_COPY = (
    "message: string, topic: string, publisher: string, hops: int, time_us: bigint, bytes: bigint"
)
_LINE = (
    "format string, run string, peer string, interval int, seq bigint, left boolean, "
    "neighbors array<string>, topics array<string>, "
    "roles array<struct<role: string, topic: string>>, "
    f"control {_COUNTERS}, publication {_COUNTERS}, duplicates bigint, "
    f"sent array<struct<{_COPY}, to: array<string>>>, "
    f"received array<struct<{_COPY}, `from`: string>>, "
    f"{HEADER_COLUMNS}, corrupt string"
)
_JUDGEMENT = "reason string, unknown array<string>"
_CANNOT_BE_READ = "cannot be read"
_STATE = ("neighbors", "topics", "roles")
_EVENTS = ("sent", "received")

REPORT_COLUMNS = (
    "peer",
    "interval",
    "seq",
    "left",
    *_STATE,
    *TRAFFIC_COLUMNS,
    "duplicates",
    *_EVENTS,
)
"""Columns of the staged table `reports`, beside run."""


def read_records(lines: DataFrame) -> DataFrame:
    """Lines that are not blank, judged and typed.

    file, position    as in ingest.sources.lines
    reason            why the line is refused, null = it is not; the others are null then
    text              the line, where it is refused
    unknown_fields    names of fields that the contract does not know, null = none
    format, run       of the record
    header            struct of HEADER_COLUMNS
    and REPORT_COLUMNS: neighbors array<struct<peer, layer, topic>>, counters flat
    """
    parsed = lines.where(F.col("text").rlike(r"\S")).withColumn("line", _parsed(F.col("text")))
    judged = parsed.withColumn("judgement", _judged(F.col("text"), F.col("line")))
    reason = F.coalesce(F.col("judgement.reason"), _unread(F.col("line")))
    return judged.withColumn("reason", reason).select(
        "file",
        "position",
        "reason",
        F.when(F.col("reason").isNotNull(), F.col("text")).alias("text"),
        F.col("judgement.unknown").alias("unknown_fields"),
        "line.format",
        "line.run",
        _header(),
        *_report_columns(),
    )


def _parsed(text: Column) -> Column:
    return F.from_json(text, _LINE, {"columnNameOfCorruptRecord": "corrupt"})


def _judged(text: Column, line: Column) -> Column:
    """The judgement of lines that are not plain; null for the others."""
    plain = (
        F.is_valid_utf8(text)
        & text.rlike(rf"\A{PLAIN_REPORT}\z")
        & (line["format"] == Report.format)
        & line["peer"].isNotNull()
        & line["interval"].isNotNull()
    )
    doubtful = F.when(~F.coalesce(plain, F.lit(False)), text.cast("binary"))
    judgement: Column = F.arrow_udf(_judge, _JUDGEMENT)(doubtful)  # type: ignore[attr-defined]
    return judgement


def _judge(texts: pa.Array) -> pa.Array:
    judged = [None if text is None else _judge_line(text) for text in texts.to_pylist()]
    kind = pa.struct([("reason", pa.string()), ("unknown", pa.list_(pa.string()))])
    return pa.array(judged, kind)


def _judge_line(text: bytes) -> dict[str, object]:
    value, wrong = parse(text)
    if wrong:
        return {"reason": "; ".join(wrong), "unknown": None}
    return {"reason": None, "unknown": unknown_fields(value) or None}


def _unread(line: Column) -> Column:
    """Two readers of JSON agree on sound lines; where they did not, nothing may be lost."""
    return F.when(line["corrupt"].isNotNull() | line["format"].isNull(), F.lit(_CANNOT_BE_READ))


def _header() -> Column:
    names = [column.split()[0] for column in HEADER_COLUMNS.split(", ")]
    return F.struct(*(F.col(f"line.{name}").alias(name) for name in names)).alias("header")


def _report_columns() -> list[Column]:
    special = {
        "neighbors": _neighbors(F.col("line.neighbors")),
        "left": F.coalesce("line.left", F.lit(False)),
        **{name: _counter(name) for name in TRAFFIC_COLUMNS},
    }
    return [special.get(name, F.col(f"line.{name}")).alias(name) for name in REPORT_COLUMNS]


def _counter(name: str) -> Column:
    """`control_messages_sent` stands in control.sent.messages."""
    kind, what, way = name.split("_")
    return F.col(f"line.{kind}.{way}.{what}")


def _neighbors(entries: Column) -> Column:
    """Strings and objects (as JSON) → structs of peer, layer and topic."""

    def spelled_out(entry: Column) -> Column:
        alone = F.named_struct(
            F.lit("peer"),
            entry,
            F.lit("layer"),
            F.lit(None).cast("string"),
            F.lit("topic"),
            F.lit(None).cast("string"),
        )
        more = F.from_json(entry, "peer string, layer string, topic string")
        return F.when(entry.startswith("{") & more["peer"].isNotNull(), more).otherwise(alone)

    def with_layer(entry: Column) -> Column:
        return entry.withField("layer", F.coalesce(entry["layer"], F.lit(OVERLAY)))

    return F.transform(F.transform(entries, spelled_out), with_layer)
