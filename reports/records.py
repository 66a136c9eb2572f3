"""The records of the report contract as dataclasses. Standard library only.

`files` describes the contract; import these from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self

OVERLAY = "overlay"
"""The layer of a link if the source gives none."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Neighbor:
    """A link the peer holds. In JSON a plain string if only the peer is given."""

    peer: str
    layer: str = OVERLAY
    """The part of the protocol it belongs to."""
    topic: str | None = None
    """The topic it serves; null = none."""

    def to_json(self) -> str | Json:
        """A string if only the peer is given, otherwise an object."""
        if self.layer == OVERLAY and self.topic is None:
            return self.peer
        return _fields(self)

    @classmethod
    def from_json(cls, value: str | Json) -> Self:
        """From a string or an object."""
        if isinstance(value, str):
            return cls(value)
        return cls(value["peer"], value.get("layer") or OVERLAY, value.get("topic"))


@dataclass(frozen=True)
class Role:
    """A role the peer plays, such as rendezvous."""

    role: str
    topic: str | None = None

    def to_json(self) -> Json:
        """The object of `roles`."""
        return _fields(self)

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """From an object of `roles`."""
        return cls(value["role"], value.get("topic"))


@dataclass(frozen=True)
class Counters:
    """Messages and bytes each way.

    They count the events of the interval (`delta`). A source that counts from its start says so in
    the run header (`"counters": "total"`); ingest then takes differences (the first report
    counts from 0) and treats a drop as a restart.
    """

    messages_sent: int | None = None
    bytes_sent: int | None = None
    messages_received: int | None = None
    bytes_received: int | None = None

    def to_json(self) -> Json:
        """The object of `control` or `publication`."""
        return {
            "sent": _present(messages=self.messages_sent, bytes=self.bytes_sent),
            "received": _present(messages=self.messages_received, bytes=self.bytes_received),
        }

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """From the object of `control` or `publication`."""
        sent, received = value.get("sent") or {}, value.get("received") or {}
        return cls(
            sent.get("messages"), sent.get("bytes"), received.get("messages"), received.get("bytes")
        )


@dataclass(frozen=True)
class Sent:
    """A message sent on. The publisher's own publication has `hops` 0."""

    message: str
    topic: str | None = None
    publisher: str | None = None
    to: tuple[str, ...] | None = None
    hops: int | None = None
    """Links travelled to the peer that sends it on."""
    time_us: int | None = None
    """µs since the run's epoch."""
    bytes: int | None = None
    """Size of one copy."""
    resent: bool | None = None
    """Whether it goes to peers that came too late for the first copies."""

    def to_json(self) -> Json:
        """The object of `sent`."""
        return _fields(self)

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """From an object of `sent`."""
        known = _known(cls, value)
        if "to" in known:
            known["to"] = tuple(known["to"])
        return cls(**known)


@dataclass(frozen=True)
class Received:
    """An arrival of a message: every one, duplicates too, in order of arrival.

    `hops` may be absent; ingest then rebuilds it from the `from` chains of first receptions.
    """

    message: str
    topic: str | None = None
    publisher: str | None = None
    from_peer: str | None = None
    """The peer it came from; `from` in JSON."""
    hops: int | None = None
    time_us: int | None = None
    bytes: int | None = None
    subscribed: bool | None = None
    """Whether the peer subscribed to the topic then."""
    resent: bool | None = None
    """Whether it was sent because the peer came too late for the first copies."""

    def to_json(self) -> Json:
        """The object of `received`."""
        return {_SPELLED.get(name, name): value for name, value in _fields(self).items()}

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """From an object of `received`."""
        return cls(**_known(cls, value), from_peer=value.get("from"))


