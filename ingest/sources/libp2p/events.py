"""Events in a form that does not depend on the encoding, and the reasons to refuse one."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from base58 import b58encode

from vizpub.ingest.inputs.reader import InputRow, RecordRefused, RowKind


class EventType(IntEnum):
    """The type of an event; the numbers of `TraceEvent.type`."""

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
    SEND_RPC_COMPLETED = 13


KNOWN = frozenset(EventType)
SPELLINGS = {
    EventType.PUBLISH: ("publishMessage",),
    EventType.REJECT: ("rejectMessage",),
    EventType.DUPLICATE: ("duplicateMessage",),
    EventType.DELIVER: ("deliverMessage",),
    EventType.STREAM_OPENED: ("onNewOutboundStream", "addPeer"),
    EventType.STREAM_CLOSED: ("onClosedOutboundStream", "removePeer"),
    EventType.RECV_RPC: ("recvRPC",),
    EventType.SEND_RPC: ("sendRPC",),
    EventType.DROP_RPC: ("dropRPC",),
    EventType.JOIN: ("join",),
    EventType.LEAVE: ("leave",),
    EventType.GRAFT: ("graft",),
    EventType.PRUNE: ("prune",),
    EventType.SEND_RPC_COMPLETED: ("sendRPCCompleted",),
}
"""The key of each type's payload; the second one was written up to v0.15."""

RPCS = frozenset({EventType.RECV_RPC, EventType.SEND_RPC, EventType.DROP_RPC})
_MESSAGES = frozenset({EventType.PUBLISH, EventType.REJECT, EventType.DUPLICATE, EventType.DELIVER})
_NEEDED = {
    "message": _MESSAGES,
    "topic": frozenset(
        {EventType.PUBLISH, EventType.JOIN, EventType.LEAVE, EventType.GRAFT, EventType.PRUNE}
    ),
    "other": KNOWN - {EventType.PUBLISH, EventType.DELIVER, EventType.JOIN, EventType.LEAVE},
}
"""The event types that need each value."""


class ControlEntry(NamedTuple):
    """A control message: an entry of an RPC."""

    kind: str
    topic: str | None = None
    ids: int | None = None
    """Number of the messages or, in a PRUNE, of the peers that it names; null = unknown, or it is
    of a kind that names none."""
    messages: tuple[str, ...] = ()
    """The messages that a sent IWANT or IDONTWANT names."""
    is_first: bool = True
    """False for one that has further ids of the one before."""


class RpcEntries(NamedTuple):
    """The number of messages in an RPC, and its control entries."""

    messages: int = 0
    control: tuple[ControlEntry, ...] = ()


CONTROL = {
    "ihave": "messageIDs",
    "iwant": "messageIDs",
    "graft": None,
    "prune": "peers",
    "idontwant": "messageIDs",
}
"""The kinds of entries in an RPC's control block, and their fields with ids."""
KINDS = ("subscribe", "unsubscribe", *CONTROL)
"""All kinds of control entries."""
REQUESTS = ("iwant", "idontwant")
"""The kinds by which a peer says which messages it wants, and which it does not."""


def control_entries(
    subscriptions: Iterable[Mapping[str, Any]],
    control: Mapping[str, Iterable[Mapping[str, Any]]],
    way: int | None,
) -> tuple[ControlEntry, ...]:
    """Return the control entries of an RPC from its fields and the type of its event."""
    named = REQUESTS if way == EventType.SEND_RPC else ()
    return (
        *(
            ControlEntry("subscribe" if entry.get("subscribe") else "unsubscribe", _topic(entry))
            for entry in subscriptions
        ),
        *(
            ControlEntry(
                kind,
                _topic(entry),
                None if ids is None else len(entry.get(ids) or ()),
                tuple(map(_message_text, entry.get(ids or "") or ())) if kind in named else (),
            )
            for kind, ids in CONTROL.items()
            for entry in control.get(kind) or ()
        ),
    )


def _topic(entry: Mapping[str, Any]) -> str | None:
    """Return the topic of an entry of JSON or protobuf; null if it has none."""
    topic = entry.get("topic") or None
    return topic.decode() if isinstance(topic, bytes) else topic


