"""A recorded trace, rewritten as ethp2p would have written it, against the trace itself;
small traces of its own sessions; and messages that vizpub exported.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import Counter, defaultdict
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from base58 import b58encode

from tests.support.grouped import play_groups
from tests.support.staged import OF_TRACES, Taken, staged, take
from vizpub.ingest.inputs.files import find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.bctrace import Bctrace
from vizpub.ingest.sources.bctrace.events import PARTS, UNLISTED
from vizpub.ingest.sources.bctrace.source import NO_HEADER
from vizpub.ingest.sources.libp2p import Libp2p
from vizpub.model.clock import OPEN
from vizpub.model.run import DUPLICATES
from vizpub.questions.names import NamedRun
from vizpub.questions.traces.bctrace import write_bctrace
from vizpub.runstore.store import StoredRun, open_run

T0_NS = 946_684_800 * 10**9
# As sim/strategy_gossipsub.go of ethp2p: the code of an event, and its fields.
CODES = {
    "publishMessage": ("pb", ("topic", "messageID")),
    "rejectMessage": ("rj", ("receivedFrom", "topic", "messageID", "reason")),
    "duplicateMessage": ("du", ("receivedFrom", "topic", "messageID")),
    "deliverMessage": ("dl", ("receivedFrom", "topic", "messageID")),
    "onNewOutboundStream": ("pa", ("peerID", "proto")),
    "onClosedOutboundStream": ("pg", ("peerID",)),
    "join": ("tj", ("topic",)),
    "leave": ("tl", ("topic",)),
    "graft": ("mg", ("peerID", "topic")),
    "prune": ("mp", ("peerID", "topic")),
}
HEADER = {
    "v": 1, "t0": "2026-03-28T00:00:00Z", "nodes": ["n0", "n1", "n2"],
    "topology": {
        "nodes": [{"num": 0, "upload_bw_mbps": 50, "download_bw_mbps": 0, "country": "CH"}],
        "edges": [{"source": 0, "target": 1, "latency_ms": 20}],
    },
    "config": {}, "decoderName": "ethp2p",
}  # fmt: skip


def go_text(content: bytes) -> str:
    """Bytes as Go's encoding/json writes a string of them: rune by rune."""
    text = ""
    while content:
        for size in (1, 2, 3, 4):
            try:
                text += content[:size].decode()
            except UnicodeDecodeError:
                continue
            content = content[size:]
            break
        else:
            text, content = text + "\ufffd", content[1:]
    return text


