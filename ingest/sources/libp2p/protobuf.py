"""Streams of protobuf written by go-libp2p-pubsub's `NewPBTracer` → values of events.

A file is a sequence of records, each a length (varint) and a `TraceEvent` (trace.proto of
go-libp2p-pubsub, proto2). The classes of the messages are built from the table below.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from vizpub.ingest.inputs.reader import INVALID_UTF8, RecordRefused
from vizpub.ingest.sources.libp2p.events import (
    CONTROL,
    RPCS,
    SPELLINGS,
    RpcEntries,
    control_entries,
)
from vizpub.reports.compressed import KEPT, MAX_LINE, LongLine

CUT_OFF = "record is cut off"
IMPOSSIBLE_LENGTH = "impossible length of a record"

# Message: fields in order of their numbers, `name:type`, `-` for a number that is not used,
# `*` for repeated. Topics and the like are read as bytes: their UTF-8 is checked later.
_SCHEMA = {
    "TraceEvent": "type:int32 peerID:bytes timestamp:int64 publishMessage:Message"
    " rejectMessage:Reject duplicateMessage:Duplicate deliverMessage:Message"
    " onNewOutboundStream:Stream onClosedOutboundStream:Stream recvRPC:RPC sendRPC:RPC"
    " dropRPC:RPC join:Join leave:Leave graft:Mesh prune:Mesh sendRPCCompleted:Written",
    "Message": "messageID:bytes topic:bytes other:bytes",
    "Reject": "messageID:bytes other:bytes reason:bytes topic:bytes",
    "Duplicate": "messageID:bytes other:bytes topic:bytes",
    "Stream": "other:bytes proto:bytes",
    "RPC": "other:bytes meta:Meta",
    "Written": "other:bytes meta:Meta write_ns:int64",
    "Join": "topic:bytes",
    "Leave": "- topic:bytes",
    "Mesh": "other:bytes topic:bytes",
    "Meta": "messages:Message* subscription:Subscription* control:Control",
    "Subscription": "subscribe:bool topic:bytes",
    "Control": "ihave:IHave* iwant:Ids* graft:Join* prune:Prune* idontwant:Ids*",
    "IHave": "topic:bytes messageIDs:bytes*",
    "Ids": "messageIDs:bytes*",
    "Prune": "topic:bytes peers:bytes*",
}
_SCALARS = {
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
}
_PACKAGE = "vizpub.libp2p"
_LONGEST_LENGTH = 5
"""Bytes of a varint below 2^35; a longer one is no length."""
_LONGEST_RECORD = 1 << 28
_PAYLOADS: dict[int | None, str] = {number: names[0] for number, names in SPELLINGS.items()}
_TEXTS = ("topic", "reason", "proto")


class StreamBroken(Exception):
    """A stream whose rest cannot be read; has the reason, and the first bytes of the rest."""

    def __init__(self, why: str, rest: bytes = b"") -> None:
        super().__init__(why)
        self.rest = rest


def is_event(record: bytes) -> bool:
    """Return True for a record that looks like an event."""
    with suppress(DecodeError):
        event = parse_event(record)
        return all(event.HasField(name) for name in ("type", "peerID", "timestamp"))
    return False


def decode(record: bytes) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a record for `events.make_event`, and its unknown fields.

    Raises: RecordRefused.
    """
    try:
        event = parse_event(record)
        fields = _fields(event)
        kind = fields.get("type")
        payload = _fields(fields.get(_PAYLOADS.get(kind, "")))
        return {
            "type": kind,
            "peer": _base64(fields.get("peerID")),
            "time": fields.get("timestamp"),
            "other": _base64(payload.get("other")),
            "message": _base64(payload.get("messageID")),
            **{name: payload[name].decode() for name in _TEXTS if name in payload},
            "entries": _entries(payload.get("meta"), kind) if kind in RPCS else None,
            "write_ns": payload.get("write_ns"),
        }, unknown_fields(event, len(record))
    except DecodeError as error:
        raise RecordRefused("not a TraceEvent") from error
    except UnicodeDecodeError as error:
        raise RecordRefused(INVALID_UTF8) from error


