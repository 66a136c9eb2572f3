"""Records that are bad in every way: each ends in the tables or in the quarantine, none in both.

What is in the tables is what another reader finds in the lines that were not refused.
"""

from __future__ import annotations

import csv
import gzip
import json
from base64 import b64decode
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from base58 import b58decode

from tests.support.fuzz import bent, mixture, odd_fields
from tests.support.protobuf import varint
from tests.support.staged import Staged, staged
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources.base import Source, SourceOptions
from vizpub.ingest.sources.deliveries import Deliveries
from vizpub.ingest.sources.edges.source import Edges
from vizpub.ingest.sources.hermes import Hermes
from vizpub.ingest.sources.interop import Interop
from vizpub.ingest.sources.libp2p.events import TraceEvent
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.tables.units import SECOND_US
from vizpub.ingest.sources.vizpub.source import Vizpub
from vizpub.model.clock import OPEN

LONG_LINE = 20_000
"""Bytes that a line may have here; some have more."""
SIZES = [pytest.param(1_500, id="few"), pytest.param(100_000, id="many", marks=pytest.mark.long)]


@pytest.fixture(params=SIZES)
def count(request: pytest.FixtureRequest) -> int:
    """Records of each file."""
    return int(request.param)


@pytest.fixture
def rng(count: int) -> Random:
    seed = count + 14
    print(f"seed {seed}")
    return Random(seed)


def folded(source: Source, encoding: str, path: Path) -> Staged:
    files = [InputFile(str(path), encoding, path.stat().st_size, "")]
    return staged(source, files, SourceOptions(max_line=LONG_LINE))


def reasons(found: Staged) -> dict[int, str]:
    """Of what is refused, by line; no line is there twice."""
    return by_line([(line, reason) for _, line, reason, _ in found.quarantine])


def by_line(rows: Sequence[tuple[int, str]]) -> dict[int, str]:
    found = dict(rows)
    assert len(found) == len(rows)
    assert all(found.values())
    return found


def events_of(found: Staged) -> dict[int, TraceEvent]:
    """Events by line; no line is there twice."""
    told = [(row, msgspec.msgpack.decode(row.record, type=TraceEvent)) for row in found.rows]
    own = [(row.line, event) for row, event in told if event.peer == row.peer]
    assert len(dict(own)) == len(own)
    return dict(own)


def write(path: Path, lines: Iterable[bytes]) -> list[bytes]:
    """Lines as a reader finds them: what was spoilt may have more of them, or fewer."""
    content = b"\n".join(lines)
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return content.split(b"\n")


def read_csv(
    lines: list[bytes], header: bytes, refused: dict[int, str]
) -> Counter[tuple[str | None, ...]]:
    """The rows that were not refused, by Python's own reader; a byte order mark is no text."""
    told = [
        line.removesuffix(b"\r").decode()
        for number, line in enumerate((line.removeprefix(BOM_UTF8) for line in lines), 1)
        if number not in refused and line.strip(b" ") not in (b"", b"\r")
    ]
    rows = (
        next(csv.reader([text], strict=True))
        for text in told
        if text.replace('"', "") != header.decode()
    )
    return Counter(tuple(value or None for value in row) for row in rows)


def microseconds(text: str) -> int:
    """Of seconds, which a text may have with digits after a point."""
    return int(Decimal(text) * SECOND_US)


def check_some(refused: dict[int, str], lines: int, *reasons: str) -> None:
    """Some lines were refused, most were not, and among the reasons are these."""
    assert lines * 0.1 < len(refused) < lines * 0.6
    for reason in reasons:
        assert any(reason in found for found in refused.values()), reason