_SPELLED = {"from_peer": "from"}


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of one peer on one reporting interval.

    Interval i covers `[i·interval_us, (i+1)·interval_us)` of the run's time. `neighbors`,
    `topics` and `roles` are the state when the report is made, at the interval's end;
    counters and publications are what happened during it. A peer with no report for an
    interval is absent in it. A null is unknown; an empty tuple is none.
    """

    format: ClassVar[str] = "vizpub.report/1"

    run: str | None = None
    peer: str
    interval: int
    seq: int | None = None
    """Grows with every report of a peer; of two reports for the same interval the greater wins."""
    neighbors: tuple[Neighbor, ...] | None = None
    topics: tuple[str, ...] | None = None
    """Topics the peer subscribes to."""
    roles: tuple[Role, ...] | None = None
    control: Counters | None = None
    publication: Counters | None = None
    """For sources that only count; takes precedence over `sent` and `received`."""
    duplicates: int | None = None
    """Receptions that were not the first; as `publication`."""
    rpcs_sent: int | None = None
    """Packets of messages and control entries, however many of these each carries."""
    rpcs_received: int | None = None
    gauges: Mapping[str, float] | None = None
    """Numbers of the system's own by name, for this interval, such as lookups or hops. Also in a
    run whose counters are totals; a name that is absent is unknown.
    """
    sent: tuple[Sent, ...] | None = None
    received: tuple[Received, ...] | None = None
    left: bool = False
    """The peer left in the interval: it is absent, but its events count."""

    def to_json(self) -> Json:
        """The record, without unknown fields."""
        record = {"format": self.format, **_fields(self)}
        if not self.left:
            del record["left"]
        return record

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """From a record that has no problems."""
        known = _known(cls, value)
        for name, kind in _ITEMS.items():
            if name in known:
                known[name] = tuple(kind.from_json(item) for item in known[name])
        for name in _COUNTERS & known.keys():
            known[name] = Counters.from_json(known[name])
        if "topics" in known:
            known["topics"] = tuple(known["topics"])
        if "gauges" in known:
            known["gauges"] = _present(**known["gauges"])
        return cls(**known)


_ITEMS: dict[str, type[Neighbor | Role | Sent | Received]] = {
    "neighbors": Neighbor,
    "roles": Role,
    "sent": Sent,
    "received": Received,
}
_COUNTERS = {"control", "publication"}


@dataclass(frozen=True)
class RunHeader:
    """Facts about the whole run: an optional first line.

    Several values of `run` in the input are refused; `--input-run RUN` picks one, and `--run`
    names the stored run.
    """

    format: ClassVar[str] = "vizpub.run/1"

    run: str | None = None
    protocol: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    interval_us: int | None = None
    """Length of a reporting interval in µs."""
    epoch: str | None = None
    """Wall time of the run's time 0, ISO 8601."""
    counters: str = "delta"
    """'delta', or 'total' for counters that never restart with an interval."""
    lists: str | None = None
    """'complete' where every arrival is listed, also where the counters count more."""
    unknown: tuple[str, ...] = ()
    """What this source does not report, as 'control.bytes'."""

    def to_json(self) -> Json:
        """The record."""
        return {"format": self.format, **_fields(self)}

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """From a record that has no problems."""
        known = _known(cls, value)
        return cls(**{**known, "unknown": tuple(known.get("unknown", ()))})


@dataclass(frozen=True)
class RunEnd:
    """The end of a run: open periods end after its last interval."""

    format: ClassVar[str] = "vizpub.end/1"

    last_interval: int
    run: str | None = None

    def to_json(self) -> Json:
        """The record."""
        return {"format": self.format, **_fields(self)}

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """From a record that has no problems."""
        return cls(**_known(cls, value))


Record = Report | RunHeader | RunEnd


def _present(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _fields(item: Any) -> Json:
    """The fields of a dataclass that are known, as JSON."""
    found = {}
    for name in _names(type(item)):  # type: ignore[arg-type]
        value = getattr(item, name)
        if value is not None:
            found[name] = _encoded(value)
    return found


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


_PLAIN = (str, int, float)


def _encoded(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if hasattr(value, "to_json"):
        return value.to_json()
    return dict(value) if isinstance(value, Mapping) else value


def _known(kind: Any, value: Json) -> dict[str, Any]:
    """The fields of a dataclass that a JSON object has; null is absent."""
    return {f.name: value[f.name] for f in fields(kind) if value.get(f.name) is not None}
