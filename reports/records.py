"""The records of the report contract as dataclasses. Standard library only.

`files` describes the contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self

OVERLAY = "overlay"
"""The layer of a link if the source gives none."""

Json = dict[str, Any]
_SPELLED = {"from_peer": "from"}
"""Fields with another name in JSON, which is a keyword of Python."""


class _Part:
    """A dataclass of the contract. A field that is null is absent in JSON."""

    def to_json(self) -> Json:
        """Return a JSON object without unknown fields."""
        values = ((name, getattr(self, name)) for name in _names(type(self)))  # type: ignore[arg-type]
        return {
            _SPELLED.get(name, name): _encode(value) for name, value in values if value is not None
        }

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """Read a JSON object that has no problems."""
        return cls(**_present_fields(cls, value))


@dataclass(frozen=True)
class Neighbor:
    """A link that the peer holds. In JSON it is a string if only the peer is given."""

    peer: str
    layer: str = OVERLAY
    """The part of the protocol that it belongs to."""
    topic: str | None = None
    """The topic that it serves; null = none."""

    def to_json(self) -> str | Json:
        """Return a string if only the peer is given, otherwise an object."""
        if self.layer == OVERLAY and self.topic is None:
            return self.peer
        return _present(**vars(self))

    @classmethod
    def from_json(cls, value: str | Json) -> Self:
        """Read a string or an object."""
        if isinstance(value, str):
            return cls(value)
        return cls(value["peer"], value.get("layer") or OVERLAY, value.get("topic"))


@dataclass(frozen=True)
class Role(_Part):
    """A role that the peer plays, such as rendezvous."""

    role: str
    topic: str | None = None


@dataclass(frozen=True)
class Attribute(_Part):
    """A fact about the peer, such as its client. A value holds until a report has another one."""

    key: str
    value: str
    """Text; numbers are written as text, too."""


@dataclass(frozen=True)
class Counters:
    """Messages and bytes each way.

    They count the events of the interval (`delta`). The run header of a source that counts from its
    start has `"counters": "total"`; ingest then takes differences (the first report counts from 0),
    and takes a decrease for a restart.
    """

    messages_sent: int | None = None
    bytes_sent: int | None = None
    messages_received: int | None = None
    bytes_received: int | None = None

    def to_json(self) -> Json:
        """Return the object of `control` or `publication`."""
        return {
            "sent": _present(messages=self.messages_sent, bytes=self.bytes_sent),
            "received": _present(messages=self.messages_received, bytes=self.bytes_received),
        }

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """Read the object of `control` or `publication`."""
        sent, received = value.get("sent") or {}, value.get("received") or {}
        return cls(
            sent.get("messages"), sent.get("bytes"), received.get("messages"), received.get("bytes")
        )


@dataclass(frozen=True)
class ControlKind(_Part):
    """Control messages of one kind, with the ids that they name, such as those of the messages in
    an IHAVE. They are counted like `Counters`; entries of the same kind and topic add up.
    """

    kind: str
    """Its name, such as 'ihave'."""
    topic: str | None = None
    """The topic that they name; null = none."""
    messages_sent: int | None = None
    messages_received: int | None = None
    messages_dropped: int | None = None
    """Not sent, because a queue was full."""
    ids_sent: int | None = None
    ids_received: int | None = None
    ids_dropped: int | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None
    bytes_dropped: int | None = None


@dataclass(frozen=True)
class Sent(_Part):
    """A message sent on. The publisher's own publication has `hops` 0."""

    message: str
    topic: str | None = None
    publisher: str | None = None
    to: tuple[str, ...] | None = None
    hops: int | None = None
    """Links that it travelled to the peer that sends it on."""
    time_us: int | None = None
    """µs since the run's epoch."""
    bytes: int | None = None
    """Size of one copy."""
    resent: bool | None = None
    """True if it goes to peers that came too late for the first copies."""


@dataclass(frozen=True)
class Received(_Part):
    """An arrival of a message; a report lists all, also duplicates, in order of arrival.

    `hops` may be absent; ingest then derives it from the `from` chains of first receptions.
    """

    message: str
    topic: str | None = None
    publisher: str | None = None
    from_peer: str | None = None
    """The peer that it came from; `from` in JSON."""
    hops: int | None = None
    time_us: int | None = None
    bytes: int | None = None
    subscribed: bool | None = None
    """True if the peer subscribed to the topic then."""
    resent: bool | None = None
    """True if it was sent because the peer came too late for the first copies."""