def _fields(message: Message | None) -> dict[str, Any]:
    """Return the fields of a message that are set, by name."""
    fields = [] if message is None else message.ListFields()
    return {field.name: value for field, value in fields}


def _base64(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


def _entries(meta: Any, way: int | None) -> RpcEntries:
    if meta is None:
        return RpcEntries()
    blocks = {kind: map(_fields, getattr(meta.control, kind)) for kind in CONTROL}
    entries = control_entries(map(_fields, meta.subscription), blocks, way)
    return RpcEntries(len(meta.messages), entries)


@cache
def _event_class() -> type[Message]:
    """Build the class of `TraceEvent`. Its payloads have the names of the JSON, and the peer that a
    payload refers to is always `other`.
    """
    file = descriptor_pb2.FileDescriptorProto(name="trace.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(), start=1):
            if field != "-":
                _add_field(message, number, field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.TraceEvent"))


def _add_field(message: descriptor_pb2.DescriptorProto, number: int, text: str) -> None:
    name, kind, many = re.fullmatch(r"(\w+):(\w+)(\*?)", text).groups()  # type: ignore[union-attr]
    kinds = descriptor_pb2.FieldDescriptorProto
    message.field.add(
        name=name,
        number=number,
        label=kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL,
        type=_SCALARS.get(kind, kinds.TYPE_MESSAGE),
        type_name=None if kind in _SCALARS else f".{_PACKAGE}.{kind}",
    )


def parse_event(record: bytes) -> Any:
    """Parse one record into a `TraceEvent`. Raises: DecodeError."""
    return _event_class().FromString(record)


def unknown_fields(event: Message, size: int) -> list[str]:
    """Return the unknown fields of an event read from `size` bytes, as 'Message.number'."""
    copy = type(event)()
    copy.CopyFrom(event)
    copy.DiscardUnknownFields()
    return [] if copy.ByteSize() == size else sorted(set(_unknown_fields(event)))


def _unknown_fields(message: Message) -> Iterator[str]:
    for field in UnknownFieldSet(message):  # type: ignore[attr-defined]
        yield f"{message.DESCRIPTOR.name}.{field.field_number}"
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for part in value if descriptor.is_repeated else [value]:
                yield from _unknown_fields(part)


def split_records(parts: Iterable[bytes], limit: int = MAX_LINE) -> Iterator[bytes]:
    """Yield the records of a stream that comes in parts of any size. A record of more than `limit`
    bytes is not held in memory, and is yielded as a `LongLine`.

    Raises: StreamBroken if the stream ends inside a record or a length is impossible.
    """
    buffer, dropped = bytearray(), 0
    for part in parts:
        buffer += part
        while (span := span_of(buffer)) is not None and span.stop <= len(buffer) + dropped:
            end = span.stop - dropped
            record = bytes(buffer[span.start : end])
            yield LongLine(record, len(span)) if len(span) > limit else record
            del buffer[:end]
            dropped = 0
        if span is not None and len(span) > limit and len(buffer) > KEPT:
            dropped += len(buffer) - KEPT
            del buffer[KEPT:]
    if buffer:
        raise StreamBroken(CUT_OFF, bytes(buffer))


def span_of(buffer: bytearray) -> range | None:
    """Return the byte range of the first record; null if its length is incomplete.

    Raises: StreamBroken if the length is impossible.
    """
    length = byte = end = 0
    while end == 0 or byte >= 0x80:
        if end == len(buffer):
            return None
        byte = buffer[end]
        length |= (byte & 0x7F) << (7 * end)
        end += 1
        if length > _LONGEST_RECORD or end > _LONGEST_LENGTH:
            why = f"{IMPOSSIBLE_LENGTH}; the rest of the file is not read"
            raise StreamBroken(why, bytes(buffer))
    return range(end, end + length)
