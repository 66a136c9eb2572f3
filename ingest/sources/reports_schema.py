"""Lines of reports → judged, typed records.

An ordinary line matches `PLAIN_REPORT` and is parsed by Spark alone; any other one is also
judged by `ingest.reports`, whose words are the reasons in the quarantine.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingest.report_fields import PLAIN_REPORT, REPORT
from ingest.reports import parse, unknown_fields
from ingest.sources.reports_items import neighbor_item
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
_ROLES = "roles array<struct<role: string, topic: string>>"
_EVENTS = (
    f"sent array<struct<{_COPY}, to: array<string>>>, "
    f"received array<struct<{_COPY}, `from`: string>>"
)
_LINE = (
    "format string, run string, peer string, interval int, seq bigint, left boolean, "
    f"neighbors array<string>, topics array<string>, {_ROLES}, "
    f"control {_COUNTERS}, publication {_COUNTERS}, duplicates bigint, {_EVENTS}, "
    f"{HEADER_COLUMNS}, corrupt string"
)
RECORD = (
    "unknown_fields array<string>, format string, run string, "
    f"peer string, interval int, seq bigint, left boolean, "
    f"neighbors array<string>, topics array<string>, {_ROLES}, "
    f"{', '.join(f'{name} bigint' for name in TRAFFIC_COLUMNS)}, duplicates bigint, {_EVENTS}"
)
"""What `read_records` gives beside file, position, reason, text and header."""

_NEIGHBOR = "peer string, layer string, topic string"
_JUDGEMENT = "reason string, unknown array<string>"
_CANNOT_BE_READ = "cannot be read"

REPORT_COLUMNS = (
    "peer",
    "interval",
    "seq",
    "left",
    "neighbors",
    "topics",
    "roles",
    *TRAFFIC_COLUMNS,
    "duplicates",
    "sent",
    "received",
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
    and REPORT_COLUMNS: neighbors as items (ingest.sources.reports_items), counters flat
    """
    text, line, judgement = F.col("text"), F.col("line"), F.col("judgement")
    # Judged before it is parsed: what stands beside the text waits for Python in a queue.
    judged = lines.where(_is_not_blank(text)).withColumn("judgement", _judged(text))
    reason = F.coalesce(judgement["reason"], _lacking(line, judgement), _unread(line))
    parsed = judged.withColumn("line", _parsed(text)).withColumn("reason", reason)
    return parsed.select(
        "file",
        "position",
        "reason",
        F.when(F.col("reason").isNotNull(), text).alias("text"),
        judgement["unknown"].alias("unknown_fields"),
        "line.format",
        "line.run",
        _header(),
        *_report_columns(),
    )


def _is_not_blank(text: Column) -> Column:
    return text.startswith("{") | text.rlike(r"\S")


def _parsed(text: Column) -> Column:
    return F.from_json(text, _LINE, {"columnNameOfCorruptRecord": "corrupt"})


def _judged(text: Column) -> Column:
    """The judgement of lines that are not plain; null for the others."""
    plain = F.is_valid_utf8(text) & text.rlike(rf"\A{PLAIN_REPORT}\z")
    doubtful = F.when(~plain, text.cast("binary"))
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


def _lacking(line: Column, judgement: Column) -> Column:
    """In the words of the contract, the required fields that a plain line lacks, if any."""
    format_, *others = REPORT.required
    lacking = F.concat_ws(
        "; ", *(F.when(line[name].isNull(), F.lit(f"no '{name}'")) for name in others)
    )
    return F.when(judgement.isNotNull(), F.lit(None)).otherwise(
        F.when(line[format_].isNull(), F.lit(f"no '{format_}'")).when(lacking != "", lacking)
    )


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
    """Strings and objects (as JSON) → items."""

    def is_object(entry: Column) -> Column:
        return entry.startswith("{")

    def said(entry: Column) -> Column:
        return F.when(is_object(entry), F.from_json(entry, _NEIGHBOR))

    def item(entry: Column, said: Column) -> Column:
        spelled_out = neighbor_item(said["peer"], said["layer"], said["topic"])
        return F.when(said["peer"].isNull(), entry).otherwise(spelled_out)

    # In two steps, as Spark would read an object once for each of its fields.
    items = F.zip_with(entries, F.transform(entries, said), item)
    return F.when(F.exists(entries, is_object), items).otherwise(entries)
