"""All tables of a run: their columns, with types, units and meaning.

Columns are defined here only. The run store writes these schemas, the loader and the queries rely
on them, `vizpub runs tables` prints them, and a test compares the docs with them.

Types are int32, int64, double, string and bool only. Times ending in `_us` are
microseconds since the run's epoch; `valid_from` and `valid_to` are ticks (see vizpub.model.clock).
A null is *unknown*; a 0 was measured.
"""

from __future__ import annotations

from vizpub.model.columns import (
    CONTROL_OF_KIND,
    INTERVAL,
    PEER,
    TOPIC,
    TRAFFIC_OF_PEER,
    Table,
    always,
    maybe,
)
from vizpub.model.errors import UnknownName
from vizpub.model.metrics import METRICS

_PERIOD = (
    always("valid_from", "int64", "valid from, inclusive", "ticks"),
    always("valid_to", "int64", "valid to, exclusive; 9223372036854775807 = open", "ticks"),
)
_LINK = (
    always("src", "int32", "peer that holds the link"),
    always("dst", "int32", "peer it leads to"),
    always("layer", "string", "part of the protocol it belongs to; 'overlay' if not given"),
    maybe("topic", "int32", "topic it serves, null = none"),
    *_PERIOD,
)
PEERS = Table(
    "peers",
    "peer",
    (
        PEER,
        always("name", "string", "its name in the source"),
        always("is_reporter", "bool", "it reported itself; false = only named by others"),
    ),
    ("peer",),
)
TOPICS = Table(
    "topics", "topic", (TOPIC, always("name", "string", "its name in the source")), ("topic",)
)
PRESENCE = Table(
    "presence",
    "maximal validity period of a peer's presence",
    (PEER, *_PERIOD),
    ("peer", "valid_from"),
)
LINKS = Table(
    "links",
    "maximal validity period of a directed link, clipped to the presence of both ends",
    _LINK,
    ("src", "dst", "layer", "topic", "valid_from"),
)
DANGLING_LINKS = Table(
    "dangling_links",
    "part of a link's validity period in which one of its ends was not present",
    _LINK,
    ("src", "dst", "layer", "topic", "valid_from"),
)
SUBSCRIPTIONS = Table(
    "subscriptions",
    "maximal validity period of a subscription, clipped to the presence of the peer",
    (PEER, TOPIC, *_PERIOD),
    ("peer", "topic", "valid_from"),
)
ROLES = Table(
    "roles",
    "maximal validity period of a role of a peer",
    (
        PEER,
        always("role", "string", "the role's name, such as 'rendezvous'"),
        maybe("topic", "int32", "topic of the role, null = none"),
        *_PERIOD,
    ),
    ("peer", "role", "topic", "valid_from"),
)
ATTRIBUTES = Table(
    "attributes",
    "maximal validity period of the value of a peer's attribute, such as its client or country",
    (
        PEER,
        always("key", "string", "the attribute's name, such as 'client'"),
        always("value", "string", "its value, as text"),
        maybe("number", "double", "the value as a number, null = it is no finite number"),
        *_PERIOD,
    ),
    ("peer", "key", "valid_from"),
)
TRAFFIC = Table(
    "traffic",
    "peer and interval",
    (
        PEER,
        INTERVAL,
        *TRAFFIC_OF_PEER,
        maybe("dropped", "int64", "messages dropped because a queue was full", "messages"),
        maybe("duplicates", "int64", "receptions that were not the first, as counted by the peer"),
        *(
            maybe(
                f"rpcs_{direction}",
                "int64",
                f"RPCs {direction}: packets of messages and control entries",
            )
            for direction in ("sent", "received")
        ),
    ),
    ("peer", "interval"),
)
CONTROL = Table(
    "control",
    "peer, interval, kind of control message and topic",
    (
        PEER,
        INTERVAL,
        always("kind", "string", "their kind, such as 'ihave'"),
        maybe("topic", "int32", "topic that they name, null = none"),
        *CONTROL_OF_KIND,
    ),
    ("peer", "interval", "kind", "topic"),
)
GAUGES = Table(
    "gauges",
    "number of the system's own that a peer reported for an interval",
    (
        PEER,
        INTERVAL,
        always("gauge", "string", "its name, such as 'lookups'"),
        always("value", "double", "its count in the interval, or its state at the end"),
    ),
    ("peer", "interval", "gauge"),
)
PUBLICATIONS = Table(
    "publications",
    "message",
    (
        always("message", "int64", "dense index of the message"),
        always("name", "string", "its id in the source"),
        maybe("topic", "int32", "topic it was published to"),
        maybe("publisher", "int32", "peer that published it"),
        always("interval", "int32", "interval of the publication (or of the first reception)"),
        maybe("time_us", "int64", "time of the publication", "µs"),
        always("tick", "int64", "tick of the publication (or of the first reception)", "ticks"),
        always("publication_known", "bool", "the publisher reported it"),
        maybe("bytes", "int64", "size of one copy, as the publisher reported it", "bytes"),
    ),
    ("message",),
)
_ARRIVAL = (
    always("message", "int64", "dense index of the message"),
    always("peer", "int32", "peer that received it"),
    maybe("previous_hop", "int32", "peer it came from, null = unknown"),
    maybe("time_us", "int64", "time of the arrival", "µs"),
    INTERVAL,
)
COPY_FLAGS = (
    maybe("after_idontwant", "bool", "the peer had sent an IDONTWANT for it, null = unknown"),
    maybe("before_idontwant", "bool", "the peer sent its IDONTWANT for it later, null = unknown"),
    maybe("by_iwant", "bool", "it had asked the previous hop for it by IWANT, null = unknown"),
)
"""What the receiver of a copy says of its message to other peers."""
RECEPTIONS = Table(
    "receptions",
    "arrival of a message at a peer",
    (
        *_ARRIVAL,
        always("tick", "int64", "tick of the arrival", "ticks"),
        always(
            "first",
            "bool",
            "the first at this peer; others, and all at the publisher, are duplicates",
        ),
        maybe("hop", "int32", "links travelled from the publisher, null = unknown", "hops"),
        maybe("subscribed", "bool", "the peer was subscribed to the topic, null = unknown"),
        maybe("eligible", "bool", "the peer was eligible: see metrics/messages.eligible"),
        *COPY_FLAGS,
    ),
    ("message", "peer", "previous_hop", "tick"),
)
MISSED = Table(
    "missed",
    "peer that was eligible for a message and never received it",
    (
        always("message", "int64", "dense index of the message"),
        always("peer", "int32", "peer that missed it"),
    ),
    ("message", "peer"),
)
REJECTIONS = Table(
    "rejections",
    "arrival that the peer refused",
    (*_ARRIVAL, maybe("reason", "string", "why, in the source's words")),
    ("message", "peer", "previous_hop", "time_us"),
)
QUARANTINE = Table(
    "quarantine",
    "record of the input that was refused",
    (
        always("file", "string", "input file that has it"),
        always("line", "int64", "line, from 1 (ordinal of the record in a binary file)"),
        always("reason", "string", "why it was refused"),
        maybe("text", "string", "the record, at most 1,024 characters"),
    ),
    ("file", "line", "reason"),
)

TABLES: tuple[Table, ...] = (
    PEERS,
    TOPICS,
    PRESENCE,
    LINKS,
    DANGLING_LINKS,
    SUBSCRIPTIONS,
    ROLES,
    ATTRIBUTES,
    TRAFFIC,
    CONTROL,
    GAUGES,
    PUBLICATIONS,
    RECEPTIONS,
    MISSED,
    REJECTIONS,
    *METRICS,
    QUARANTINE,
)


def table(name: str) -> Table:
    """Return the table of that name. Raises: UnknownName."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise UnknownName("table", name, [t.name for t in TABLES], "vizpub runs tables")
