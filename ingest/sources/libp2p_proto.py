"""Streams of protobuf as go-libp2p-pubsub's `NewPBTracer` writes them.

A file is a run of records, each a length (varint) and a `TraceEvent` (trace.proto of
go-libp2p-pubsub, proto2). The classes of the messages are built from the table below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

# Message: fields in order of their numbers, `name:type`, `-` for a number that is not used,
# `*` for repeated. Topics and the like are read as bytes: their UTF-8 is checked later.
_SCHEMA = {
    "TraceEvent": "type:int32 peerID:bytes timestamp:int64 publishMessage:Message"
    " rejectMessage:Reject duplicateMessage:Duplicate deliverMessage:Message"
    " onNewOutboundStream:Stream onClosedOutboundStream:Stream recvRPC:RPC sendRPC:RPC"
    " dropRPC:RPC join:Join leave:Leave graft:Mesh prune:Mesh",
    "Message": "messageID:bytes topic:bytes other:bytes",
    "Reject": "messageID:bytes other:bytes reason:bytes topic:bytes",
    "Duplicate": "messageID:bytes other:bytes topic:bytes",
    "Stream": "other:bytes proto:bytes",
    "RPC": "other:bytes meta:Meta",
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


class StreamBroken(Exception):
    """The rest of a stream cannot be read; says why. Stays inside the source."""


@cache
def event_class() -> type[Message]:
    """The class of `TraceEvent`; its payloads are named as the JSON names them, and the
    peer a payload tells of is `other` in each.
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
    """One record → `TraceEvent`. Raises: DecodeError."""
    return event_class().FromString(record)


def unknown_fields(event: Message, size: int) -> list[str]:
    """Fields of an event read from `size` bytes that the schema lacks, as 'Message.number'."""
    known = type(event)()
    known.CopyFrom(event)
    known.DiscardUnknownFields()
    return [] if known.ByteSize() == size else sorted(set(_unknown_fields(event)))


def _unknown_fields(message: Message) -> Iterator[str]:
    for field in UnknownFieldSet(message):  # type: ignore[attr-defined]
        yield f"{message.DESCRIPTOR.name}.{field.field_number}"
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for part in value if descriptor.is_repeated else [value]:
                yield from _unknown_fields(part)


def records(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The records of a stream that comes in parts of any size.

    Raises: StreamBroken where the stream ends inside a record or a length is impossible.
    """
    buffer = bytearray()
    for part in parts:
        buffer += part
        yield from _taken(buffer)
    if buffer:
        raise StreamBroken("record is cut off")


def _taken(buffer: bytearray) -> Iterator[bytes]:
    """Takes the whole records off the front of the buffer."""
    start = 0
    while (span := _span(buffer, start)) is not None and span.stop <= len(buffer):
        yield bytes(buffer[span.start : span.stop])
        start = span.stop
    del buffer[:start]


def _span(buffer: bytearray, start: int) -> range | None:
    """Where the content of the record at `start` lies; null = its length is cut off."""
    length = byte = 0
    end = start
    while end == start or byte >= 0x80:
        if end == len(buffer):
            return None
        byte = buffer[end]
        length |= (byte & 0x7F) << (7 * (end - start))
        end += 1
        if length > _LONGEST_RECORD or end - start > _LONGEST_LENGTH:
            raise StreamBroken("impossible length of a record; the rest of the file is not read")
    return range(end, end + length)
