"""The tables of Xatu that are read, their columns, and the events that their rows are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa

from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent


class XatuType(IntEnum):
    """The type of an event that a trace of go-libp2p-pubsub does not have."""

    CONNECTED = 100
    DISCONNECTED = 101
    HEARTBEAT = 102
    """The sentry has a connection to the peer."""
    IDENTIFIED = 103
    RPC = 104
    ENTRY = 105
    """A control entry of an RPC."""


class XatuEvent(TraceEvent, array_like=True, gc=False):
    """An event of a sentry; peers have their key as text, or the name of their sentry."""

    key: tuple[int | str | None, ...] = ()
    """What else makes a row unique."""
    rpc: int | None = None
    """The key of an RPC."""
    kind: str | None = None
    """The kind of a control entry, or the table of an RPC."""
    offers: bool = False
    """The row of a PRUNE names a peer to connect to instead."""
    opened: int | None = None
    """When the connection was opened, in seconds of Unix time."""


class XatuTable(NamedTuple):
    """A table. Its rows are unique by their time, sentry, other peer, topic, message and `key`."""

    type: int
    other: str | None = "peer_id_unique_key"
    """The column with the key of the other peer."""
    names: tuple[str, ...] = ()
    """Whether its rows have a topic, and a message."""
    key: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    """Columns that it needs beside these."""


_REMOTE = "remote_peer_id_unique_key"
LOCAL_KEYS = ("local_peer_id_unique_key", "peer_id_unique_key")
"""The columns with the key of the sentry itself, the newer first."""
GRAFTED = "graft_peer_id_unique_key"
_TOPIC, _MESSAGE = ("topic",), ("topic", "message")
_CONNECTION = ("direction", "opened")
_ENTRY_KEY, _RPC_KEY = ("unique_key", "control_index"), "rpc_meta_unique_key"
HANDLED = "gossipsub_"
"""How the names of tables begin that have the messages that the application got."""
PAYLOADS = tuple(
    HANDLED + kind
    for kind in (
        *("beacon_block", "beacon_attestation", "aggregate_and_proof"),
        *("blob_sidecar", "data_column_sidecar"),
    )
)
WAYS = {
    "send_rpc": EventType.SEND_RPC,
    "recv_rpc": EventType.RECV_RPC,
    "drop_rpc": EventType.DROP_RPC,
}
ENTRIES = {
    "rpc_meta_control_graft": "graft",
    "rpc_meta_control_prune": "prune",
    "rpc_meta_subscription": "subscribe",
}
"""The kind of control entry in each table, or that of half of its rows."""
TABLES = {
    "add_peer": XatuTable(EventType.STREAM_OPENED),
    "remove_peer": XatuTable(EventType.STREAM_CLOSED),
    "connected": XatuTable(XatuType.CONNECTED, _REMOTE, (), _CONNECTION),
    "disconnected": XatuTable(XatuType.DISCONNECTED, _REMOTE, (), _CONNECTION),
    "synthetic_heartbeat": XatuTable(XatuType.HEARTBEAT, _REMOTE, more=("connection_age_ms",)),
    "identify": XatuTable(XatuType.IDENTIFIED, _REMOTE, (), ("direction",)),
    "join": XatuTable(EventType.JOIN, None, _TOPIC),
    "leave": XatuTable(EventType.LEAVE, None, _TOPIC),
    "graft": XatuTable(EventType.GRAFT, names=_TOPIC),
    "prune": XatuTable(EventType.PRUNE, names=_TOPIC),
    **dict.fromkeys(PAYLOADS, XatuTable(EventType.DELIVER, names=_MESSAGE)),
    "deliver_message": XatuTable(EventType.DELIVER, names=_MESSAGE, key=("seq_number",)),
    "duplicate_message": XatuTable(EventType.DUPLICATE, names=_MESSAGE, key=("seq_number",)),
    **dict.fromkeys(WAYS, XatuTable(XatuType.RPC, key=("unique_key",))),
    **{
        name: XatuTable(
            XatuType.ENTRY,
            names=_TOPIC,
            key=_ENTRY_KEY,
            more=(_RPC_KEY, *{"prune": (GRAFTED,), "subscribe": ("subscribe",)}.get(kind, ())),
        )
        for name, kind in ENTRIES.items()
    },
}
_SAMPLED = frozenset(
    {
        "rpc_meta_message",
        *(f"rpc_meta_control_{kind}" for kind in ("ihave", "iwant", "idontwant")),
    }
)
"""Tables with entries of some message ids alone, which say nothing of all entries."""

TIME, UPDATED = "event_date_time", "updated_date_time"
SENTRY, NETWORK = "meta_client_name", "meta_network_name"
TOPIC_PARTS = tuple(f"topic_{part}" for part in ("layer", "fork_digest_value", "name", "encoding"))
MESSAGE, SIZE = "message_id", "message_size"
_GEO = {
    "geo_country": "country",
    "geo_continent_code": "continent",
    "geo_city": "city",
    "geo_autonomous_system_number": "asn",
    "geo_autonomous_system_organization": "as_organization",
}
OF_REMOTE = {
    f"remote_{column}": key
    for column, key in {
        "agent_implementation": "client",
        "agent_version": "version",
        "agent_platform": "platform",
        **_GEO,
    }.items()
} | {"protocols": "protocols"}
OF_SENTRY = {
    f"meta_client_{column}": key
    for column, key in {
        "implementation": "client",
        "version": "version",
        "os": "platform",
        **_GEO,
    }.items()
}
"""The keys of attributes by column."""

_PREFIX = "libp2p_"
_READ = sorted([*TABLES, *_SAMPLED], key=len, reverse=True)
_NAME = re.compile(rf"{_PREFIX}({'|'.join(_READ)}|[a-z_]+)(?![a-z])")


def table_of(path: str) -> str | None:
    """Return the name of the table that a file belongs to, from its name or the nearest of its
    folders, without 'libp2p_'; null if they do not say.
    """
    names = _NAME.findall(path)
    return names[-1] if names else None


def columns_needed(table: XatuTable) -> tuple[str, ...]:
    """Return the columns that a table must have, but for the sentry's own key."""
    of_names = {"topic": TOPIC_PARTS, "message": (MESSAGE,)}
    names = (column for name in table.names for column in of_names[name])
    other = (table.other,) if table.other else ()
    return TIME, SENTRY, NETWORK, *other, *names, *table.key, *table.more


