"""Lines of JSON written by go-libp2p-pubsub's `NewJSONTracer` → values of events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from vizpub.ingest.inputs.reader import RecordRefused
from vizpub.ingest.sources.libp2p.events import (
    CONTROL,
    RPCS,
    SPELLINGS,
    RpcEntries,
    control_entries,
)
from vizpub.reports.fields import DEEPEST, INT64, SURROGATE
from vizpub.reports.files import strict_json

_PAYLOADS: Mapping[int | None, tuple[str, ...]] = dict(SPELLINGS.items())
_OBJECTS, _TEXTS = "objects", "texts"
"""Kinds of fields that are lists of objects or of texts."""
_EITHER = "object or objects"
"""The kind of names that both a payload and a list of an RPC have."""
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("type", "timestamp", "writeDurationNanos"), int),
    **dict.fromkeys(
        ("peerID", "messageID", "topic", "receivedFrom", "sendTo", "proto", "reason"), str
    ),
    "subscribe": bool,
    **dict.fromkeys([name for names in SPELLINGS.values() for name in names], dict),
    **dict.fromkeys(("meta", "control"), dict),
    **dict.fromkeys(("messages", "subscription", *CONTROL), _OBJECTS),
    **dict.fromkeys(("graft", "prune"), _EITHER),
    **dict.fromkeys(("messageIDs", "peers"), _TEXTS),
}
"""The type of each field, wherever it occurs; null is absent."""
_ITEMS = {_OBJECTS: dict, _TEXTS: str}
_KEY = re.compile(rb'"[ \t\r]*:')


def is_event(line: bytes) -> bool:
    """Return True for a line that looks like an event."""
    with suppress(ValueError, RecursionError):
        event = json.loads(line)
        return isinstance(event, dict) and {"type", "peerID", "timestamp"} <= event.keys()
    return False


def decode(line: bytes) -> tuple[dict[str, Any], set[str]]:
    """Return the values of a line for `events.make_event`, and the names of its unknown fields.

    Raises: RecordRefused.
    """
    try:
        event, seen = _decode_event(line)
    except RecursionError as error:
        raise RecordRefused(f"nested more than {DEEPEST} deep") from error
    if seen.mistyped:
        raise RecordRefused(f"wrong type: {', '.join(sorted(seen.mistyped))}")
    number = event.get("type")
    payload = _payload_of(event, number)
    remote_peers = (payload.get(name) for name in ("receivedFrom", "sendTo", "peerID"))
    return {
        "type": number,
        "peer": event.get("peerID"),
        "time": event.get("timestamp"),
        "other": next((peer for peer in remote_peers if peer is not None), None),
        "topic": payload.get("topic"),
        "message": payload.get("messageID"),
        "reason": payload.get("reason"),
        "proto": payload.get("proto"),
        "entries": _entries(payload.get("meta") or {}, number) if number in RPCS else None,
        "write_ns": payload.get("writeDurationNanos"),
    }, seen.unknown


class _FieldInspection:
    """Inspection of an event's fields: those of a wrong type, unknown ones, and their number."""

    def __init__(self) -> None:
        self.mistyped: set[str] = set()
        self.unknown: set[str] = set()
        self.fields = 0

    def look(self, value: Any, depth: int = 0) -> None:
        """Inspect a JSON value and all below it. Raises: RecursionError."""
        if depth > DEEPEST:
            raise RecursionError
        if isinstance(value, list):
            for item in value:
                self.look(item, depth + 1)
        elif isinstance(value, dict):
            self.fields += len(value)
            for name, item in value.items():
                kind = _KINDS.get(name)
                if kind is None:
                    self.unknown.add(name)
                elif item is not None and not _is_of(kind, item):
                    self.mistyped.add(name)
                if type(item) in (dict, list):
                    self.look(item, depth + 1)


def _is_of(kind: Any, value: Any) -> bool:
    if kind is int:
        return type(value) is int and -INT64 - 1 <= value <= INT64
    if kind is _EITHER:
        return _is_of(dict, value) or _is_of(_OBJECTS, value)
    if item := _ITEMS.get(kind):
        return type(value) is list and all(v is None or type(v) is item for v in value)
    return type(value) is kind


def _decode_event(text: bytes) -> tuple[dict[str, Any], _FieldInspection]:
    """Decode the one object of a line, and inspect it. Raises: RecordRefused, RecursionError."""
    try:
        event = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise RecordRefused(_why_undecoded(text)) from error
    if not isinstance(event, dict):
        raise RecordRefused(_NO_OBJECT)
    seen = _FieldInspection()
    seen.look(event)
    # The decoder would silently keep the last of several equal keys.
    if len(_KEY.findall(text)) != seen.fields:
        try:
            strict_json(text)
        except ValueError as error:
            raise RecordRefused(str(error)) from error
    return event, seen


_NO_OBJECT = "not one JSON object"


def _why_undecoded(text: bytes) -> str:
    """Return the reason why a line was not decoded, which a more tolerant decoder shows."""
    try:
        halves = SURROGATE.search(json.dumps(strict_json(text), ensure_ascii=False))
    except ValueError:
        return _NO_OBJECT
    return "half of a surrogate pair" if halves else "a number out of range"


def _payload_of(event: Mapping[str, Any], number: int | None) -> Mapping[str, Any]:
    """Return the payload that belongs to the event's type; other payloads are ignored."""
    for name in _PAYLOADS.get(number, ()):
        if event.get(name) is not None:
            payload: Mapping[str, Any] = _value_of_type(event, name, {})
            return payload
    return {}


def _value_of_type(values: Mapping[str, Any], name: str, nothing: Any) -> Any:
    """Return a value of the type of `nothing`, or `nothing` if there is none.

    Raises: RecordRefused for a value of another type.
    """
    if (value := values.get(name)) is None:
        return nothing
    if type(value) is not type(nothing):
        raise RecordRefused(f"wrong type: {name}")
    return value


def _entries(meta: Mapping[str, Any], way: int | None) -> RpcEntries:
    control = meta.get("control") or {}
    blocks = {kind: _without_nulls(_value_of_type(control, kind, [])) for kind in CONTROL}
    entries = control_entries(_without_nulls(meta.get("subscription") or ()), blocks, way)
    return RpcEntries(len(meta.get("messages") or ()), entries)


def _without_nulls(items: Iterable[Any]) -> list[Any]:
    return [item or {} for item in items]
