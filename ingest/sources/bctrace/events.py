"""Lines of a bctrace → events like those of a tracer of go-libp2p-pubsub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from vizpub.ingest.inputs.reader import RecordRefused
from vizpub.ingest.sources.bctrace.header import NAME, Header
from vizpub.ingest.sources.libp2p.events import (
    REQUESTS,
    ControlEntry,
    EventType,
    RpcEntries,
    TraceEvent,
)
from vizpub.ingest.sources.libp2p.facts import TraceTally
from vizpub.ingest.tasks.fold import count_name
from vizpub.reports.fields import INT32, INT64

UNLISTED = "peers that the header does not list"
ETHP2P = "ethp2p"
"""The protocol of its own sessions."""

_PUBLISHER = 0
"""The role of a session's peer that publishes."""
_NO_TYPE = -1
"""The type of transfers, which are folded apart."""
_CONTROL = {
    EventType.SEND_RPC: {"hs": "ihave", "ws": "iwant", "ns": "idontwant"},
    EventType.RECV_RPC: {"hr": "ihave", "wr": "iwant", "nr": "idontwant"},
}
"""The kind of control entries by the way they went and their code."""
_FIELDS: Mapping[str, tuple[EventType, tuple[str, ...]]] = {
    "pa": (EventType.STREAM_OPENED, ("other", "proto")),
    "pg": (EventType.STREAM_CLOSED, ("other",)),
    "tj": (EventType.JOIN, ("topic",)),
    "tl": (EventType.LEAVE, ("topic",)),
    "mg": (EventType.GRAFT, ("other", "topic")),
    "mp": (EventType.PRUNE, ("other", "topic")),
    "pb": (EventType.PUBLISH, ("topic", "message")),
    "dl": (EventType.DELIVER, ("other", "topic", "message")),
    "du": (EventType.DUPLICATE, ("other", "topic", "message")),
    "rj": (EventType.REJECT, ("other", "topic", "message", "reason")),
    "ms": (EventType.SEND_RPC, ("other", "topic", "message")),
    **{
        code: (way, ("other", "topic", "message"))
        for way, codes in _CONTROL.items()
        for code in codes
    },
    # ethp2p: peers that shook hands or (un)subscribed, and sessions started or decoded.
    "ph": (EventType.STREAM_OPENED, ("other",)),
    "ps": (EventType.JOIN, ("other", "topic")),
    "pu": (EventType.LEAVE, ("other", "topic")),
    "ss": (EventType.PUBLISH, ("topic", "message")),
    "sd": (EventType.DELIVER, ("topic", "message")),
}
"""The type of an event by its code, and what its fields from the fourth on are."""
_NOT_READ = frozenset(("va", "ud", "sx", "ce", "ru", "po", "sp"))
"""Codes of validation, and of a session's progress."""
_VERDICTS = (
    *("parts_useful", "parts_redundant", "parts_late", "parts_late"),
    *("parts_invalid", "parts_pending"),
)
"""The gauge of a part by the receiver's verdict: accepted, redundant, decoding (it came while the
message was decoded), surplus (after that), invalid, pending.
"""
_BYTES_SENT = "part_bytes_sent"
GAUGES = (*dict.fromkeys(_VERDICTS), _BYTES_SENT)
_OF_PARTS = {"cr": "its verdict is not one of 0 to 5", "cs": "its bytes are no number"}
"""Codes of parts that a peer receives and sends, and why one is refused for its last field."""
PARTS, SENT, CONTROL = "parts of messages", "messages sent", "control messages"
"""What only some traces tell; their events are counted by these names."""
MESSAGES, MESSAGE_BYTES, UNSIZED = "messages", "message_bytes", "unsized"
"""The counts of messages sent, of their bytes, and of those whose size is unknown."""
_MAY_LACK = {
    "other": {"dl", "du", "rj"},
    "topic": _FIELDS.keys() - {"tj", "tl", "ps", "pu"},
    "reason": {"rj"},
    "proto": {"pa"},
}
"""The codes of events without which a field is valid."""


class Transfer(TraceEvent, array_like=True, gc=False):
    """A message that the peer sent, or a part of one that it sent or received, as what it adds to
    counts.
    """

    counts: dict[str, int] = msgspec.field(default_factory=dict)