class _Record(_Part):
    """A line of the contract."""

    format: ClassVar[str]

    def to_json(self) -> Json:
        """Return the record without unknown fields."""
        return {"format": self.format, **super().to_json()}


@dataclass(frozen=True, kw_only=True)
class Report(_Record):
    """The report of one peer on one reporting interval.

    Interval i covers `[i·interval_us, (i+1)·interval_us)` of the run's time. `neighbors`,
    `topics` and `roles` are the state at the interval's end, when the report is made; counters and
    publications are the events during it. A peer without a report for an interval is absent in it.
    A null is unknown; an empty tuple is none.
    """

    format: ClassVar[str] = "vizpub.report/1"

    run: str | None = None
    peer: str
    interval: int
    seq: int | None = None
    """Grows with every report of a peer; of two reports for the same interval the greater wins."""
    neighbors: tuple[Neighbor, ...] | None = None
    topics: tuple[str, ...] | None = None
    """Topics that the peer subscribes to."""
    roles: tuple[Role, ...] | None = None
    attributes: tuple[Attribute, ...] | None = None
    """Facts about the peer, in its first report and whenever one changes; null = as before."""
    control: Counters | None = None
    control_kinds: tuple[ControlKind, ...] | None = None
    """The messages that `control` counts, by kind; a kind without an entry is unknown."""
    publication: Counters | None = None
    """For sources that only count; takes precedence over `sent` and `received`."""
    duplicates: int | None = None
    """Receptions that were not the first; for sources that only count, like `publication`."""
    rpcs_sent: int | None = None
    """Packets, each with any number of messages and control entries."""
    rpcs_received: int | None = None
    gauges: Mapping[str, float] | None = None
    """The system's own numbers for this interval by name, such as lookups or hops. They are never
    totals, even if the counters are; an absent name is unknown.
    """
    sent: tuple[Sent, ...] | None = None
    received: tuple[Received, ...] | None = None
    left: bool = False
    """True if the peer left in the interval: it is absent, but its events count."""

    def to_json(self) -> Json:
        """Return the record without unknown fields."""
        record = super().to_json()
        if not self.left:
            del record["left"]
        return record

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """Read a record that has no problems."""
        values = _present_fields(cls, value)
        for name, kind in _ITEMS.items():
            if name in values:
                values[name] = tuple(kind.from_json(item) for item in values[name])
        for name in _COUNTERS & values.keys():
            values[name] = Counters.from_json(values[name])
        if "gauges" in values:
            values["gauges"] = _present(**values["gauges"])
        return cls(**values)


_ITEMS: dict[str, type[Neighbor | Role | Attribute | ControlKind | Sent | Received]] = {
    "neighbors": Neighbor,
    "roles": Role,
    "attributes": Attribute,
    "control_kinds": ControlKind,
    "sent": Sent,
    "received": Received,
}
_COUNTERS = {"control", "publication"}


@dataclass(frozen=True)
class RunHeader(_Record):
    """Facts about the whole run: an optional first line.

    Input with several values of `run` is refused; `--input-run RUN` selects one, and `--run` names
    the stored run.
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
    """'delta', or 'total' for counters that do not restart with each interval."""
    lists: str | None = None
    """'complete' if every arrival is listed, even if the counters count more."""
    unknown: tuple[str, ...] = ()
    """Fields that this source does not report, such as 'control.bytes'."""


@dataclass(frozen=True)
class RunEnd(_Record):
    """The end of a run: open periods end after its last interval."""

    format: ClassVar[str] = "vizpub.end/1"

    last_interval: int
    run: str | None = None


Record = Report | RunHeader | RunEnd


def _present(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


_PLAIN = (str, int, float)


def _encode(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if hasattr(value, "to_json"):
        return value.to_json()
    return dict(value) if isinstance(value, Mapping) else value


def _present_fields(kind: Any, value: Json) -> dict[str, Any]:
    """Return the fields of a dataclass that a JSON object has, arrays as tuples; null is absent."""
    values = ((name, value.get(_SPELLED.get(name, name))) for name in _names(kind))
    return {
        name: tuple(item) if isinstance(item, list) else item
        for name, item in values
        if item is not None
    }
