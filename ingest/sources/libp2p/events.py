"""Events in a form that does not depend on the encoding, and the reasons to refuse one."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from base58 import b58encode


class Type(IntEnum):
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


KNOWN = frozenset(Type)
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

RPCS = frozenset({Type.RECV_RPC, Type.SEND_RPC, Type.DROP_RPC})
_MESSAGES = frozenset({Type.PUBLISH, Type.REJECT, Type.DUPLICATE, Type.DELIVER})
_NEEDED = {
    "message": _MESSAGES,
    "topic": frozenset({Type.PUBLISH, Type.JOIN, Type.LEAVE, Type.GRAFT, Type.PRUNE}),
    "other": KNOWN - {Type.PUBLISH, Type.DELIVER, Type.JOIN, Type.LEAVE},
}
"""The event types that need each value."""


class Counts(NamedTuple):
    """The entries of an RPC by their kind, and how many message ids some of them name."""

    messages: int = 0
    subscription: int = 0
    ihave: int = 0
    iwant: int = 0
    graft: int = 0
    prune: int = 0
    idontwant: int = 0
    ihave_ids: int = 0
    iwant_ids: int = 0
    idontwant_ids: int = 0

    @property
    def control(self) -> int:
        """The control entries."""
        return sum(self[1:7])


CONTROL = ("ihave", "iwant", "graft", "prune", "idontwant")
"""The entries of an RPC's control block."""
IDS = ("ihave", "iwant", "idontwant")
"""Those that name messages."""


class Event(msgspec.Struct, array_like=True, gc=False):
    """One event. Peers go by their id as libp2p writes it for people ('12D3KooW…'), messages by the
    lower-case hex of theirs.
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
    counts: Counts | None = None
    """Of an RPC."""


class Refused(Exception):
    """Why a record is not a valid event. Never leaves the source."""


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
}


def judged(values: Mapping[str, Any]) -> Event | None:
    """The event with these values, by the names of Event; ids are base64. Null for an event of an
    unknown type: who writes one may name peers in other ways.

    Raises: Refused.
    """
    _check_number(values, "type")
    if values["type"] not in KNOWN:
        return None
    _need(values, "peer")
    _check_number(values, "time")
    for name, types in _NEEDED.items():
        if values["type"] in types:
            _need(values, name)
    for name in ("peer", "other", "message"):
        if (value := values.get(name)) is not None and not _BASE64.fullmatch(value):
            raise Refused(f"not base64: {_KEYS[name]}")
    if CONTROL_CHARACTER.search(values.get("topic") or ""):
        raise Refused("control character in topic")
    event = Event(**values)
    event.peer = _written(event.peer, "peer")
    event.other = event.other and _written(event.other, "other")
    event.message = event.message and b64decode(event.message).hex()
    return event


@lru_cache(1 << 16)
def _written(peer: str, name: str) -> str:
    """Base64 of a peer's id → base58btc. Raises: Refused, as other texts may be base64, too."""
    found = _MULTIHASH.fullmatch(content := b64decode(peer))
    if not found or found[1][0] != len(found[2]):
        raise Refused(f"not the id of a peer: {_KEYS[name]}")
    written: str = b58encode(content).decode()
    return written


def _check_number(values: Mapping[str, Any], name: str) -> None:
    _need(values, name)
    if values[name] < 0:
        raise Refused(f"negative {_KEYS.get(name, name)}")


def _need(values: Mapping[str, Any], name: str) -> None:
    if values.get(name) is None:
        raise Refused(f"missing key: {_KEYS.get(name, name)}")
