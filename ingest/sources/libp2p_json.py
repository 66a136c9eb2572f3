"""Lines of JSON as go-libp2p-pubsub's `NewJSONTracer` writes them → records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from ingest.reader import Line
from ingest.report_fields import DEEPEST, INT64, SURROGATE
from ingest.sources.base import InputFile
from ingest.sources.libp2p_events import COLUMNS, CONTROL, IDS, RPCS, SPELLINGS
from ingest.sources.text import decoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PAYLOADS = {int(number): names for number, names in SPELLINGS.items()}
_OBJECTS, _TEXTS = "objects", "texts"
"""Lists of them."""
_EITHER = "object or objects"
"""A payload is called as the entries of an RPC are."""
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("type", "timestamp"), int),
    **dict.fromkeys(
        ("peerID", "messageID", "topic", "receivedFrom", "sendTo", "proto", "reason"), str
    ),
    "subscribe": bool,
    **dict.fromkeys([name for names in SPELLINGS.values() for name in names], dict),
    **dict.fromkeys(("meta", "control"), dict),
    **dict.fromkeys(("messages", *CONTROL), _OBJECTS),
    **dict.fromkeys(("graft", "prune"), _EITHER),
    **dict.fromkeys(("messageIDs", "peers"), _TEXTS),
}
"""What a field may be, wherever it stands; null is as good as left out."""
_ITEMS = {_OBJECTS: dict, _TEXTS: str}
_KEY = re.compile(rb'"[ \t\r]*:')
BLANK = ""
"""The fault of a line that is no record."""


def json_lines(
    spark: SparkSession, files: Sequence[InputFile], max_line: int | None = None
) -> DataFrame:
    """A record for each line (libp2p_events.RECORDS), with the fault BLANK for blank ones."""
    return decoded(spark, files, _decode, COLUMNS, max_line)


def _decode(line: Line) -> dict[str, Any]:
    if line.fault:
        return {"fault": line.fault}
    if not line.text.strip():
        return {"fault": BLANK}
    try:
        return _record(_event(line.text))
    except RecursionError:
        return {"fault": f"nested more than {DEEPEST} deep"}
    except _Refused as refused:
        return {"fault": str(refused)}


class _Refused(Exception):
    """The line is no event; says why."""


class _Seen:
    """What an event was found to hold: fields of a wrong type, unknown ones, how many in all."""

    def __init__(self) -> None:
        self.mistyped: set[str] = set()
        self.unknown: set[str] = set()
        self.fields = 0

    def look(self, value: Any, depth: int = 0) -> None:
        """At a JSON value and all below it. Raises: RecursionError."""
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


def _event(text: bytes) -> tuple[dict[str, Any], _Seen]:
    """The one object of a line. Raises: _Refused, RecursionError."""
    try:
        event = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise _Refused(_why(text)) from error
    if not isinstance(event, dict):
        raise _Refused(_NO_OBJECT)
    seen = _Seen()
    seen.look(event)
    # Of a key that stands twice the last value would win.
    if len(_KEY.findall(text)) != seen.fields:
        try:
            json.loads(text, object_pairs_hook=_without_repeats)
        except ValueError as error:
            raise _Refused(_NO_OBJECT) from error
    return event, seen


_NO_OBJECT = "not one JSON object"


def _why(text: bytes) -> str:
    """Why a line was not decoded, by a decoder that takes more."""
    try:
        halves = SURROGATE.search(
            json.dumps(json.loads(text, parse_constant=_no), ensure_ascii=False)
        )
    except ValueError:
        return _NO_OBJECT
    return "half of a surrogate pair" if halves else "a number out of range"


def _no(constant: str) -> NoReturn:
    raise ValueError(constant)


def _without_repeats(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")


def _record(found: tuple[dict[str, Any], _Seen]) -> dict[str, Any]:
    event, seen = found
    if seen.mistyped:
        raise _Refused(f"wrong type: {', '.join(sorted(seen.mistyped))}")
    number = event.get("type")
    payload = _payload(event, number)
    return {
        "unknown": sorted(seen.unknown) or None,
        "type": number,
        "peer": event.get("peerID"),
        "ts_ns": event.get("timestamp"),
        "other": _first(payload, ("receivedFrom", "sendTo", "peerID")),
        "topic": payload.get("topic"),
        "message": payload.get("messageID"),
        "reason": payload.get("reason"),
        "proto": payload.get("proto"),
        **(_counts(payload.get("meta") or {}) if number in RPCS else {}),
    }


def _payload(event: Mapping[str, Any], number: int | None) -> Mapping[str, Any]:
    """The payload that belongs to the event's type; others beside it mean nothing."""
    for name in _PAYLOADS.get(-1 if number is None else number, ()):
        if event.get(name) is not None:
            payload: Mapping[str, Any] = _told(event, name, {})
            return payload
    return {}


def _told(values: Mapping[str, Any], name: str, nothing: Any) -> Any:
    """A value of the type of `nothing`, or that. Raises: _Refused for one of another."""
    if (value := values.get(name)) is None:
        return nothing
    if type(value) is not type(nothing):
        raise _Refused(f"wrong type: {name}")
    return value


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((v for name in names if (v := values.get(name)) is not None), None)


def _counts(meta: Mapping[str, Any]) -> dict[str, int]:
    control = meta.get("control") or {}
    entries = {name: _told(control, name, []) for name in CONTROL if name != "subscription"}
    counts = {name: len(found) for name, found in entries.items()}
    for name in IDS:
        found = entries[name.removesuffix("_ids")]
        counts[name] = sum(len(entry.get("messageIDs") or ()) for entry in found if entry)
    counts |= {name: len(meta.get(name) or ()) for name in ("messages", "subscription")}
    return counts
