"""A recorded trace, rewritten as ethp2p would have written it, against the trace itself;
small traces of its own sessions; and messages that vizpub exported.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from base58 import b58encode

from tests.support.grouped import play_groups
from tests.support.played import write_play
from tests.support.staged import OF_TRACES, Taken, staged, take
from vizpub.ingest.inputs.files import find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.bctrace.events import PARTS, UNLISTED
from vizpub.ingest.sources.bctrace.source import NO_HEADER, Bctrace
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.model.clock import OPEN
from vizpub.model.run import DUPLICATES
from vizpub.model.tables import COPY_FLAGS
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
CONTROL = {
    ("sendRPC", "ihave"): "hs", ("sendRPC", "iwant"): "ws", ("sendRPC", "idontwant"): "ns",
    ("recvRPC", "ihave"): "hr", ("recvRPC", "iwant"): "wr", ("recvRPC", "idontwant"): "nr",
}  # fmt: skip
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


def size_of(message: str) -> int | None:
    """The size of a message by its id, unknown of some."""
    return 100 * (int(message[-2:], 16) % 7) or None


def transfers(event: dict[str, Any]) -> Iterator[list[Any]]:
    """What ethp2p writes of an RPC that a recorded event sends or receives."""
    for what in event.keys() & {"sendRPC", "recvRPC"}:
        other = b58encode(b64decode(event[what].get("sendTo") or event[what]["receivedFrom"]))
        meta = event[what].get("meta", {})
        for message in meta.get("messages", ()) if what == "sendRPC" else ():
            id_ = b64decode(message["messageID"]).hex()
            yield ["ms", other.decode(), message["topic"], id_, size_of(id_)]
        for kind, entries in meta.get("control", {}).items():
            for ids in (e["messageIDs"] for e in entries if (what, kind) in CONTROL):
                for id_ in ids:
                    row = [CONTROL[what, kind], other.decode(), "news", b64decode(id_).hex()]
                    yield [*row, len(ids)]


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
def events(libp2p_small: Path) -> list[dict[str, Any]]:
    lines: list[bytes] = []
    for path in sorted((libp2p_small / "json").glob("*.gz")):
        lines += gzip.decompress(path.read_bytes()).splitlines()
    return sorted(map(json.loads, lines), key=lambda event: event["timestamp"])


@pytest.fixture(scope="module")
def rewritten(events: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Taken:
    ids = sorted({event["peerID"] for event in events})
    header = {
        **HEADER, "t0": "2000-01-01T00:00:00Z", "nodes": [f"n{n}" for n in range(len(ids))],
        "peer_ids": [b58encode(b64decode(id_)).decode() for id_ in ids],
    }  # fmt: skip
    rows: list[Any] = []
    for event in events:
        of = [(event["timestamp"] - T0_NS) // 1000, ids.index(event["peerID"])]
        rows += ([*of, *row] for row in transfers(event))
        for what in event.keys() & CODES.keys():
            code, fields = CODES[what]
            row = [*of, code]
            for field in fields:
                value = event[what].get(field)
                if value is not None and field in ("peerID", "receivedFrom"):
                    value = go_text(b64decode(value))
                row.append(b64decode(value).hex() if field == "messageID" else value)
            rows.append(row)
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


def plain(peer: str) -> str:
    return b58encode(b64decode(peer)).decode()


def names_of(taken: Taken) -> dict[str, str]:
    """The ids of nodes by their names."""
    rows = taken.records("attributes")
    return {row["peer"]: row["value"] for row in rows if row["key"] == "peer_id"}


def test_control_is_counted_as_the_recorded_rpcs_have_it(
    events: list[dict[str, Any]], rewritten: Taken
) -> None:
    first_second = min(event["timestamp"] for event in events) // 10**9
    wanted: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for event in events:
        for what in event.keys() & {"sendRPC", "recvRPC"}:
            way = {"sendRPC": "sent", "recvRPC": "received"}[what]
            of = plain(event["peerID"]), event["timestamp"] // 10**9 - first_second
            for kind, entries in event[what].get("meta", {}).get("control", {}).items():
                for entry in entries if (what, kind) in CONTROL else ():
                    counts = wanted[*of, kind]
                    counts[f"messages_{way}"] += 1
                    counts[f"ids_{way}"] += len(entry["messageIDs"])
    names = names_of(rewritten)
    assert {row["kind"] for row in rewritten.records("control")} == {"ihave", "iwant", "idontwant"}
    found = {
        (names[row["peer"]], row["interval"], row["kind"]): {
            name: row[name]
            for way in ("sent", "received")
            for name in (f"messages_{way}", f"ids_{way}")
        }
        for row in rewritten.records("control")
    }
    assert found == {
        of: dict.fromkeys(found[of], 0) | dict(counts) for of, counts in wanted.items()
    }
    assert max(counts["ids_sent"] - counts["messages_sent"] for counts in wanted.values()) > 5
    assert "messages_dropped" not in rewritten.table("control").column_names


def test_copies_are_marked_as_those_of_the_trace(original: Taken, rewritten: Taken) -> None:
    columns = "message", "peer", "previous_hop", "tick", *(flag.name for flag in COPY_FLAGS)
    names = names_of(rewritten)
    found = {
        (message, names[peer], names.get(sender, sender), *rest)
        for message, peer, sender, *rest in rewritten.rows("receptions", *columns)
    }
    assert found == original.rows("receptions", *columns)
    assert {row[-3:] for row in found} > {(True, False, False), (False, False, True)}


def test_messages_sent_are_traffic_with_bytes_where_all_sizes_are_known(
    events: list[dict[str, Any]], rewritten: Taken
) -> None:
    seconds = [event["timestamp"] // 10**9 for event in events]
    length = max(seconds) - min(seconds) + 1
    sizes: dict[tuple[Any, ...], list[int | None]] = {
        (peer, interval): []
        for peer in {plain(event["peerID"]) for event in events}
        for interval in range(length)
    }
    for event, second in zip(events, seconds, strict=True):
        for message in event.get("sendRPC", {}).get("meta", {}).get("messages", ()):
            size = size_of(b64decode(message["messageID"]).hex())
            sizes[plain(event["peerID"]), second - min(seconds)].append(size)
    names = names_of(rewritten)
    columns = "interval", "publication_messages_sent", "publication_bytes_sent"
    found = {(names[peer], *rest) for peer, *rest in rewritten.rows("traffic", "peer", *columns)}
    assert found == {
        (*of, len(each), None if None in each else sum(each))  # type: ignore[arg-type]
        for of, each in sizes.items()
    }
    known = {size_of(message) is None for message, _ in rewritten.rows("sizes", "message", "bytes")}
    assert known == {False}
    assert None in {row[-1] for row in found}
    unknown = "control_messages_sent", "publication_messages_received", "rpcs_sent", "dropped"
    assert rewritten.rows("traffic", *unknown) == {(None,) * 4}


def test_traces_without_control_or_messages_sent_leave_them_unknown(tmp_path: Path) -> None:
    found = take(
        written(tmp_path / "t", HEADER, [0, 0, "pb", "t", "m"], [1, 1, "dl", "0", "t", "m"])
    )
    assert (found.seen.control, found.seen.traffic) == (None, None)
    assert not {flag.name for flag in COPY_FLAGS} & {*found.table("receptions").column_names}
    refused = ([2, 0, "ns", "1", "t", "m", 0], [2, 0, "hs", "1", "t", "m"], [2, 0, "ms", "1", "t"])
    again = take(written(tmp_path / "u", HEADER, [1, 0, "hs", "1", "t", "m", 1], *refused))
    assert [line for _, line, *_ in again.staged.quarantine] == [3, 4, 5]
    assert again.rows("control", "peer", "kind", "messages_sent") == {("n0", "ihave", 1)}


def test_peer_that_is_not_listed_only_has_arrivals_and_rejections(tmp_path: Path) -> None:
    events = (
        [0, 1, "pb", "t", "m"],
        [5, 0, "ws", "nX", "t", "m", 1],
        [6, 0, "ms", "nX", "t", "m"],
        [7, 0, "rj", "nX", "t", "q", "no"],
        [10, 0, "dl", "nX", "t", "m"],
    )
    found = take(written(tmp_path / "t", HEADER, *events))
    assert [line for _, line, *_ in found.staged.quarantine] == [3, 4]
    assert not found.staged.tables["requests"]
    assert found.told.notes[UNLISTED] == 2


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


def test_exported_size_is_read_again_and_nothing_is_said_of_what_was_sent(tmp_path: Path) -> None:
    made = play_groups(tmp_path, 1)
    row = next(row for row in made.rows["publications"] if row["name"] == "m3")
    row["bytes"] = 1234
    for copy in made.rows["receptions"]:
        copy["previous_hop"] = copy["peer"] and 0
    for is_known in (True, False):
        row["publication_known"] = is_known
        write_play(tmp_path / str(is_known), made)
        again, _ = round_trip(open_run(tmp_path / str(is_known), made.name), "m3", tmp_path)
        assert again.rows("publications", "bytes") == ({(1234,)} if is_known else set())
        assert again.rows("sizes", "message", "bytes") == {("m3", 1234)}
        assert again.seen.traffic is None
