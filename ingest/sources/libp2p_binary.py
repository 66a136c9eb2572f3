"""Files of protobuf → records, in Python on the executors, one task a file.

A stream of records that tell their own length cannot be read from its middle.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ingest.compressed import Content
from ingest.sources.base import InputFile
from ingest.sources.libp2p_events import CONTROL, RECORDS, RPCS, SPELLINGS
from ingest.sources.libp2p_proto import StreamBroken, parse_event, records, unknown_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 4096
_TEXT_BYTES = 512
_PAYLOADS = {int(number): names[0] for number, names in SPELLINGS.items()}
_TEXTS = ("topic", "reason", "proto")


def binary_records(spark: SparkSession, files: Sequence[InputFile]) -> DataFrame:
    """Files of length-delimited `TraceEvent`, plain or compressed → records
    (libp2p_events.RECORDS). `row` of the position is the record's ordinal, from 1; the
    text of a faulty one is hexadecimal.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    paths = spark.createDataFrame([(file.path,) for file in files], "path string")
    return paths.repartition(len(files)).mapInArrow(_read, from_arrow_schema(RECORDS))


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for path in chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
        rows = _read_file(path)
        while batch := list(islice(rows, _BATCH)):
            yield pa.RecordBatch.from_pylist(batch, schema=RECORDS)


def _read_file(path: str) -> Iterator[dict[str, Any]]:
    from pyarrow import fs

    filesystem, inside = fs.FileSystem.from_uri(path)
    with filesystem.open_input_stream(inside, compression=None) as stream:
        for ordinal, row in enumerate(_rows(Content(stream)), start=1):
            yield {"file": path, "position": ordinal, **row}


def _rows(content: Content) -> Iterator[dict[str, Any]]:
    try:
        for record in records(content):
            yield _row(record)
    except StreamBroken as broken:
        yield {"fault": f"{broken} ({content.damage})" if content.damage else str(broken)}


def _row(record: bytes) -> dict[str, Any]:
    from google.protobuf.message import DecodeError

    try:
        event = parse_event(record)
        row = _envelope(event) | _told(event)
    except (DecodeError, UnicodeDecodeError) as error:
        fault = "not UTF-8" if isinstance(error, UnicodeDecodeError) else "not a TraceEvent"
        return {"fault": fault, "text": record[:_TEXT_BYTES].hex()}
    row["text"] = None
    row["unknown"] = unknown_fields(event, len(record)) or None
    return row


def _envelope(event: Any) -> dict[str, Any]:
    return {
        "type": event.type if event.HasField("type") else None,
        "peer": _base64(event, "peerID"),
        "ts_ns": event.timestamp if event.HasField("timestamp") else None,
    }


def _told(event: Any) -> dict[str, Any]:
    """What the payload that belongs to the event's type tells."""
    name = _PAYLOADS.get(event.type)
    if name is None:
        return {}
    payload = getattr(event, name)
    told = {"other": _base64(payload, "other"), "message": _base64(payload, "messageID")}
    told |= {text: _text(payload, text) for text in _TEXTS}
    return told | _counts(payload.meta) if event.type in RPCS else told


def _base64(message: Any, name: str) -> str | None:
    if name not in message.DESCRIPTOR.fields_by_name or not message.HasField(name):
        return None
    return b64encode(getattr(message, name)).decode()


def _text(message: Any, name: str) -> str | None:
    if name not in message.DESCRIPTOR.fields_by_name or not message.HasField(name):
        return None
    value: bytes = getattr(message, name)
    return value.decode()


def _counts(meta: Any) -> dict[str, int]:
    entries = {name: getattr(meta.control, name) for name in CONTROL if name != "subscription"}
    counts = {name: len(found) for name, found in entries.items()}
    counts |= {
        f"{name}_ids": sum(len(entry.messageIDs) for entry in entries[name])
        for name in ("ihave", "iwant", "idontwant")
    }
    return {"messages": len(meta.messages), "subscription": len(meta.subscription)} | counts