def written(path: Path, header: object, *events: object) -> Path:
    lines = [header, *events, {"end": True, "duration": 1, "index": [[0, 1]]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def original(libp2p_small: Path) -> Taken:
    found = take(libp2p_small / "json")
    assert found.staged.tables.keys() == Libp2p.tables.keys()
    return found


@pytest.fixture(scope="module")
def rewritten(libp2p_small: Path, tmp_path_factory: pytest.TempPathFactory) -> Taken:
    lines: list[bytes] = []
    for path in sorted((libp2p_small / "json").glob("*.gz")):
        lines += gzip.decompress(path.read_bytes()).splitlines()
    events = sorted(map(json.loads, lines), key=lambda event: event["timestamp"])
    ids = sorted({event["peerID"] for event in events})
    header = {
        **HEADER, "t0": "2000-01-01T00:00:00Z", "nodes": [f"n{n}" for n in range(len(ids))],
        "peer_ids": [b58encode(b64decode(id_)).decode() for id_ in ids],
    }  # fmt: skip
    rows: list[Any] = []
    for event in events:
        for what in event.keys() & CODES.keys():
            code, fields = CODES[what]
            row = [(event["timestamp"] - T0_NS) // 1000, ids.index(event["peerID"]), code]
            for field in fields:
                value = event[what].get(field)
                if value is not None and field in ("peerID", "receivedFrom"):
                    value = go_text(b64decode(value))
                row.append(b64decode(value).hex() if field == "messageID" else value)
            rows.append(row)
    rows.insert(7, [1, 0, "hs", "12D3", "t", "m", 1])
    return take(written(tmp_path_factory.mktemp("bctrace") / "a.bctrace", header, *rows))


@pytest.mark.parametrize(("table", "columns"), OF_TRACES.items())
def test_rewritten_events_mean_what_the_trace_means(
    original: Taken, rewritten: Taken, table: str, columns: tuple[str, ...]
) -> None:
    assert not rewritten.staged.quarantine
    ids = {
        row["peer"]: row["value"]
        for row in rewritten.records("attributes")
        if row["key"] == "peer_id"
    }
    peers = [name in ("src", "dst", "peer", "publisher", "previous_hop") for name in columns]
    found = {
        tuple(ids.get(v, v) if is_peer else v for v, is_peer in zip(row, peers, strict=True))
        for row in rewritten.rows(table, *columns)
    }
    expected = {
        row
        for row in original.rows(table, *columns)
        # The header lists the nodes that write the trace; streams to others cannot be resolved.
        if table != "links" or row[1] in ids.values()
    }
    assert len(found) > 20 or table == "rejections"
    assert found == expected


def test_nodes_of_the_header_are_there_all_along_with_what_the_topology_says(
    tmp_path: Path,
) -> None:
    header = {**HEADER, "peer_ids": ["a", "b", "n2"]}
    found = take(written(tmp_path / "t", header, [1_200_000, 1, "tj", "t"]))
    assert found.rows("presence", "peer", "valid_from", "valid_to") == {
        (name, 0, OPEN) for name in HEADER["nodes"]
    }
    assert found.rows("attributes", "peer", "key", "value") == {
        ("n0", "upload_bw_mbps", "50"), ("n0", "country", "CH"),
        ("n0", "peer_id", "a"), ("n1", "peer_id", "b"),
    }  # fmt: skip
    assert (found.told.epoch, found.told.clock.last) == ("2026-03-28T00:00:01Z", 0)


def test_files_of_hosts_are_one_run_each_with_its_own_beginning(tmp_path: Path) -> None:
    later = {**HEADER, "t0": "2026-03-28T00:00:00.5+00:00"}
    one = written(tmp_path / "one", HEADER, [0, 0, "mg", "1", "t"])
    found = take(one, written(tmp_path / "two", later, [7, 1, "mg", "n0", "t"]))
    assert found.rows("links", "src", "dst", "valid_from") == {
        ("n0", "n1", 0), ("n1", "n0", 500_007)
    }  # fmt: skip
    undated = take(written(tmp_path / "undated", {**HEADER, "t0": None}, [7, 1, "tj", "t"]))
    assert undated.told.epoch is None


def test_sessions_of_ethp2p_are_publications_and_first_arrivals(tmp_path: Path) -> None:
    events = (
        [0, 0, "ph", "1", 1, ["t"]],
        [1, 1, "ps", "2", "t"],
        [2, 0, "ss", "t", "m", 0],
        [3, 0, "cs", "1", "t", "m", 1024],
        [4, 1, "ss", "t", "m", 1],
        [5, 1, "cr", "0", "t", "m", 0],
        [6, 1, "sd", "t", "m", 4],
        [7, 0, "pu", "2", "t"],
        [8, 0, "pg", "1"],
    )
    found = take(written(tmp_path / "t", HEADER, *events))
    assert not found.staged.quarantine
    assert found.rows("links", "src", "dst", "layer", "topic", "valid_from", "valid_to") == {
        ("n0", "n1", "streams", None, 0, 8)
    }
    assert found.rows("subscriptions", "peer", "topic", "valid_from", "valid_to") == {
        ("n1", "t", 0, OPEN), ("n2", "t", 1, 7)
    }  # fmt: skip
    assert found.rows("publications", "message", "publisher", "time_us") == {("m", "n0", 2)}
    assert found.rows("receptions", "message", "peer", "previous_hop", "time_us", "first") == {
        ("m", "n1", None, 6, True)
    }
    assert found.told.protocol == "ethp2p"
    assert {DUPLICATES, "rejections"} <= {*found.told.unknown}


def test_parts_are_counted_by_peer_interval_and_verdict(tmp_path: Path) -> None:
    draw, names = Random(1), ["useful", "redundant", "late", "late", "invalid", "pending"]
    wanted: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    events: list[list[Any]] = [[0, 2, "tj", "t"]]
    for time_us in sorted(draw.randrange(6_000_000) for _ in range(200)):
        peer, verdict, size = draw.randrange(2), draw.randrange(6), draw.randrange(2000)
        code, value = draw.choice([("cr", verdict), ("cs", size)])
        events.append([time_us, peer, code, "1", "t", "m", value])
        sums = wanted[f"n{peer}", time_us // 1_000_000]
        sums.update({"part_bytes_sent": size} if code == "cs" else [f"parts_{names[verdict]}"])
    refused = ([9, 0, "cr", "1", "t", "m", 6], [9, 0, "cr", "1"], [9, 0, "cs", "1", "t", "m", -1])
    found = take(written(tmp_path / "t", HEADER, *events, *refused))
    assert [line for _, line, *_ in found.staged.quarantine] == [203, 204, 205]
    gauges = ["part_bytes_sent", *(f"parts_{name}" for name in dict.fromkeys(names))]
    assert found.rows("gauges", "peer", "interval", "gauge", "value") == {
        (*of, name, sums[name]) for of, sums in wanted.items() for name in gauges
    }
    assert PARTS not in found.told.unknown
    without = take(written(tmp_path / "none", HEADER, events[0]))
    assert PARTS in without.told.unknown
    assert without.seen.gauges is None


def test_sizes_are_those_of_publications_where_they_are_given(tmp_path: Path) -> None:
    events = (
        [1, 0, "pb", "t", "a", 512],
        [2, 0, "pb", "t", "b", 0],
        [3, 0, "pb", "t", "c", None],
        [4, 0, "pb", "t", "d"],
    )
    found = take(written(tmp_path / "t", HEADER, *events))
    assert not found.staged.quarantine
    sizes = found.rows("publications", "message", "bytes")
    assert sizes == {("a", 512), ("b", None), ("c", None), ("d", None)}


def test_events_that_cannot_be_read_are_refused_or_noted(tmp_path: Path) -> None:
    events = (
        [0, 0, "tj", "t"],
        [1, 3, "tj", "t"],
        [-(10**15), 0, "tj", "t"],
        [1.5, 0, "tj", "t"],
        [2, 0, "mg", "n7", "t"],
        [2, 0, "pb", "t"],
        [2, 0, "pb", "t", "a\tb"],
        [2, 0, "pb", "t", "m", "9 B"],
        ["no", "event"],
        {"v": 1},
        [3, 0, "zz"],
        [4, 1, "dl", "n7", "t", "m"],
        [5, 0, "va"],
    )
    found = take(written(tmp_path / "t", HEADER, *events))
    assert [line for _, line, *_ in found.staged.quarantine] == [*range(3, 12)]
    assert found.rows("receptions", "peer", "previous_hop") == {("n1", None)}
    assert found.told.notes.keys() >= {"events 'zz'", UNLISTED}


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": ["n0", "n0"]}, {"nodes": []}, {"nodes": [1]}, {"peer_ids": ["a"]},
        {"t0": "yesterday"}, {"v": 2},
    ],
    ids=str,
)  # fmt: skip
def test_broken_header_refuses_the_events_after_it(tmp_path: Path, change: object) -> None:
    good = written(tmp_path / "good", HEADER, [0, 0, "tj", "t"])
    bad = written(tmp_path / "bad", HEADER | dict(change), [0, 0, "tj", "t"])  # type: ignore[call-overload]
    refused = take(good, bad).staged.quarantine
    assert [(file, line) for file, line, *_ in refused] == [("bad", n) for n in (1, 2, 3)]
    assert {why for _, line, why, _ in refused if line > 1} == {NO_HEADER}


def test_range_of_lines_is_read_with_the_header_of_its_file(tmp_path: Path) -> None:
    path = written(tmp_path / "t", HEADER, *([n, n % 3, "tj", f"t{n}"] for n in range(30)))
    source = Bctrace()
    files = take_inventory(None, find_files([str(path)]), SOURCES).files
    (whole,) = source.splits(files)
    size = path.stat().st_size
    parts = [whole._replace(stop=size // 2), whole._replace(start=size // 2, line=0)]
    source.splits = lambda _: parts  # type: ignore[method-assign]
    found = Taken(source, staged(source, files, SourceOptions()), SourceOptions())
    assert len(found.rows("subscriptions", "peer", "topic")) == 30


def round_trip(run: StoredRun, message: str, folder: Path) -> tuple[Taken, int]:
    """What an exported message is when it is read again, and the µs at which the trace begins."""
    out = StringIO()
    write_bctrace(NamedRun(run), message, out)
    path = folder / "m.ndjson"
    path.write_text(out.getvalue())
    first = json.loads(out.getvalue().splitlines()[1])[0]
    row = next(r for r in run.read("publications").to_pylist() if r["name"] == message)
    arrivals = [r for r in run.read("receptions").to_pylist() if r["message"] == row["message"]]
    times = [r["time_us"] for r in (row, *arrivals) if r["time_us"] is not None]
    return take(path), min(times) - first


def test_exported_message_is_read_as_what_it_was(gossipsub: StoredRun, tmp_path: Path) -> None:
    peers, topics = (gossipsub.read(of)["name"].to_pylist() for of in ("peers", "topics"))
    arrivals = gossipsub.read("receptions").to_pylist()
    for row in gossipsub.read("publications").to_pylist()[::16]:
        again, begin = round_trip(gossipsub, row["name"], tmp_path)
        assert not again.staged.quarantine
        assert again.rows("publications", "message", "topic", "publisher", "time_us") == {
            (row["name"], topics[row["topic"]], peers[row["publisher"]], row["time_us"] - begin)
        }
        of_it = [r for r in arrivals if r["message"] == row["message"]]
        columns = ("peer", "previous_hop", "time_us", "first")
        assert again.rows("receptions", *columns) == {
            (peers[r["peer"]], peers[r["previous_hop"]], r["time_us"] - begin, r["first"])
            for r in of_it
        }
        first, last = row["tick"], max(r["tick"] for r in of_it)
        assert again.rows("links", "src", "dst", "layer", "topic", "valid_from", "valid_to") == {
            (
                *(peers[r["src"]], peers[r["dst"]], r["layer"], topics[r["topic"]]),
                max(r["valid_from"], first) - begin,
                r["valid_to"] - begin if r["valid_to"] <= last else OPEN,
            )
            for r in gossipsub.read("links").to_pylist()
            if r["topic"] == row["topic"] and r["valid_from"] <= last and r["valid_to"] > first
        }


def test_exported_attributes_are_read_again(tmp_path: Path) -> None:
    made = play_groups(tmp_path, 1)
    again, _ = round_trip(open_run(tmp_path, made.name), "m3", tmp_path)
    assert (made.peers[0], "country", "CH") in again.rows("attributes", "peer", "key", "value")
