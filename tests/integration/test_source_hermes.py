"""A recorded trace, rewritten as Hermes would have written it, against the trace itself."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from base58 import b58encode

from tests.support.few import few
from tests.support.staged import Taken, staged, take
from vizpub.ingest.inputs.files import find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.hermes import Hermes
from vizpub.model.tables import COPY_FLAGS

SOURCE = Hermes()
MS = 1_000_000
# As host/parquet_traces.go of Hermes: the name of the file and of the sub-type.
KINDS = {
    "rejectMessage": ("msg_arrival", "reject_msg"),
    "duplicateMessage": ("msg_arrival", "duplicated_msg"),
    "deliverMessage": ("msg_arrival", "deliver_msg"),
    "onNewOutboundStream": ("add_remove", "add_peer"),
    "onClosedOutboundStream": ("add_remove", "remove_peer"),
    "join": ("join_leave", "join_topic"),
    "leave": ("join_leave", "leave_topic"),
    "graft": ("graft_prune", "graft"),
    "prune": ("graft_prune", "prune"),
}
COLUMNS = {
    "msg_arrival": ("RemotePeerID", "Topic", "MsgID", "Local", "MsgSize", "SeqNo"),
    "add_remove": ("RemotePeerID",),
    "join_leave": ("Topic",),
    "graft_prune": ("RemotePeerID", "Topic"),
}
WAYS = {"recvRPC": "in", "sendRPC": "out", "dropRPC": "drop"}
TAGGED = {
    "ProducerID": "producer_id", "SubType": "sub_type", "RemotePeerID": "remote_peer_id",
    "MsgID": "msg_id", "MsgSize": "msg_size", "SeqNo": "seq_no",
    "IsOg": "is_og", "MsgIDs": "msg_ids", "PxPeers": "px_peers",
}  # fmt: skip
Rows = list[dict[str, Any]]


def written(peer: str | None) -> str | None:
    return b58encode(b64decode(peer)).decode() if peer else None


def as_hermes(event: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The kind of file and the row of an event, with all columns."""
    (what,) = event.keys() & KINDS.keys() or [None]
    if what is None:
        return None
    file, kind = KINDS[what]
    told, peer = event[what], written(event["peerID"])
    other = told.get("peerID") or told.get("receivedFrom")
    values = {
        "Timestamp": event["timestamp"] // MS, "Type": file, "ProducerID": peer, "SubType": kind,
        "RemotePeerID": written(other), "Topic": told.get("topic"),
        "MsgID": b64decode(told.get("messageID", "")).hex(),
        "Local": other == event["peerID"], "MsgSize": 1000, "SeqNo": "00",
    }  # fmt: skip
    chosen = ("Timestamp", "Type", "ProducerID", "SubType", *COLUMNS[file])
    return file, {name: values[name] for name in chosen}


