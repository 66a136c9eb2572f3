"""Logs of a real run of the gossipsub interoperability tester, against the truth beside them."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import networkx
import pyarrow.compute as pc
import pytest

from tests.support.staged import Taken, staged
from vizpub.ingest.inputs.files import InputFile, find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.interop import Interop
from vizpub.model.tables import COPY_FLAGS

SOURCE = Interop()
FIRST = '{"time":"2000-01-01T00:00:01Z","level":"INFO","msg":"PeerID","id":"%s","node_id":0}\n'
SENT = (
    '{"time":"2000-01-01T00:00:0%d.%dZ","level":"INFO","msg":"%s","service":"gossipsub",'
    '"%s":"%s","topic":"t","id":"1"}\n'
)


def take(*paths: Path) -> Taken:
    files = [InputFile(str(path), "log", path.stat().st_size, "") for path in paths]
    options = SourceOptions()
    return Taken(SOURCE, staged(SOURCE, files, options), options)


@pytest.fixture(scope="module")
def folder(outside_data: Callable[[str], Path]) -> Path:
    return outside_data("interop_small")


@pytest.fixture(scope="module")
def truth(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((folder / "truth.json.gz").read_bytes()))
    return found


@pytest.fixture(scope="module")
def taken(folder: Path) -> Taken:
    return take(*sorted(folder.glob("hosts/*/*.gz")))


@pytest.fixture(scope="module")
def names(truth: dict[str, Any]) -> dict[int, str]:
    return {node["idx"]: node["peer_id"] for node in truth["nodes"]}


def test_first_arrivals_and_their_senders_equal_the_truth(
    taken: Taken, truth: dict[str, Any], names: dict[int, str]
) -> None:
    assert not taken.staged.quarantine
    found = {
        (row["message"], row["peer"], row["previous_hop"])
        for row in taken.records("receptions")
        if row["first"]
    }
    assert found == {
        (str(int(m["id_hex"], 16)), names[d["node"]], names[d["from"]])
        for m in truth["messages"]
        for d in m["deliveries"]
    }


def test_duplicates_of_each_peer_equal_the_truth(
    taken: Taken, truth: dict[str, Any], names: dict[int, str]
) -> None:
    again = [row for row in taken.records("receptions") if not row["first"]]
    assert Counter((row["message"], row["peer"]) for row in again) == Counter(
        {
            (str(int(m["id_hex"], 16)), names[int(node)]): count
            for m in truth["messages"]
            for node, count in m["duplicates_per_node"].items()
        }
    )


def test_publishers_and_subscribers_equal_the_truth(
    taken: Taken, truth: dict[str, Any], names: dict[int, str]
) -> None:
    published = {(row["message"], row["publisher"]) for row in taken.records("publications")}
    assert published == {
        (str(int(m["id_hex"], 16)), names[m["publisher"]]) for m in truth["messages"]
    }
    assert taken.rows("subscriptions", "peer", "topic") == {
        (name, "foobar") for name in names.values()
    }


def test_traffic_equals_the_published_counts(taken: Taken) -> None:
    """As interop_small/README.md has them, without the 254 subscriptions that are not sent."""
    traffic = taken.table("traffic")
    names = ("publication_messages", "control_messages")
    sums = [
        pc.sum(traffic[f"{name}_{way}"]).as_py() for name in names for way in ("sent", "received")
    ]
    control = 1863 + 932 + 105 + 24 + 4
    assert sums == [2095, 2095, control, control + 254]
    assert traffic["dropped"].null_count == len(traffic)
    by_kind = (
        taken.table("control")
        .group_by("kind")
        .aggregate([(f"messages_{way}", "sum") for way in ("sent", "received")])
    )
    assert {tuple(row.values()) for row in by_kind.to_pylist()} == {
        ("ihave", 1863, 1863),
        ("idontwant", 932, 932),
        ("graft", 105, 105),
        ("prune", 24, 24),
        ("iwant", 4, 4),
        ("subscribe", 0, 254),
    }
    ids = [row for row in taken.records("control") if row["kind"] in ("iwant", "idontwant")]
    assert all(row["ids_sent"] == row["messages_sent"] for row in ids)


def requested_copies(log: Path) -> Iterator[tuple[Any, ...]]:
    """What a node of the network received: message, sender, after and before its IDONTWANT, and by
    its IWANT.
    """
    requests: dict[str, dict[Any, int]] = {"Sent Idontwant": {}, "Sent Iwant": {}}
    copies = []
    lines = gzip.decompress(log.read_bytes()).splitlines()
    for number, line in enumerate(map(json.loads, lines)):
        for message in json.loads(line["ids"]) if line["msg"] in requests else ():
            asked = line["to"] if line["msg"] == "Sent Iwant" else None
            requests[line["msg"]].setdefault((asked, str(message)), number)
        if line["msg"] == "Received Message":
            copies.append((number, line["from"], line["id"]))
    never = len(copies) + 10**6
    for number, sender, message in copies:
        unwanted = requests["Sent Idontwant"].get((None, message), never)
        by_iwant = requests["Sent Iwant"].get((sender, message), never) < number
        yield message, sender, unwanted < number, number < unwanted < never, by_iwant


def test_copies_have_marks_of_what_nodes_asked_for_or_refused(folder: Path, taken: Taken) -> None:
    wanted = Counter(chain.from_iterable(map(requested_copies, folder.glob("hosts/*/*.gz"))))
    columns = "message", "previous_hop", *(flag.name for flag in COPY_FLAGS)
    found = Counter(tuple(row[name] for name in columns) for row in taken.records("receptions"))
    assert found == wanted
    assert {row[2:] for row in found} > {(True, False, False), (False, False, True)}


def test_nodes_that_log_received_messages_alone_tell_of_nothing_else(tmp_path: Path) -> None:
    """As those of rust-libp2p and jvm-libp2p do."""
    whole, partial = tmp_path / "go.log", tmp_path / "rust.log"
    arrival = SENT % (3, 1, "Received Message", "from", "c")
    whole.write_text(FIRST % "a" + SENT % (2, 5, "Sent Graft", "to", "b") + arrival)
    partial.write_text(FIRST % "b" + arrival)
    found = take(whole, partial)
    marks = found.rows("receptions", "peer", *(flag.name for flag in COPY_FLAGS))
    assert marks == {("a", False, False, False), ("b", None, None, None)}
    columns = "control_messages_sent", "control_messages_received", "publication_messages_sent"
    assert {row[1:] for row in found.rows("traffic", "peer", *columns) if row[0] == "b"} == {
        (None, None, None)
    }
    received = found.rows("traffic", "peer", "publication_messages_received")
    assert received == {(peer, count) for peer in "ab" for count in (0, 1)}


def test_peers_of_small_logs_are_told_apart(tmp_path: Path) -> None:
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    one.write_text(FIRST % "a" + SENT % (2, 5, "Sent Message", "to", "b"))
    other.write_text(
        FIRST % "b"
        + SENT % (2, 7, "Received Message", "from", "a")
        + SENT % (3, 1, "Received Message", "from", "a")
        + "not a line\n"
    )
    found = take(one, other)
    assert [(file, line) for file, line, *_ in found.staged.quarantine] == [("other.log", 4)]
    assert found.rows("publications", "message", "publisher", "time_us") == {("1", "a", 1_500_000)}
    assert found.rows("receptions", "peer", "previous_hop", "time_us", "first") == {
        ("b", "a", 1_700_000, True),
        ("b", "a", 2_100_000, False),
    }
    assert found.told.unknown
    unknown = ("dropped", "rpcs_sent", "rpcs_received")
    assert found.rows("traffic", *unknown) == {(None,) * 3}


PATHS = ("go-libp2p/gossipsub-bin", "rust-libp2p/target/debug/rust-libp2p-gossip")


@pytest.fixture
def tested(folder: Path, tmp_path: Path) -> Path:
    """The folder of a run of the tester: logs, and what it writes beside them."""
    hosts = []
    for log in sorted(folder.glob("hosts/*/*.gz")):
        name = log.parent.name
        goal = tmp_path / "hosts" / name / log.name
        goal.parent.mkdir(parents=True)
        goal.write_bytes(log.read_bytes())
        number = int(name.removeprefix("node"))
        hosts += [
            f"  {name}:", f"    network_node_id: {number % 3}", "    processes:",
            "    - args: --params", "        /somewhere/params.json", "      environment: {}",
            f"      path: {PATHS[number % 2]}",
        ]  # fmt: skip
    text = "\n".join(["general:", "  stop_time: 9 min", "hosts:", *hosts, "network:", "  x: 1"])
    (tmp_path / "shadow.yaml").write_text(text)
    graph = networkx.DiGraph()
    for label in ("europe-supernode", "na_east-fullnode", "moon"):
        graph.add_node(label, host_bandwidth_up="1 Gbit", host_bandwidth_down="50 Mbit")
    graph.add_edge("europe-supernode", "moon", label="europe-supernode to moon", latency="9 ms")
    (tmp_path / "graph.gml").write_text("\n".join(networkx.generate_gml(graph)))
    script = [
        {"type": "ifNodeIDEquals", "nodeID": n, "instruction": {
            "type": "initGossipSub", "gossipSubParams": {"D": 8, "HeartbeatInitialDelay": n},
        }} for n in range(3)
    ]  # fmt: skip
    (tmp_path / "params.json").write_text(json.dumps({"script": script}))
    return tmp_path


def take_folder(folder: Path) -> Taken:
    found = take_inventory(None, find_files([str(folder)]), SOURCES)
    assert (found.source, found.skipped) == ("interop", [])
    return Taken(SOURCE, staged(SOURCE, found.files, SourceOptions()), SourceOptions())


def test_files_beside_the_logs_are_attributes_and_parameters(
    tested: Path, taken: Taken, names: dict[int, str]
) -> None:
    found = take_folder(tested)
    assert not found.staged.quarantine
    regions = [("europe", "supernode"), ("na_east", "fullnode"), ("moon", None)]
    expected = set()
    for number, peer in names.items():
        region, node_type = regions[number % 3]
        facts = {
            "implementation": ("go-libp2p", "rust-libp2p")[number % 2],
            "region": region, "node_type": node_type,
            "upload_bw_mbps": "1000", "download_bw_mbps": "50",
        }  # fmt: skip
        expected |= {(peer, key, value, 0) for key, value in facts.items() if value}
    assert found.rows("attributes", "peer", "key", "value", "valid_from") == expected
    assert found.told.parameters == {"D": 8, "implementations": "go-libp2p+rust-libp2p"}
    for table in ("links", "subscriptions", "publications", "receptions", "presence"):
        assert found.rows(table) == taken.rows(table)
    assert taken.seen.attributes is None


def sizes_in(folder: Path) -> dict[str, int]:
    """The bytes of each message, as the lines of the RPC logger have them."""
    sizes = {}

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if "dataLen" in values:
            first = b64decode(values["dataPrefix"])[:8]
            sizes[str(int.from_bytes(first, "big"))] = values["dataLen"]
        return values

    for log in folder.glob("hosts/*/*.gz"):
        for line in gzip.decompress(log.read_bytes()).splitlines():
            json.loads(line, object_pairs_hook=keep)
    return sizes


def test_sizes_of_messages_are_those_that_the_script_publishes(
    tested: Path, truth: dict[str, Any]
) -> None:
    raw = sizes_in(tested)
    script = [
        {"type": "ifNodeIDEquals", "nodeID": message["publisher"], "instruction": {
            "type": "publish", "topicID": "foobar", "messageID": number,
            "messageSizeBytes": raw[str(number)],
        }} for message in truth["messages"] if (number := int(message["id_hex"], 16)) != 3
    ]  # fmt: skip
    other = {"type": "publish", "messageID": 4, "messageSizeBytes": raw["4"] + 1}
    (tested / "params.json").write_text(json.dumps({"script": [*script, other]}))
    found = take_folder(tested)
    known = {name: None if name in ("3", "4") else size for name, size in raw.items()}
    assert found.rows("publications", "message", "bytes") == set(known.items())
    assert len(known) == 16
    assert found.rows("sizes", "message", "bytes") == {
        (name, size) for name, size in known.items() if size
    }
    for broken in ('{"script": [', '{"script": [{"type": "publish", "messageID": 1}]}'):
        (tested / "params.json").write_text(broken)
        assert not take_folder(tested).rows("sizes")


def test_parameters_that_cannot_be_read_are_refused(tested: Path) -> None:
    (tested / "params.json").write_text('{"script": [')
    (tested / "graph.gml").unlink()
    found = take_folder(tested)
    assert [(file, line) for file, line, *_ in found.staged.quarantine] == [("params.json", 1)]
    assert found.told.parameters == {"implementations": "go-libp2p+rust-libp2p"}
    assert {row["key"] for row in found.records("attributes")} == {"implementation"}


def test_files_of_shadow_beside_other_logs_do_not_choose_the_source(
    tested: Path, libp2p_small: Path
) -> None:
    for log in tested.glob("hosts/*/*"):
        log.unlink()
    trace = next((libp2p_small / "json").glob("*.gz"))
    (tested / trace.name).write_bytes(trace.read_bytes())
    found = take_inventory(None, find_files([str(tested)]), SOURCES)
    assert found.source == "libp2p"
    assert {Path(path).name for path, _ in found.skipped} == {
        "graph.gml", "params.json", "shadow.yaml",
    }  # fmt: skip
