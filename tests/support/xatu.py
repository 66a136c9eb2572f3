"""A trace of go-libp2p-pubsub, rewritten as the tables of Xatu that some of its peers, the
sentries, would have written; with the columns of the published schema.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from base58 import b58encode

Row = dict[str, Any]
Tables = dict[str, list[Row]]

MS = 1_000_000
NETWORK = "mainnet"
COUNTRIES = ("Germany", "Finland", "Canada")
CLIENTS = ("lighthouse", "prysm", "teku", "nimbus")
FORK = "bba4da96"
_TIME, _SECONDS = pa.timestamp("ms", "UTC"), pa.timestamp("s", "UTC")
_LABEL = pa.dictionary(pa.int32(), pa.string())
_GEO = {
    "geo_city": _LABEL, "geo_country": _LABEL, "geo_country_code": _LABEL,
    "geo_continent_code": _LABEL, "geo_longitude": pa.float64(), "geo_latitude": pa.float64(),
    "geo_autonomous_system_number": pa.uint32(),
    "geo_autonomous_system_organization": pa.string(),
}  # fmt: skip
_META = {
    "meta_client_name": _LABEL, "meta_client_version": _LABEL,
    "meta_client_implementation": _LABEL, "meta_client_os": _LABEL,
    "meta_client_ip": pa.binary(16),
    **{f"meta_client_{name}": kind for name, kind in _GEO.items()},
    "meta_network_name": _LABEL,
}  # fmt: skip
_TOPIC = dict.fromkeys(
    ("topic_layer", "topic_fork_digest_value", "topic_name", "topic_encoding"), _LABEL
)
_PEER, _REMOTE_KEY = {"peer_id_unique_key": pa.int64()}, {"remote_peer_id_unique_key": pa.int64()}
_LOCAL = {"local_peer_id_unique_key": pa.int64()}
_KEY = {"unique_key": pa.int64()}
_MESSAGE = {"message_id": pa.string(), "message_size": pa.uint32()}
_ARRIVAL = {**_TOPIC, "seq_number": pa.uint64(), "local_delivery": pa.bool_(), **_PEER, **_MESSAGE}
_AGENT = dict.fromkeys(
    [
        *("remote_agent_implementation", "remote_agent_version", "remote_agent_version_major"),
        *("remote_agent_version_minor", "remote_agent_version_patch", "remote_agent_platform"),
    ],
    _LABEL,
)
_REMOTE = {
    **_REMOTE_KEY, "remote_protocol": _LABEL, "remote_transport_protocol": _LABEL,
    "remote_port": pa.uint16(), "remote_ip": pa.binary(16),
    **{f"remote_{name}": kind for name, kind in _GEO.items()}, **_AGENT,
}  # fmt: skip
_CONNECTION = {**_REMOTE, "direction": _LABEL, "opened": _SECONDS, "transient": pa.bool_()}
_ENTRY = {**_KEY, "control_index": pa.int32(), "rpc_meta_unique_key": pa.int64()}
_ID = {"message_index": pa.int32(), "message_id": pa.string()}
_SLOT = {
    "slot": pa.uint32(), "slot_start_date_time": _SECONDS, "epoch": pa.uint32(),
    "epoch_start_date_time": _SECONDS, "propagation_slot_start_diff": pa.uint32(),
    "block": pa.binary(66), "proposer_index": pa.uint32(),
}  # fmt: skip
_COLUMNS: Mapping[str, Mapping[str, pa.DataType]] = {
    "add_peer": {**_PEER, "protocol": _LABEL},
    "remove_peer": _PEER,
    "connected": _CONNECTION,
    "disconnected": _CONNECTION,
    "synthetic_heartbeat": {
        **_REMOTE_KEY, "remote_maddrs": pa.string(), "latency_ms": pa.int64(),
        "direction": _LABEL, "protocols": pa.list_(pa.string()), "connection_age_ms": pa.int64(),
        **_AGENT, **{f"remote_{name}": kind for name, kind in _GEO.items()},
    },
    "identify": {
        **_REMOTE, "success": pa.bool_(), "error": pa.string(), "protocol_version": _LABEL,
        "protocols": pa.list_(pa.string()), "direction": _LABEL,
    },
    "join": {**_TOPIC, **_LOCAL},
    "leave": {**_TOPIC, **_LOCAL},
    "graft": {**_TOPIC, **_PEER},
    "prune": {**_TOPIC, **_PEER},
    "deliver_message": _ARRIVAL,
    "duplicate_message": _ARRIVAL,
    "gossipsub_beacon_block": {**_SLOT, **_PEER, **_MESSAGE, **_TOPIC},
    **{name: {**_KEY, **_PEER} for name in ("send_rpc", "recv_rpc", "drop_rpc")},
    "rpc_meta_message": {**_ENTRY, "message_id": pa.string(), **_TOPIC, **_PEER},
    "rpc_meta_control_ihave": {**_ENTRY, **_ID, **_TOPIC, **_PEER},
    "rpc_meta_control_iwant": {**_ENTRY, **_ID, **_PEER},
    "rpc_meta_control_idontwant": {**_ENTRY, **_ID, **_PEER},
    "rpc_meta_control_graft": {**_ENTRY, **_TOPIC, **_PEER},
    "rpc_meta_control_prune": {
        **_ENTRY, "peer_id_index": pa.int32(), **_PEER,
        "graft_peer_id_unique_key": pa.int64(), **_TOPIC,
    },
    "rpc_meta_subscription": {**_ENTRY, "subscribe": pa.bool_(), **_TOPIC, **_PEER},
}  # fmt: skip
TABLES = {
    name: pa.schema({"updated_date_time": _SECONDS, "event_date_time": _TIME, **columns, **_META})
    for name, columns in _COLUMNS.items()
}
"""The published schema of each table."""
_RPCS = {"sendRPC": "send_rpc", "recvRPC": "recv_rpc", "dropRPC": "drop_rpc"}


@cache
def key_of(text: str) -> int:
    """A key like those of Xatu: of a peer and network, or of an event."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def peer_key(peer: str) -> int:
    """The key of a peer by its id in base64."""
    return key_of(b58encode(b64decode(peer)).decode() + NETWORK)