def columns_read(schema: pa.Schema, table: XatuTable) -> list[str]:
    """Return the columns of a file that are read."""
    local = () if table.other else LOCAL_KEYS
    wanted = (*columns_needed(table), *local, UPDATED, SIZE, *OF_REMOTE, *OF_SENTRY)
    return [name for name in dict.fromkeys(wanted) if name in schema.names]


def find_faults(schema: pa.Schema, name: str) -> Iterator[str]:
    """Yield why a file with this schema cannot be read as a table of Xatu, as text for users."""
    if name in _SAMPLED:
        yield "its rows are a sample of entries by message id, which is not read"
        return
    if (table := TABLES.get(name)) is None:
        yield f"its table, {_PREFIX}{name}, is none of those that are read"
        return
    needed: list[str] = [*columns_needed(table)]
    if table.other is None:
        needed.append(next((key for key in LOCAL_KEYS if key in schema.names), LOCAL_KEYS[0]))
    for column in needed:
        if column not in schema.names:
            yield f"it has no column '{column}'"
    for column in columns_read(schema, table):
        kind, wanted = schema.field(column).type, wanted_type(column)
        if not any(check(kind) for check in _CHECKS[wanted]):
            yield f"column '{column}' is {kind}, not {wanted}"


TIME_OR_SECONDS = "a time or whole seconds"
_CHECKS = {
    "a time": (pa.types.is_timestamp,),
    TIME_OR_SECONDS: (pa.types.is_timestamp, pa.types.is_integer),
    "a whole number": (pa.types.is_integer,),
    "true or false": (pa.types.is_boolean, pa.types.is_integer),
    "a list": (pa.types.is_list, pa.types.is_large_list),
    "text": (
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary),
        *(pa.types.is_large_binary, pa.types.is_dictionary),
    ),
}
_WANTED = {
    TIME: "a time",
    UPDATED: TIME_OR_SECONDS,
    "opened": TIME_OR_SECONDS,
    "subscribe": "true or false",
    "protocols": "a list",
    **dict.fromkeys((SIZE, "connection_age_ms", "control_index", "seq_number"), "a whole number"),
}


def wanted_type(column: str) -> str:
    """Return what a column must have, a key of the checks."""
    numbers = ("unique_key", "_system_number")
    return _WANTED.get(column, "a whole number" if column.endswith(numbers) else "text")