def _message_text(message: str | bytes | None) -> str:
    """Return the hex of an id in JSON or protobuf; '' if it is none."""
    if isinstance(message, bytes):
        return message.hex()
    return b64decode(message).hex() if message and _BASE64.fullmatch(message) else ""


class TraceEvent(msgspec.Struct, array_like=True, gc=False):
    """An event of a trace. Peers have their id in the form that libp2p shows people ('12D3KooW…'),
    messages the lower-case hex of theirs.
    """

    type: int
    peer: str
    """The peer that logged it."""
    time: int
    """Nanoseconds of Unix time."""
    other: str | None = None
    """The other peer, for example the sender of a message."""
    topic: str | None = None
    message: str | None = None
    reason: str | None = None
    proto: str | None = None
    entries: RpcEntries | None = None
    """What an RPC has."""
    write_ns: int | None = None
    """How long the write of an RPC to its stream took."""
    bytes: int | None = None
    """The size of the message."""


# Standard, padded, and canonical (the bits that pad are 0), so that one id has one text.
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*"
    r"(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)"
)
_MULTIHASH = re.compile(rb"[\x80-\xff]{0,8}[\x00-\x7f]([\x01-\x7f])(.+)", re.DOTALL)
"""The code of a hash, the size of the digest, and the digest; what peers are named by."""
CONTROL_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f]")
_KEYS = {
    "peer": "peerID",
    "time": "timestamp",
    "message": "messageID",
    "other": "the other peer's id",
    "write_ns": "writeDurationNanos",
}


def make_event(values: Mapping[str, Any]) -> TraceEvent | None:
    """Create the event with these values, by the fields of TraceEvent; ids are base64.

    Return null for an unknown type, whose writer may name peers in other ways.

    Raises: RecordRefused.
    """
    _check_number(values, "type")
    if values["type"] not in KNOWN:
        return None
    _check_present(values, "peer")
    _check_number(values, "time")
    for name, types in _NEEDED.items():
        if values["type"] in types:
            _check_present(values, name)
    if values["type"] == EventType.SEND_RPC_COMPLETED:
        _check_number(values, "write_ns")
    for name in ("peer", "other", "message"):
        if (value := values.get(name)) is not None and not _BASE64.fullmatch(value):
            raise RecordRefused(f"not base64: {_KEYS[name]}")
    entries: RpcEntries = values.get("entries") or RpcEntries()
    topics = values.get("topic"), *(entry.topic for entry in entries.control)
    if any(CONTROL_CHARACTER.search(topic) for topic in topics if topic):
        raise RecordRefused("control character in topic")
    event = TraceEvent(**values)
    event.peer = _peer_text(event.peer, "peer")
    event.other = event.other and _peer_text(event.other, "other")
    event.message = event.message and b64decode(event.message).hex()
    return event


@lru_cache(1 << 16)
def _peer_text(peer: str, name: str) -> str:
    """Convert a peer's id from base64 to base58btc. Raises: RecordRefused for base64 that is no
    id.
    """
    match = _MULTIHASH.fullmatch(content := b64decode(peer))
    if not match or match[1][0] != len(match[2]):
        raise RecordRefused(f"not the id of a peer: {_KEYS[name]}")
    text: str = b58encode(content).decode()
    return text


def _check_number(values: Mapping[str, Any], name: str) -> None:
    _check_present(values, name)
    if values[name] < 0:
        raise RecordRefused(f"negative {_KEYS.get(name, name)}")


def _check_present(values: Mapping[str, Any], name: str) -> None:
    if values.get(name) is None:
        raise RecordRefused(f"missing key: {_KEYS.get(name, name)}")


_OF_TWO_PEERS = frozenset({EventType.STREAM_OPENED, EventType.STREAM_CLOSED})
"""Types of events that also go to the fold of the other peer."""


def rows_of_event(
    event: TraceEvent, file: int, line: int, rank: int = 0, rank_of_other: int = 1
) -> Iterator[InputRow]:
    """Yield the row of an event for its peer, and that of a stream also for the other peer, by
    default after all own events of the same time.
    """
    record, place = msgspec.msgpack.encode(event), (file, line, None)
    yield InputRow(RowKind.RECORD, event.peer, event.time, rank, *place, record)
    if event.type in _OF_TWO_PEERS and event.other != event.peer:
        yield InputRow(RowKind.FURTHER, event.other, event.time, rank_of_other, *place, record)