def topic_of(topic: str) -> str:
    """The topic of Ethereum that stands for one of the trace."""
    return f"/eth2/{FORK}/{topic.replace('/', '_')}/ssz_snappy"


def _topic(topic: str) -> Row:
    values = topic_of(topic).split("/")[1:]
    return dict(zip(_TOPIC, values, strict=True))


def _facts(peer: str) -> Row:
    """Of a peer, as Xatu knows them of its connections."""
    number = peer_key(peer) % 1000
    return {
        "remote_peer_id_unique_key": peer_key(peer),
        "remote_agent_implementation": CLIENTS[number % len(CLIENTS)],
        "remote_agent_version": f"v{number % 7}.0.1", "remote_agent_platform": "",
        "remote_geo_country": COUNTRIES[number % len(COUNTRIES)],
        "remote_geo_autonomous_system_number": 60_000 + number % 5,
    }  # fmt: skip


def size_of(message: str) -> int:
    """The size of a message by its id in hex."""
    return 1000 + int(message[-3:], 16)


class _Rewriter:
    """Makes the rows of one event after the other."""

    def __init__(self, sentries: Mapping[str, str]) -> None:
        self.tables: Tables = defaultdict(list)
        self._sentries = sentries
        self._opened: dict[tuple[str, str], int] = {}

    def take(self, event: Row, number: int) -> None:
        """An event, with its number among all."""
        if (sentry := self._sentries.get(event["peerID"])) is None:
            return
        self._ms, self._sentry, self._own = event["timestamp"] // MS, sentry, event["peerID"]
        (what,) = event.keys() - {"type", "peerID", "timestamp"}
        of = event[what]
        if what in _RPCS:
            self._rpc(_RPCS[what], of, f"{sentry}-{number}")
        elif what in ("deliverMessage", "duplicateMessage"):
            self._arrival(what.replace("Message", "_message"), of)
        elif what in ("graft", "prune"):
            self._add(what, _topic(of["topic"]), _peer(of["peerID"]))
        elif what in ("join", "leave"):
            local = {"local_peer_id_unique_key": peer_key(self._own)}
            self._add(what, _topic(of["topic"]), local)
        elif what in ("onNewOutboundStream", "onClosedOutboundStream"):
            self._stream(of, opens=what == "onNewOutboundStream")

    def _add(self, table: str, *parts: Row) -> None:
        row = dict.fromkeys(TABLES[table].names)
        row |= {
            "event_date_time": _date(self._ms / 1000),
            "updated_date_time": _date(self._ms // 1000 + 60),
            "meta_client_name": self._sentry, "meta_client_implementation": "Xatu",
            "meta_client_geo_country": "Germany", "meta_network_name": NETWORK,
        }  # fmt: skip
        for part in parts:
            row |= part
        self.tables[table].append(row)

    def _stream(self, of: Row, *, opens: bool) -> None:
        other = of["peerID"]
        if opens:
            self._opened[self._sentry, other] = self._ms // 1000
        since = self._opened.get((self._sentry, other), 0)
        at = {"opened": _date(since), "direction": "outbound"}
        if opens:
            self._add("add_peer", _peer(other), {"protocol": of.get("proto")})
            self._add("connected", _facts(other), at)
            self._add("identify", _facts(other), {"success": True, "protocols": ["/b", "/a"]})
        else:
            self._add("remove_peer", _peer(other))
            self._add("disconnected", _facts(other), at)

    def _arrival(self, table: str, of: Row) -> None:
        message = b64decode(of["messageID"]).hex()
        what = {"message_id": message, "message_size": size_of(message), "seq_number": 0}
        self._add(table, _topic(of["topic"]), _peer(of["receivedFrom"]), what)

    def _rpc(self, table: str, of: Row, root: str) -> None:
        other = _peer(of.get("receivedFrom") or of["sendTo"])
        self._add(table, other, {"unique_key": key_of(root)})
        control = of["meta"].get("control", {})
        entries: list[tuple[str, int, Row, int]] = []
        for kind in ("ihave", "iwant", "idontwant"):
            entries += (
                (f"control_{kind}", at, {"message_id": b64decode(message).hex()}, index)
                for at, one in enumerate(control.get(kind, ()))
                for index, message in enumerate(one["messageIDs"])
            )
        for kind in ("graft", "prune"):
            for at, one in enumerate(control.get(kind, ())):
                for index, peer in enumerate(one.get("peers") or [None]):
                    offer = {"graft_peer_id_unique_key": peer_key(peer)} if peer else {}
                    entries.append((f"control_{kind}", at, _topic(one["topic"]) | offer, index))
        for at, one in enumerate(of["meta"].get("subscription", ())):
            subscribes = {"subscribe": bool(one.get("subscribe"))}
            entries.append(("subscription", at, _topic(one["topic"]) | subscribes, 0))
        for at, one in enumerate(of["meta"].get("messages", ())):
            message = {"message_id": b64decode(one["messageID"]).hex()}
            entries.append(("message", at, message | _topic(one["topic"]), 0))
        for name, at, more, index in entries:
            keys = {
                "unique_key": key_of(f"{root}_{name}_{at}_{index}"),
                "rpc_meta_unique_key": key_of(root), "control_index": at,
            }  # fmt: skip
            if "ihave" in name or "want" in name:
                keys["message_index"] = index
            self._add(f"rpc_meta_{name}", keys, other, more)


def rewrite(events: Iterable[Row], sentries: Mapping[str, str]) -> Tables:
    """The rows of all tables, without a sample. `sentries` names peers by their ids in base64."""
    rewriter = _Rewriter(sentries)
    for number, event in enumerate(events):
        rewriter.take(event, number)
    return rewriter.tables


def sample(
    tables: Tables, keeps: Callable[[str], bool], has_topic: Callable[[str], bool]
) -> Tables:
    """The rows that Xatu keeps: of the messages that `keeps` chooses by id, of the topics that
    `has_topic` chooses by name, all connections, and RPCs with an entry that is kept.
    """

    def is_kept(row: Row) -> bool:
        if "message_id" in row:
            return keeps(row["message_id"])
        return "topic_name" not in row or has_topic(row["topic_name"])

    kept = {name: [row for row in rows if is_kept(row)] for name, rows in tables.items()}
    roots = {row.get("rpc_meta_unique_key") for rows in kept.values() for row in rows}
    for name in _RPCS.values():
        kept[name] = [row for row in kept.get(name, ()) if row["unique_key"] in roots]
    return kept


def _date(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _peer(peer: str) -> Row:
    return {"peer_id_unique_key": peer_key(peer)}


def write(folder: Path, tables: Mapping[str, Sequence[Row]], rows: int = 200) -> None:
    """Write the tables as they are published, one file for each day."""
    for name, content in tables.items():
        by_day = defaultdict(list)
        for row in content:
            by_day[row["event_date_time"].date()].append(row)
        for day, of_day in by_day.items():
            path = folder / f"mainnet/databases/default/libp2p_{name}/{day.year}/{day.month}"
            path.mkdir(parents=True, exist_ok=True)
            write_file(path / f"{day.day}.parquet", name, of_day, rows)


def write_file(path: Path, name: str, content: Sequence[Row], rows: int = 200) -> None:
    """Write a file of a table, with row groups of some rows."""
    pq.write_table(pa.Table.from_pylist(list(content), TABLES[name]), path, row_group_size=rows)
