"""Lines of the gossipsub interoperability tester's logs → events.

A node of libp2p/test-plans `gossipsub-interop` writes a line of JSON for each message and control
entry that it sends or receives, beside others. The first one names the peer; what the rest of the
file reports is of it. Its own publications and subscriptions are not among the lines: it has
published what it sends and never received, and others log its subscriptions.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from vizpub.ingest.inputs.reader import RecordRefused, parse_object
from vizpub.ingest.sources.libp2p.events import (
    CONTROL_CHARACTER,
    REQUESTS,
    ControlEntry,
    EventType,
    RpcEntries,
    TraceEvent,
)
from vizpub.ingest.tasks.fold import count_name
from vizpub.reports.fields import INT64

NO_PEER_YET = "before the line that names the peer"

_WAYS = {"Sent": ("to", EventType.SEND_RPC), "Received": ("from", EventType.RECV_RPC)}
_ENTRIES = ("Message", "Subscription", "Ihave", "Iwant", "Graft", "Prune", "Idontwant")
_MESHES = {"Graft": EventType.GRAFT, "Prune": EventType.PRUNE}
_OF_LOGGER = frozenset({"sent", "received"})
"""Lines about whole RPCs, with what the others have of their entries."""
_ID = re.compile(r'[^\s,"\[\]]+')
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def is_line(line: bytes) -> bool:
    """Return True for a line that looks like one of such a log."""
    with suppress(ValueError, RecursionError):
        values = json.loads(line)
        if isinstance(values, dict) and {"time", "msg"} <= values.keys():
            direction, _, entry = str(values["msg"]).partition(" ")
            if direction not in _WAYS or entry not in _ENTRIES:
                return direction in _OF_LOGGER or (direction == "PeerID" and "id" in values)
            return ("id" if entry == "Message" else _WAYS[direction][0]) in values
    return False


class NodeLog:
    """A log of one node, which is read line by line."""

    def __init__(self) -> None:
        self.peer: str | None = None
        """The peer that wrote it; null before the line that names it."""
        self._known: set[str] = set()
        """Messages that the peer has sent or received."""
        self.unknown: Counter[str] = Counter()
        """Lines of unknown kinds, by kind."""
        self.is_partial = True
        """True if the log reports received messages alone: no more is demanded of a node."""

    def events(self, line: bytes) -> Iterator[TraceEvent]:
        """Yield the events of a line; a subscription is the other peer's. Raises: RecordRefused."""
        values = parse_object(line)
        text = _text(values, "msg")
        if text == "PeerID":
            name = _text(values, "id")
            if self.peer not in (None, name):
                raise RecordRefused("a second peer in one file")
            self.peer = name
            time = parse_time(_text(values, "time"))
            yield TraceEvent(EventType.SEND_RPC, name, time, entries=RpcEntries())
        elif text not in _OF_LOGGER:
            yield from self._entry(values, text)

    def _entry(self, values: Mapping[str, Any], text: str) -> Iterator[TraceEvent]:
        direction, _, entry = text.partition(" ")
        if direction not in _WAYS or entry not in _ENTRIES:
            count_name(self.unknown, f"lines '{text[:50]}'")
            return
        if self.peer is None:
            raise RecordRefused(f"{NO_PEER_YET} (PeerID)")
        end, rpc = _WAYS[direction]
        self.is_partial &= text == "Received Message"
        is_needed = text != "Received Message"
        time, remote_peer = (
            parse_time(_text(values, "time")),
            _text(values, end) if is_needed else _optional_text(values, end),
        )
        topic = _optional_text(values, "topic")
        kind = "subscribe" if entry == "Subscription" else entry.lower()
        ids = _ids_in(values.get("ids"))
        is_request = direction == "Sent" and kind in REQUESTS
        control = ControlEntry(
            kind, topic, None if ids is None else len(ids), ids or () if is_request else ()
        )
        entries = RpcEntries(1) if entry == "Message" else RpcEntries(control=(control,))
        events = [TraceEvent(rpc, self.peer, time, remote_peer, entries=entries)]
        if entry in _MESHES:
            topic = _text(values, "topic")
            events.append(TraceEvent(_MESHES[entry], self.peer, time, remote_peer, topic))
        elif text == "Received Subscription":
            events.append(
                TraceEvent(EventType.JOIN, self.peer, time, remote_peer, _text(values, "topic"))
            )
        elif entry == "Message":
            events += self._message(
                _text(values, "id"), time, remote_peer, topic, is_sent=direction == "Sent"
            )
        yield from events

    def _message(
        self, message: str, time: int, remote_peer: str | None, topic: str | None, *, is_sent: bool
    ) -> Iterator[TraceEvent]:
        assert self.peer is not None
        is_new = message not in self._known
        self._known.add(message)
        if not is_sent:
            kind = EventType.DELIVER if is_new else EventType.DUPLICATE
            yield TraceEvent(kind, self.peer, time, remote_peer, topic, message)
        elif is_new:
            yield TraceEvent(EventType.PUBLISH, self.peer, time, None, topic, message)


def _ids_in(ids: object) -> tuple[str, ...] | None:
    """Return the message ids in a list, or in the text of one; null = not given."""
    if isinstance(ids, str):
        return tuple(_ID.findall(ids))
    return tuple(map(str, ids)) if isinstance(ids, list) else None


def _optional_text(values: Mapping[str, Any], name: str) -> str | None:
    return None if values.get(name) is None else _text(values, name)


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if value is None:
        raise RecordRefused(f"missing key: {name}")
    if not isinstance(value, str) or not value:
        raise RecordRefused(f"wrong type: {name}")
    if CONTROL_CHARACTER.search(value):
        raise RecordRefused(f"control character in {name}")
    return value


def parse_time(text: str) -> int:
    """Return a time of RFC 3339 in nanoseconds of Unix time. Raises: RecordRefused."""
    match = _TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        seconds = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError) as error:
        raise RecordRefused("time is not RFC 3339") from error
    if seconds < 0:
        raise RecordRefused("negative time")
    if seconds >= INT64 // 10**9:
        raise RecordRefused("time too large")
    return int(seconds) * 10**9 + int((match[2] or "").ljust(9, "0"))