def test_edges_are_taken_or_refused(tmp_path: Path, rng: Random, count: int) -> None:
    def row(number: int) -> list[str]:
        return [
            f"a{number}",
            f"b {number % 7}",
            str(number % 50),
            "" if number % 3 else "51",
            "mesh",
        ]

    header = b"src,dst,valid_from,valid_to,layer"

    def sound(n: int) -> bytes:
        return ",".join(row(n)).encode()

    made = mixture(rng, count, sound, lambda n: odd_fields(rng, row(n)))
    lines = write(tmp_path / "edges.csv", [header, *made])
    found = folded(Edges(), f"csv({header.decode()})", tmp_path / "edges.csv")
    told = reasons(found)
    check_some(
        told,
        count,
        "not 5 fields",
        "a quote that",
        "not UTF-8",
        "control char",
        "too large",
        "longer",
    )
    taken = Counter(
        (row.peer, dst, row.time, None if valid_to == OPEN else valid_to, layer)
        for row in found.rows
        if row.line not in told  # a reader knows no other records, so no outliers
        for dst, layer, _, valid_to in [json.loads(row.record)]
    )
    expected: Counter[Any] = Counter()
    for (src, dst, valid_from, valid_to, layer), times in read_csv(lines, header, told).items():
        end = None if valid_to is None or Decimal(valid_to) > 2**31 else microseconds(valid_to)
        begin = microseconds(valid_from or "")
        expected[src, dst, begin, end, layer or "overlay"] += times
    assert taken == expected


def test_plain_columns_are_taken_or_refused(tmp_path: Path, rng: Random, count: int) -> None:
    def row(number: int) -> list[str]:
        return [f"a{number}", f"b{number % 7}", str(number % 50)]

    made = mixture(
        rng,
        count,
        lambda n: " ".join(row(n)).encode(),
        lambda n: odd_fields(rng, row(n)).replace(b",", b"\t"),
    )
    lines = write(tmp_path / "links.txt", [b"# src dst time", *made])
    found = folded(Edges(), "columns(src,dst,interval)", tmp_path / "links.txt")
    told = reasons(found)
    check_some(
        told, count, "not 3 fields", "not UTF-8", "control char", "not an integer", "longer",
        "is negative",
    )  # fmt: skip
    expected = Counter(
        (src.decode(), dst.decode(), microseconds(at.decode()))
        for number, line in enumerate((line.removeprefix(BOM_UTF8) for line in lines), 1)
        if number not in told and (read := line.split()) and read[0][:1] not in (b"#", b"%")
        for src, dst, at in [read]
    )
    accepted = (row for row in found.rows if row.line not in told)
    taken = Counter((row.peer, json.loads(row.record)[0], row.time) for row in accepted)
    assert taken == expected


def test_deliveries_are_taken_or_refused(tmp_path: Path, rng: Random, count: int) -> None:
    def row(number: int) -> list[str]:
        message, peer = f"m{number // 20}", f"p{number % 20}"
        before = peer if number % 20 == 0 else f"p{number % 20 - 1}"
        return [message, peer, before, str(number)]

    header = b"msg,node,prev_node,t_us"

    def sound(n: int) -> bytes:
        return ",".join(row(n - n % 20 if n % 31 == 1 else n)).encode()

    made = mixture(rng, count, sound, lambda n: odd_fields(rng, row(n)))
    lines = write(tmp_path / "deliveries.csv.gz", [header, *made])
    found = folded(Deliveries(), f"csv({header.decode()})", tmp_path / "deliveries.csv.gz")
    told = reasons(found)
    check_some(
        told,
        count,
        "not 4 fields",
        "a quote that",
        "not UTF-8",
        "'t_us' is negative",
        "another publ",
    )
    expected = read_csv(
        lines, header, {n: why for n, why in told.items() if "another publ" not in why}
    )
    conflicts = read_csv(
        [lines[n - 1] for n, why in told.items() if "another publ" in why], header, {}
    )
    times = Counter(
        (m, p, b, int(Decimal(t or ""))) for m, p, b, t in (expected - conflicts).elements()
    )
    published = found.tables["publications"].to_pylist()
    taken = Counter((r["message"], *[r["publisher"]] * 2, r["time_us"]) for r in published)
    taken.update(
        (r["message"], r["peer"], r["previous_hop"], r["time_us"])
        for r in found.tables["receptions"].to_pylist()
    )
    assert taken == Counter(set(times))
    assert found.counted["repeated"] + len(set(times)) + conflicts.total() == expected.total()
    assert len({row["message"] for row in published}) == len(published)