def read_events(text: bytes, header: Header, tally: TraceTally) -> Iterator[TraceEvent]:
    """Yield the events of a line; a footer has none. Raises: RecordRefused."""
    try:
        event = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordRefused("not JSON") from error
    if isinstance(event, dict) and event.get("end") is True:
        return
    if not isinstance(event, list) or len(event) < 3 or not isinstance(event[2], str):
        raise RecordRefused("not an event: [time, node, code, …]")
    code, is_other_role = event[2], event[2] == "ss" and event[5:6] != [_PUBLISHER]
    if code in _OF_PARTS or (code in _FIELDS and not is_other_role):
        yield from _make_events(event, header, tally)
    elif code not in _FIELDS and code not in _NOT_READ:
        count_name(tally.unknown, f"events '{code[:50]}'")


def _make_events(event: Sequence[Any], header: Header, tally: TraceTally) -> Iterator[TraceEvent]:
    """Yield an event, and the subscriptions in a handshake. Raises: RecordRefused."""
    time_us, node, code = event[:3]
    if type(time_us) is not int or not 0 <= header.t0 + 1000 * time_us <= INT64:
        raise RecordRefused("its time is not a number of µs, or is too far from t0")
    if type(node) is not int or not 0 <= node < len(header.nodes):
        raise RecordRefused("no node of this number")
    peer, time = header.nodes[node], header.t0 + 1000 * time_us
    if code in _OF_PARTS:
        yield _read_part(event, peer, time)
        count_name(tally.tables, PARTS)
        return
    kind, names = _FIELDS[code]
    values = dict(zip(names, event[3:], strict=False))
    read: dict[str, Any] = {
        name: _read_field(name, code, values.get(name), header, tally) for name in names
    }
    after = event[3 + len(names)] if len(event) > 3 + len(names) else None
    if code in ("ss", "sd", "ph"):
        read["proto"] = ETHP2P
    if code in ("pb", "ms"):
        read["bytes"] = _read_size(after)
    if code == "ms":
        yield _count_message(Transfer(_NO_TYPE, peer, time, **read), header, tally)
        return
    if of_control := _CONTROL.get(kind):
        read["entries"] = _read_entry(of_control[code], kind, read, after)
        count_name(tally.tables, CONTROL)
    yield TraceEvent(kind, peer, time, **read)
    if code == "ph" and isinstance(topics := event[5:6] and event[5], list):
        for topic in topics:
            of_topic = _read_field("topic", "ps", topic, header, tally)
            yield TraceEvent(EventType.JOIN, peer, time, read["other"], of_topic)


def _read_size(size: Any) -> int | None:
    """Return the bytes of a message; null and 0 are unknown. Raises: RecordRefused."""
    if size is not None and (type(size) is not int or not 0 <= size <= INT64):
        raise RecordRefused(_OF_PARTS["cs"])
    return size or None


def _count_message(sent: Transfer, header: Header, tally: TraceTally) -> Transfer:
    """Count a message as sent, unless the trace does not know when it was."""
    if header.knows_sent:
        size = {UNSIZED: 1} if sent.bytes is None else {MESSAGE_BYTES: sent.bytes}
        sent.counts = {MESSAGES: 1, **size}
        count_name(tally.tables, SENT)
    return sent


def _read_entry(kind: str, way: EventType, read: Mapping[str, Any], ids: Any) -> RpcEntries:
    """Return the control entry of one of its ids, with the number of all. Raises:
    RecordRefused.
    """
    if type(ids) is not int or not 0 < ids <= INT32:
        raise RecordRefused("the number of ids of its entry is none")
    named = (read["message"],) if way == EventType.SEND_RPC and kind in REQUESTS else ()
    return RpcEntries(control=(ControlEntry(kind, read["topic"], ids, named),))


def _read_part(event: Sequence[Any], peer: str, time: int) -> Transfer:
    """Read a part of a message. Raises: RecordRefused."""
    code, value = event[2], event[6] if len(event) > 6 else None
    most = INT32 if code == "cs" else len(_VERDICTS) - 1
    if type(value) is not int or not 0 <= value <= most:
        raise RecordRefused(_OF_PARTS[code])
    counts = {_BYTES_SENT: value} if code == "cs" else {_VERDICTS[value]: 1}
    return Transfer(_NO_TYPE, peer, time, proto=ETHP2P, counts=counts)


def _read_field(name: str, code: str, value: Any, header: Header, tally: TraceTally) -> str | None:
    """Return the value of a field, and the node of a peer. Raises: RecordRefused."""
    may_lack = code in _MAY_LACK.get(name, ())
    if value is None and may_lack:
        return None
    if name == "other":
        if (peer := header.peers.get(value) if isinstance(value, str) else None) is None:
            if not may_lack:
                raise RecordRefused("the header lists no such peer")
            count_name(tally.unknown, UNLISTED)
        return peer
    for problem in NAME.problems(value, name):
        raise RecordRefused(problem)
    return str(value)
