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

from tests.support.staged import Taken, staged
from vizpub.ingest.inputs.files import find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.hermes import Hermes

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
TAGGED = {
    "ProducerID": "producer_id", "SubType": "sub_type", "RemotePeerID": "remote_peer_id",
    "MsgID": "msg_id", "MsgSize": "msg_size", "SeqNo": "seq_no",
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


@pytest.fixture(scope="module")
def events(libp2p_small: Path) -> list[dict[str, Any]]:
    lines: list[str] = []
    for path in sorted((libp2p_small / "json").glob("*.gz")):
        lines += gzip.decompress(path.read_bytes()).decode().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module", params=[{}, TAGGED], ids=["untagged", "tagged"])
def taken(
    request: pytest.FixtureRequest,
    events: list[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Taken:
    folder, rows = tmp_path_factory.mktemp("hermes"), defaultdict[tuple[str, str], Rows](list)
    for file, row in filter(None, map(as_hermes, events)):
        rows[row["ProducerID"], file].append(row)
    for (peer, file), told in rows.items():
        table = pa.Table.from_pylist(told)
        if request.param:
            table = table.rename_columns([TAGGED.get(n, n.lower()) for n in table.column_names])
        (folder / peer).mkdir(exist_ok=True)
        pq.write_table(table, folder / peer / f"{file}_1.parquet", row_group_size=500)
    other = {"Timestamp": [1], "Type": ["ihave"], "ProducerID": ["p"], "IsOg": [True]}
    pq.write_table(pa.table(other), folder / "ihave_1.parquet")
    found = take_inventory(None, find_files([str(folder)]), SOURCES)
    assert found.source == "hermes"
    assert len(found.files) == len(rows)
    assert [Path(path).name for path, _ in found.skipped] == ["ihave_1.parquet"]
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
    assert taken.seen.traffic is None


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
    ],
)
def test_other_parquet_is_not_of_hermes(tmp_path: Path, table: dict[str, Any]) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(table), path)
    assert SOURCE.recognises(str(path), path.read_bytes()) is None
    assert SOURCE.recognises(str(path), b"PAR1 but not quite") is None
