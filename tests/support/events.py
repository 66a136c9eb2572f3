"""Events of libp2p as plain Python, and the trace files that contain them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from base58 import b58decode

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources.libp2p.events import SPELLINGS, EventType

FROM, TO = "receivedFrom", "sendTo"
_OTHER = {
    **dict.fromkeys(
        (EventType.REJECT, EventType.DUPLICATE, EventType.DELIVER, EventType.RECV_RPC), FROM
    ),
    **dict.fromkeys((EventType.SEND_RPC, EventType.DROP_RPC, EventType.SEND_RPC_COMPLETED), TO),
}


class Happened(NamedTuple):
    """An event."""

    type: EventType
    peer: str
    ns: int
    other: str | None = None
    topic: str | None = None
    message: str | None = None
    meta: dict[str, Any] | None = None
    write_ns: int | None = None

    @property
    def us(self) -> int:
        """The time of the event."""
        return self.ns // 1000

    @property
    def line(self) -> str:
        """As a tracer writes it."""
        told = {
            _OTHER.get(self.type, "peerID"): self.other and named(self.other),
            "topic": self.topic,
            "messageID": self.message and b64encode(self.message.encode()).decode(),
            "meta": self.meta,
            "writeDurationNanos": self.write_ns,
        }
        payload = {name: value for name, value in told.items() if value is not None}
        head = {"type": int(self.type), "peerID": named(self.peer), "timestamp": self.ns}
        return json.dumps({**head, SPELLINGS[self.type][0]: payload})


def at(us: int, type: EventType, peer: str, other: str | None = None, **about: Any) -> Happened:
    """An event at that microsecond."""
    return Happened(type, peer, us * 1000, other, **about)


def named(name: str) -> str:
    """A name as its id is written: a multihash that holds it as it is."""
    return b64encode(bytes([0, len(name.encode())]) + name.encode()).decode()


def name_of(encoded: str) -> str:
    """The name of an id."""
    return b58decode(encoded)[2:].decode()


def trace(folder: Path, events: Iterable[Happened]) -> list[InputFile]:
    """Events in their order, one file per peer."""
    lines: dict[str, list[str]] = {}
    for event in events:
        lines.setdefault(event.peer, []).append(event.line)
    return [of_lines(folder / f"{peer}.ndjson", lines[peer]) for peer in sorted(lines)]


def of_lines(path: Path, lines: Iterable[str]) -> InputFile:
    """A file of JSON."""
    path.write_text("\n".join(lines))
    return InputFile(str(path), "json", path.stat().st_size, "")
