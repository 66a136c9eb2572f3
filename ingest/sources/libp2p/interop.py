"""Lines of the gossipsub interoperability tester's logs → what each reports.

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

from vizpub.ingest.sources.json_lines import object_of
from vizpub.ingest.sources.libp2p.events import CONTROL_CHARACTER, Counts, Event, Refused, Type
from vizpub.ingest.tasks.fold import count

NO_PEER_YET = "before the line that names the peer"

_WAYS = {"Sent": ("to", Type.SEND_RPC), "Received": ("from", Type.RECV_RPC)}
_ENTRIES = ("Message", "Subscription", "Ihave", "Iwant", "Graft", "Prune", "Idontwant")
_MESHES = {"Graft": Type.GRAFT, "Prune": Type.PRUNE}
_OF_LOGGER = frozenset({"sent", "received"})
"""Lines about whole RPCs, with what the others have of their entries."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def is_line(line: bytes) -> bool:
    """Whether a line looks like one of such a log."""
    with suppress(ValueError, RecursionError):
        values = json.loads(line)
        if isinstance(values, dict) and {"time", "msg"} <= values.keys():
            way, _, entry = str(values["msg"]).partition(" ")
            if way not in _WAYS or entry not in _ENTRIES:
                return way in _OF_LOGGER or (way == "PeerID" and "id" in values)
            return ("id" if entry == "Message" else _WAYS[way][0]) in values
    return False


class Log:
    """The lines of one file, one after another."""

    def __init__(self) -> None:
        self._peer: str | None = None
        self._known: set[str] = set()
        """Messages that it has sent or received."""
        self.unknown: Counter[str] = Counter()
        """Lines that report nothing that is known, by what they call it."""
        self.is_partial = True
        """Whether received messages are all that it reports: no more is demanded of a node."""

    def events(self, line: bytes) -> Iterator[Event]:
        """What a line reports; a subscription is that of the other peer. Raises: Refused."""
        values = object_of(line)
        what = _text(values, "msg")
        if what == "PeerID":
            yield self._begin(values)
        elif what not in _OF_LOGGER:
            yield from self._entry(values, what)

    def _begin(self, values: Mapping[str, Any]) -> Event:
        name = _text(values, "id")
        if self._peer not in (None, name):
            raise Refused("a second peer in one file")
        self._peer = name
        return Event(Type.SEND_RPC, name, _time(values), counts=Counts())

    def _entry(self, values: Mapping[str, Any], what: str) -> Iterator[Event]:
        way, _, entry = what.partition(" ")
        if way not in _WAYS or entry not in _ENTRIES:
            count(self.unknown, f"lines '{what[:50]}'")
            return
        if self._peer is None:
            raise Refused(f"{NO_PEER_YET} (PeerID)")
        end, rpc = _WAYS[way]
        self.is_partial &= what == "Received Message"
        is_needed = what != "Received Message"
        time, other = _time(values), _text(values, end) if is_needed else _known(values, end)
        topic = _known(values, "topic")
        field = "messages" if entry == "Message" else entry.lower()
        events = [Event(rpc, self._peer, time, other, counts=Counts(**{field: 1}))]
        if entry in _MESHES:
            topic = _text(values, "topic")
            events.append(Event(_MESHES[entry], self._peer, time, other, topic))
        elif what == "Received Subscription":
            events.append(Event(Type.JOIN, self._peer, time, other, _text(values, "topic")))
        elif entry == "Message":
            events += self._message(_text(values, "id"), time, other, topic, is_sent=way == "Sent")
        yield from events

    def _message(
        self, message: str, time: int, other: str | None, topic: str | None, *, is_sent: bool
    ) -> Iterator[Event]:
        assert self._peer is not None
        is_new = message not in self._known
        self._known.add(message)
        if not is_sent:
            kind = Type.DELIVER if is_new else Type.DUPLICATE
            yield Event(kind, self._peer, time, other, topic, message)
        elif is_new:
            yield Event(Type.PUBLISH, self._peer, time, None, topic, message)


def _known(values: Mapping[str, Any], name: str) -> str | None:
    return None if values.get(name) is None else _text(values, name)


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if value is None:
        raise Refused(f"missing key: {name}")
    if not isinstance(value, str) or not value:
        raise Refused(f"wrong type: {name}")
    if CONTROL_CHARACTER.search(value):
        raise Refused(f"control character in {name}")
    return value


def _time(values: Mapping[str, Any]) -> int:
    """Nanoseconds of Unix time."""
    found = _TIME.fullmatch(_text(values, "time"))
    try:
        if found is None:
            raise ValueError
        seconds = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError) as error:
        raise Refused("time is not RFC 3339") from error
    if seconds < 0:
        raise Refused("negative time")
    return int(seconds) * 10**9 + int((found[2] or "").ljust(9, "0"))