def test_links_joined_with_deliveries_are_taken_or_refused(
    tmp_path: Path, rng: Random, count: int
) -> None:
    def row(number: int) -> list[str]:
        return [f"p{number % 90}", f"p{number % 70}", ("mesh", "", "tree")[number % 3]]

    def delivery(number: int) -> list[str]:
        return [f"m{number // 9}", f"p{number % 9}", f"p{max(number % 9 - 1, 0)}", str(number)]

    heads = {"links.csv": b"src,dst,layer", "deliveries.csv": b"msg,node,prev_node,t_us"}
    lines = {
        name: write(
            tmp_path / name,
            [
                head,
                *mixture(
                    rng,
                    count // 2,
                    lambda n, of=of: ",".join(of(n)).encode(),  # type: ignore[misc]
                    lambda n, of=of: odd_fields(rng, of(n)),  # type: ignore[misc]
                ),
            ],
        )
        for (name, head), of in zip(heads.items(), (row, delivery), strict=True)
    }
    files = [
        InputFile(str(tmp_path / name), f"csv({head.decode()})", 0, "")
        for name, head in heads.items()
    ]
    found = staged(Deliveries(), files, SourceOptions(max_line=LONG_LINE))
    told = by_line([(n, why) for path, n, why, _ in found.quarantine if path.endswith("links.csv")])
    check_some(told, count // 2, "not 3 fields", "a quote that", "not UTF-8", "control char")
    expected = read_csv(lines["links.csv"], heads["links.csv"], told)
    taken = Counter((r["src"], r["dst"], r["layer"]) for r in found.tables["links"].to_pylist())
    assert taken == Counter((s, d, layer or "overlay") for s, d, layer in expected.elements())
    alone = staged(Deliveries(), files[1:], SourceOptions(max_line=LONG_LINE))
    assert len(found.quarantine) == len(told) + len(alone.quarantine)
    for name in ("publications", "receptions"):
        assert found.tables[name].equals(alone.tables[name])
        assert found.tables[name].num_rows > count // 40


ME, YOU = "AAJtZQ==", "AAN5b3U="


def event(number: int) -> dict[str, Any]:
    """An event of libp2p, of one of some types."""
    told: dict[str, Any] = {"peerID": ME, "timestamp": 10**18 + number}
    entry = {"topic": "t", "messageIDs": [YOU, ME]}
    meta = {
        "messages": [{"messageID": YOU, "topic": "t"}],
        "control": {"ihave": [entry], "graft": [{}]},
    }
    payloads: list[tuple[int, str, dict[str, Any]]] = [
        (9, "join", {"topic": f"t{number}"}),
        (0, "publishMessage", {"messageID": YOU, "topic": "t"}),
        (3, "deliverMessage", {"messageID": YOU, "receivedFrom": YOU, "topic": "t"}),
        (7, "sendRPC", {"sendTo": YOU, "meta": meta}),
        (4, "addPeer", {"peerID": YOU, "proto": "/meshsub/1.1.0"}),
        (11, "graft", {"peerID": YOU, "topic": "t"}),
    ]
    kind, name, payload = payloads[number % len(payloads)]
    return {"type": kind, **told, name: payload}


def test_json_events_are_taken_or_refused(tmp_path: Path, rng: Random, count: int) -> None:
    made = mixture(
        rng, count, lambda n: json.dumps(event(n)).encode(), lambda n: bent(rng, event(n))
    )
    lines = write(tmp_path / "trace.ndjson", made)
    taken = folded(Libp2p(), "json", tmp_path / "trace.ndjson")
    told = reasons(taken)
    check_some(
        told, count, "not one JSON object", "wrong type", "missing key", "not base64", "not UTF-8",
        "half of a surrogate", "nested more than", "longer than", "control character",
    )  # fmt: skip
    found = events_of(taken)
    records = {n: line for n, line in enumerate(lines, 1) if line.removeprefix(BOM_UTF8).strip()}
    check_all(taken, found.keys(), told.keys(), set(records))
    for number, one in found.items():
        read = json.loads(records[number].removeprefix(b"\xef\xbb\xbf"))
        assert (one.type, one.time) == (read["type"], read["timestamp"])
        assert b58decode(one.peer) == b64decode(read["peerID"])
        assert one.topic is None or any(
            v.get("topic") == one.topic for v in read.values() if isinstance(v, dict)
        )


def test_protobuf_events_are_taken_or_refused(
    tmp_path: Path, libp2p_small: Path, rng: Random, count: int
) -> None:
    """The lengths are right; the last record is cut off."""
    some = gzip.decompress((libp2p_small / "trace.pb.gz").read_bytes())
    known = list(framed(some, 500))

    def bad(n: int) -> bytes:
        return rng.choice(known)[: rng.randrange(12)] + rng.randbytes(9)

    made = list(mixture(rng, count, lambda n: known[n % len(known)], bad))
    stream = b"".join(varint(len(record)) + record for record in made) + varint(5) + b"cut"
    (tmp_path / "trace.pb").write_bytes(stream)
    taken = folded(Libp2p(), "protobuf", tmp_path / "trace.pb")
    told = reasons(taken)
    check_some(told, count, "not a TraceEvent", "missing key", "record is cut off")
    check_all(taken, events_of(taken).keys(), told.keys(), set(range(1, len(made) + 2)))


def check_all(taken: Staged, events: Set[int], refused: Set[int], records: Set[int]) -> None:
    """Each record is an event, refused, or of an unknown type, which is counted."""
    assert not events & refused
    assert events | refused <= records
    named = {name: n for name, n in taken.counted["unknown"].items() if "event type" in name}
    assert sum(named.values()) == len(records - events - refused)


def framed(stream: bytes, most: int) -> Iterable[bytes]:
    """The first records of a stream."""
    at = 0
    for _ in range(most):
        size = shift = 0
        while True:
            byte = stream[at]
            size, shift, at = size | (byte & 0x7F) << shift, shift + 7, at + 1
            if byte < 0x80:
                break
        yield stream[at : at + size]
        at += size


def log_line(number: int) -> dict[str, Any]:
    """A line of an interoperability log: of a message, or an entry of the mesh."""
    told: dict[str, Any] = {"time": f"2000-01-01T00:00:00.{number:06d}Z", "level": "INFO"}
    entry, more = [
        ("Received Message", {"from": "you", "topic": "t", "id": str(number)}),
        ("Sent Message", {"to": "you", "topic": "t", "id": str(number)}),
        ("Sent Graft", {"to": "you", "topic": f"t{number}"}),
        ("Received Ihave", {"from": "you", "ids": "[1, 2]"}),
    ][number % 4]
    return {**told, "msg": entry, "service": "gossipsub", **more}


def test_log_lines_are_taken_or_refused(tmp_path: Path, rng: Random, count: int) -> None:
    first = {"time": "2000-01-01T00:00:00Z", "level": "INFO", "msg": "PeerID", "id": "me"}
    made = mixture(
        rng, count, lambda n: json.dumps(log_line(n)).encode(), lambda n: bent(rng, log_line(n))
    )
    lines = write(tmp_path / "log", [json.dumps(first).encode(), *made])
    found = folded(Interop(), "log", tmp_path / "log")
    told = reasons(found)
    check_some(
        told, count, "not one JSON object", "wrong type", "missing key", "not RFC 3339",
        "not UTF-8", "longer than", "control character",
    )  # fmt: skip
    taken = {row.line for row in found.rows}
    records = {n for n, line in enumerate(lines, 1) if line.strip()}
    assert taken | told.keys() <= records
    assert taken & told.keys() == set()
    others = sum(found.counted["unknown"].values())
    assert others == len(records - taken - told.keys()) > 0
    published = {row["message"] for row in found.tables["publications"].to_pylist()}
    received = {row["message"] for row in found.tables["receptions"].to_pylist()}
    read = [json.loads(lines[n - 1].removeprefix(b"\xef\xbb\xbf")) for n in taken]
    assert received == {one["id"] for one in read if one["msg"] == "Received Message"}
    sent = {one["id"] for one in read if one["msg"] == "Sent Message"}
    assert published <= sent
    assert sent - received <= published


def test_rows_of_hermes_are_taken_or_refused(tmp_path: Path, rng: Random, count: int) -> None:
    """Parquet holds its types: what can be wrong are values."""
    kinds = ("deliver_msg", "duplicated_msg", "reject_msg", "handle_msg")
    texts = (None, "", " ", "x\n", "\x85", "Ünï", "long " * 5_000, "NaN")
    numbers = (None, -1, 2**31, 2**63 - 1, -(2**63), 2**63 // 1_000_000, 2**63 // 1_000_000 + 1)
    rows = []
    for number in range(count):
        row: dict[str, Any] = {
            "Timestamp": 10**12 + number, "Type": "msg_arrival", "ProducerID": "me",
            "SubType": kinds[number % 4], "RemotePeerID": "you" if number % 3 else "me",
            "Topic": "t", "MsgID": str(number), "Local": False, "MsgSize": 1, "SeqNo": "00",
        }  # fmt: skip
        if rng.random() < 0.4:
            name = rng.choice(list(row)[:-3])
            row[name] = rng.choice(numbers if name == "Timestamp" else texts)
        rows.append(row)
    path = tmp_path / "msg_arrival_1.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=400)
    found = folded(Hermes(), "parquet", path)
    told = reasons(found)
    check_some(told, count, "missing value", "negative", "too large", "control character")
    taken = {row.line: row for row in found.rows}
    left_out = {
        number
        for number, row in enumerate(rows, 1)
        if number not in told and row["SubType"] not in kinds[:3]
    }
    assert taken.keys() | told.keys() | left_out == set(range(1, count + 1))
    assert not taken.keys() & told.keys()
    assert not taken.keys() & left_out
    assert sum(found.counted["unknown"].values()) == len(left_out)
    events = {n: msgspec.msgpack.decode(row.record, type=TraceEvent) for n, row in taken.items()}
    for number, event in events.items():
        row = rows[number - 1]
        assert event.time == row["Timestamp"] * 1_000_000
        assert (event.peer, event.topic, event.message) == (
            row["ProducerID"],
            row["Topic"],
            row["MsgID"],
        )


def node(number: int) -> dict[str, Any]:
    """What a file of VizPub says of a peer."""
    copy = {"msgId": "m", "topicId": "t", "originalSenderId": "p1", "hopCount": 2}
    return {
        "id": f"p{number}",
        "neighbors": [f"p{number + 1}", "p0"],
        "topics": ["t"],
        "subscriptionSize": 1,
        **dict.fromkeys(
            ("controlMsgsSent", "controlMsgsReceived", "bitsSent", "bitsReceived"), number
        ),
        "duplicateCount": 1,
        "publicationMsgsReceived": {"m": copy | {"sourceId": "p0"}},
    }


def test_vizpub_nodes_are_taken_or_refused(tmp_path: Path, rng: Random, count: int) -> None:
    """A file that is no JSON, or nested too deep, is one record; else each of its nodes is."""
    nodes = 50
    files = []
    for place in range(count // nodes):
        each = [
            json.dumps(node(n)).encode() if rng.random() < 0.8 else bent(rng, node(n))
            for n in range(nodes)
        ]
        inside = b", ".join(b'"p%d": %s' % (n, text) for n, text in enumerate(each))
        head = b'{"protocolId": 1, "protocolName": "p", "intervalCount": %d, "nodes": {' % place
        path = tmp_path / f"{place:08d}_host_p.json"
        path.write_bytes(head + inside + b"}}")
        files.append(InputFile(str(path), "json", path.stat().st_size, ""))
    found = staged(Vizpub(), files, SourceOptions())
    told = [(row["file"], row["line"]) for row in found.tables["quarantine"].to_pylist()]
    reports = Counter(record["interval"] for record in found.records)
    assert len(set(told)) == len(told)
    whole = 0
    for place, file in enumerate(files):
        bad = [line for path, line in told if path == file.path]
        if reports[place] == 0:
            assert bad == [1]  # the file
            whole += 1
        else:
            assert reports[place] + len(bad) == nodes
    assert 0 < whole < len(files)
    assert len(told) > whole