def entries_of(event: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The kinds of files and the rows of the entries and sent messages of an RPC."""
    (what,) = event.keys() & WAYS.keys() or [None]
    if what is None:
        return []
    meta, way = event[what]["meta"], WAYS[what]
    other = event[what].get("receivedFrom") or event[what].get("sendTo")
    found: list[tuple[str, dict[str, Any]]] = []
    for kind in ("ihave", "iwant", "idontwant"):
        for entry in meta.get("control", {}).get(kind, ()):
            ids = [b64decode(one).hex() for one in entry["messageIDs"]]
            topic = {"Topic": entry["topic"]} if kind == "ihave" else {}
            found.append((kind, {**topic, "MsgIDs": ids, "Msgs": len(ids)}))
    for entry in meta.get("control", {}).get("prune", ()):
        peers = [written(peer) for peer in entry.get("peers", ())]
        found.append(("peer_exchange", {"Topic": entry["topic"], "PxPeers": peers}))
    for entry in meta.get("messages", ()) if way == "out" else ():
        message = {"MsgID": b64decode(entry["messageID"]).hex(), "Topic": entry["topic"]}
        found.append(("sent_msg", message))
    base = {
        "Timestamp": event["timestamp"] // MS, "ProducerID": written(event["peerID"]),
        "IsOg": False, "Direction": way, "RemotePeerID": written(other),
    }  # fmt: skip
    return [(kind, {**base, "Type": kind, **row}) for kind, row in found]


@pytest.fixture(scope="module")
def events(libp2p_small: Path) -> list[dict[str, Any]]:
    lines: list[str] = []
    for path in sorted((libp2p_small / "json").glob("*.gz")):
        lines += gzip.decompress(path.read_bytes()).decode().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module", params=few([{}, TAGGED], [TAGGED]), ids=["untagged", "tagged"])
def taken(
    request: pytest.FixtureRequest,
    events: list[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Taken:
    folder, rows = tmp_path_factory.mktemp("hermes"), defaultdict[tuple[str, str], Rows](list)
    for event in events:
        for file, row in filter(None, [as_hermes(event), *entries_of(event)]):
            rows[row["ProducerID"], file].append(row)
    for (peer, file), told in rows.items():
        table = pa.Table.from_pylist(told)
        if "PxPeers" in table.column_names:
            table = table.cast(table.schema.set(7, pa.field("PxPeers", pa.list_(pa.string()))))
        if request.param:
            table = table.rename_columns([TAGGED.get(n, n.lower()) for n in table.column_names])
        (folder / peer).mkdir(exist_ok=True)
        pq.write_table(table, folder / peer / f"{file}_1.parquet", row_group_size=500)
    other = {"Timestamp": [1], "Type": ["control_rpc"], "ProducerID": ["p"], "Ihaves": [1]}
    pq.write_table(pa.table(other), folder / "control_rpc_1.parquet")
    found = take_inventory(None, find_files([str(folder)]), SOURCES)
    assert found.source == "hermes"
    assert len(found.files) == len(rows)
    assert [Path(path).name for path, _ in found.skipped] == ["control_rpc_1.parquet"]
    options = SourceOptions()
    return Taken(SOURCE, staged(SOURCE, found.files, options), options)


def test_events_of_hermes_mean_what_the_trace_means(
    taken: Taken, events: list[dict[str, Any]]
) -> None:
    assert not taken.staged.quarantine
    arrivals: Counter[tuple[Any, ...]] = Counter()
    begun = set()
    published = set()
    for event in events:
        peer = written(event["peerID"])
        for what in ("deliverMessage", "duplicateMessage"):
            if what in event and event[what]["receivedFrom"] != event["peerID"]:
                told = event[what]
                copy = b64decode(told["messageID"]).hex(), told["topic"], peer
                came = written(told["receivedFrom"]), what == "deliverMessage"
                arrivals[(*copy, *came)] += 1
        if "publishMessage" in event:
            published.add((b64decode(event["publishMessage"]["messageID"]).hex(), peer))
        for what, layer in (("graft", "mesh"), ("onNewOutboundStream", "streams")):
            if what in event:
                told = event[what]
                begun.add((peer, written(told["peerID"]), layer, told.get("topic")))
    columns = ("message", "topic", "peer", "previous_hop", "first")
    received = taken.records("receptions")
    assert Counter(tuple(row[name] for name in columns) for row in received) == arrivals
    assert taken.rows("publications", "message", "publisher") == published
    assert taken.rows("links", "src", "dst", "layer", "topic") == begun
    assert taken.rows("subscriptions", "peer", "topic") == {
        (written(event["peerID"]), event["join"]["topic"]) for event in events if "join" in event
    }
    assert taken.rows("rejections", "message", "peer") == {
        (b64decode(event["rejectMessage"]["messageID"]).hex(), written(event["peerID"]))
        for event in events
        if "rejectMessage" in event
        if event["rejectMessage"]["receivedFrom"] != event["peerID"]
    }


def test_entries_and_sent_messages_of_hermes_are_counted(
    taken: Taken, events: list[dict[str, Any]]
) -> None:
    first = min(event["timestamp"] for event in events) // (1000 * MS)
    ways = {"in": "received", "out": "sent", "drop": "dropped"}
    counted: Counter[tuple[Any, ...]] = Counter()
    sent: Counter[tuple[Any, ...]] = Counter()
    for event in events:
        interval = event["timestamp"] // (1000 * MS) - first
        for file, row in entries_of(event):
            of = row["ProducerID"], interval
            if file == "sent_msg":
                sent[of] += 1
                continue
            kind = {"peer_exchange": "prune"}.get(file, file)
            key = *of, kind, row.get("Topic"), ways[row["Direction"]]
            counted[("messages", *key)] += 1
            counted[("ids", *key)] += len(row.get("MsgIDs", row.get("PxPeers")))
    told: Counter[tuple[Any, ...]] = Counter()
    for row in taken.records("control"):
        for column, value in row.items():
            what, _, way = column.partition("_")
            if what in ("messages", "ids") and value:
                key = row["peer"], row["interval"], row["kind"], row["topic"], way
                told[(what, *key)] += value
    assert told == +counted
    traffic = taken.records("traffic")
    assert Counter(
        {(row["peer"], row["interval"]): row["publication_messages_sent"] for row in traffic}
    ) == sent | Counter({(row["peer"], row["interval"]): 0 for row in traffic})
    assert {row["rpcs_sent"] for row in traffic} == {None}


def test_times_of_hermes_are_milliseconds(taken: Taken, events: list[dict[str, Any]]) -> None:
    times = [event["timestamp"] // MS for event in events if as_hermes(event)]
    begin = min(times) // 1000
    assert taken.told.epoch is not None
    assert taken.told.epoch.startswith("2000-01-01T00:00:")
    assert taken.told.clock.last == max(times) // 1000 - begin
    arrived = {
        (event["timestamp"] // MS - begin * 1000) * 1000
        for event in events
        for what in ("deliverMessage", "duplicateMessage")
        if what in event and event[what]["receivedFrom"] != event["peerID"]
    }
    assert taken.rows("receptions", "time_us") == {(time,) for time in arrived}


def test_bad_rows_of_hermes_are_quarantined(tmp_path: Path) -> None:
    sound = {"timestamp": 5, "type": "graft_prune", "producer_id": "me", "sub_type": "graft"}
    sound |= {"remote_peer_id": "you", "topic": "t"}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"timestamp": None}, "missing value: timestamp"),
        ({"timestamp": -1}, "negative timestamp"),
        ({"timestamp": 2**62}, "timestamp too large"),
        ({"producer_id": ""}, "missing value: producerid"),
        ({"remote_peer_id": None}, "missing value: remotepeerid"),
        ({"topic": "a\nb"}, "control character in topic"),
        ({"sub_type": None}, "missing value: subtype"),
    ]
    told = [sound, *(sound | change for change, _ in changes), sound | {"sub_type": "bend"}]
    pq.write_table(pa.Table.from_pylist(told), tmp_path / "graft_prune_1.parquet")
    found = take_inventory(None, find_files([str(tmp_path)]), SOURCES)
    taken = staged(SOURCE, found.files, SourceOptions())
    expected = [(number, why) for number, (_, why) in enumerate(changes, 2)]
    assert [row[1:3] for row in taken.quarantine] == expected
    assert [row["dst"] for row in taken.tables["links"].to_pylist()] == ["you"]
    assert taken.counted["unknown"] == {"events of type bend": 1}


def test_bad_rpcs_of_hermes_are_quarantined(tmp_path: Path) -> None:
    sound = {"timestamp": 5, "type": "iwant", "producer_id": "me", "is_og": True}
    sound |= {"direction": "in", "remote_peer_id": "you", "msg_ids": ["a", "b"], "msgs": 2}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"direction": "unknown"}, "unknown direction: unknown"),
        ({"type": "i_want"}, "unknown type: i_want"),
        ({"remote_peer_id": ""}, "missing value: remotepeerid"),
        ({"direction": "out", "msg_ids": ["a", None]}, "missing value in a list of ids"),
    ]
    told = [sound, *(sound | change for change, _ in changes), sound | {"msg_ids": None}]
    pq.write_table(pa.Table.from_pylist(told), tmp_path / "iwant_1.parquet")
    found = take_inventory(None, find_files([str(tmp_path)]), SOURCES)
    taken = staged(SOURCE, found.files, SourceOptions())
    assert [row[1:3] for row in taken.quarantine] == [
        (number, why) for number, (_, why) in enumerate(changes, 2)
    ]
    (row,) = taken.tables["control"].to_pylist()
    assert (row["kind"], row["messages_received"], row["ids_received"]) == ("iwant", 2, 2)


def test_copies_have_marks_of_what_the_receiver_asked_for_or_refused(tmp_path: Path) -> None:
    arrivals = (
        (10, "deliver_msg", "a", "m1"),
        (20, "duplicated_msg", "b", "m1"),
        (30, "deliver_msg", "a", "m2"),
        (50, "duplicated_msg", "b", "m2"),
        (60, "deliver_msg", "b", "m3"),
    )
    requests = (
        ("idontwant", 15, "out", "a", "m1"),
        ("iwant", 40, "out", "b", "m2"),
        ("idontwant", 45, "in", "b", "m2"),
        ("iwant", 55, "in", "b", "m3"),
    )
    files: dict[str, Rows] = defaultdict(list)
    for time, kind, peer, message in arrivals:
        files["msg_arrival"].append({
            "timestamp": time, "type": "msg_arrival", "producer_id": "me", "sub_type": kind,
            "remote_peer_id": peer, "topic": "t", "msg_id": message, "local": False,
            "msg_size": 9, "seq_no": "00",
        })  # fmt: skip
    for kind, time, way, peer, message in requests:
        files[kind].append({
            "timestamp": time, "type": kind, "producer_id": "me", "is_og": True, "direction": way,
            "remote_peer_id": peer, "msg_ids": [message], "msgs": 1,
        })  # fmt: skip
    for name, rows in files.items():
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}_1.parquet")
    marks = {
        (row["message"], row["previous_hop"]): tuple(row[flag.name] for flag in COPY_FLAGS)
        for row in take(tmp_path).table("receptions").to_pylist()
    }
    assert marks == {
        ("m1", "a"): (False, True, False), ("m1", "b"): (True, False, False),
        ("m2", "a"): (False, False, False), ("m2", "b"): (False, False, True),
        ("m3", "b"): (False, False, False),
    }  # fmt: skip


@pytest.mark.parametrize(
    "table",
    [
        {"timestamp": [1], "type": ["x"], "producer_id": ["p"], "sub_type": [1], "topic": ["t"]},
        {
            "timestamp": ["1"],
            "type": ["x"],
            "producer_id": ["p"],
            "sub_type": ["a"],
            "topic": ["t"],
        },
        {"timestamp": [1], "type": ["x"], "producer_id": ["p"], "topic": ["t"], "payload": ["{}"]},
        {"interval": [1], "src": ["a"], "dst": ["b"]},
        {
            **{"timestamp": [1], "type": ["iwant"], "producer_id": ["p"], "is_og": [True]},
            **{"direction": ["in"], "remote_peer_id": ["q"], "msg_ids": [[b"m"]], "msgs": [1]},
        },
    ],
)
def test_other_parquet_is_not_of_hermes(tmp_path: Path, table: dict[str, Any]) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(table), path)
    assert SOURCE.recognises(str(path), path.read_bytes()) is None
    assert SOURCE.recognises(str(path), b"PAR1 but not quite") is None
