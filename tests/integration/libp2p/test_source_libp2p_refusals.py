"""Bad records among good ones: each bad one is refused with a reason, each good one taken."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.protobuf import varint
from tests.support.words import naming
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.libp2p.facts import NO_EVENT
from vizpub.model.errors import InputError

pytestmark = pytest.mark.spark

ME, YOU, MESSAGE = "AAJtZQ==", "AAN5b3U=", "bWVzc2FnZQ=="
T = 946_684_875_443_002_231


def line(type: Any = 9, payload: Any = None, **changes: Any) -> str:
    """A JOIN, but for what is said; a key that is None is left out."""
    event = {"type": type, "peerID": ME, "timestamp": T, "join": {"topic": "t"}} | changes
    if payload is not None:
        del event["join"]
        event |= payload
    return json.dumps({key: value for key, value in event.items() if value is not None})


def about(name: str, **payload: Any) -> dict[str, Any]:
    return {name: payload}


GOOD = [
    line(),
    f"  {line()} \r",
    line(topic="elsewhere"),
    line(join={"topic": "ünï/<&>"}),
    line(join={"topic": ""}),
    line(17, about("newThing", a=[{"b": "c"}]), peerID="12D3KooW", timestamp=-1),
    line(**{"odd name: STRING": 3, "more": {"x": 1}}),
    line(7, about("sendRPC", sendTo=YOU, meta={"control": {}})),
    line(7, about("sendRPC", sendTo=YOU)),
    line(6, about("recvRPC", receivedFrom=YOU, meta={"control": {"ihave": [{"topic": "t"}]}})),
    line(6, about("recvRPC", receivedFrom=YOU, meta={"messages": [], "subscription": None})),
    line(
        8,
        about("dropRPC", sendTo=YOU, meta={"control": {"prune": [{"topic": "t", "peers": [ME]}]}}),
    ),
    line(13, about("sendRPCCompleted", sendTo=YOU, meta={}, writeDurationNanos=0)),
    line(join={"topic": '":'}),
    line(4, about("addPeer", peerID=YOU, proto="/meshsub/1.1.0")),
    line(5, about("onClosedOutboundStream", peerID=YOU)),
    line(3, about("deliverMessage", messageID=MESSAGE)),
    "",
    "  \t ",
]
NOT_JSON = "not one JSON object"
TWICE = "a key appears twice"
BAD = [
    ("garbage", NOT_JSON),
    ("[1, 2]", NOT_JSON),
    ("17", NOT_JSON),
    ("null", NOT_JSON),
    (line()[:-1], NOT_JSON),
    (line() + line(), NOT_JSON),
    (f"{line()}, {line()}", NOT_JSON),
    (line() + " and more", NOT_JSON),
    (f"{line()}]{line()}", NOT_JSON),
    (line(more=1)[:-2] + "[" * 900 + "]" * 900 + "}", "nested more than 100 deep"),
    (line(more=1)[:-2] + '{"a":' * 90_000 + "1" + "}" * 90_001, "nested more than 100 deep"),
    (line(more="?").replace("?", "\\ud800"), "half of a surrogate pair"),
    (line(join={"topic": "?"}).replace("?", "\\udc00 "), "half of a surrogate pair"),
    (line(**{"?": 1}).replace("?", "\\ud83d"), "half of a surrogate pair"),
    (line(more=1).replace(": 1", ": 1e999"), "a number out of range"),
    ('{"type":9,"type" :9,"peerID":"AAJtZQ==","timestamp":1,"join":{"topic":"\\":"}}', TWICE),
    ('{"type":9,"type":9,"peerID":"AAJtZQ==","timestamp":1,"join":{"topic":"t"}}', TWICE),
    (line("9"), "wrong type: type"),
    (line(9.5), "wrong type: type"),
    (line(True), "wrong type: type"),
    (line(timestamp=str(T)), "wrong type: timestamp"),
    (line(timestamp=1e18), "wrong type: timestamp"),
    (line(timestamp=2**63), "wrong type: timestamp"),
    (line(peerID=12345678), "wrong type: peerID"),
    (line(peerID={"a": 1}, timestamp="x"), "wrong type: peerID, timestamp"),
    (line(join="t"), "wrong type: join"),
    (line(join={"topic": ["t"]}), "wrong type: topic"),
    (line(7, about("sendRPC", sendTo=YOU, meta={"messages": {}})), "wrong type: messages"),
    (
        line(6, about("recvRPC", receivedFrom=YOU, meta={"control": {"iwant": [1, "x"]}})),
        "wrong type: iwant",
    ),
    (line(11, {"graft": [{"topic": "t"}]}), "wrong type: graft"),
    (
        line(7, about("sendRPC", sendTo=YOU, meta={"control": {"prune": {"topic": "t"}}})),
        "wrong type: prune",
    ),
    ("{}", "missing key: type"),
    (line(None) or "", "missing key: type"),
    (line().replace('"type": 9', '"type": null'), "missing key: type"),
    (line(peerID=None), "missing key: peerID"),
    (line(timestamp=None), "missing key: timestamp"),
    (line(join=None), "missing key: topic"),
    (line(9, about("leave", topic="t")), "missing key: topic"),
    (line(0, about("publishMessage", topic="t")), "missing key: messageID"),
    (line(0, about("publishMessage", messageID=MESSAGE)), "missing key: topic"),
    (line(2, about("duplicateMessage", messageID=MESSAGE)), "missing key: the other peer's id"),
    (line(4, about("onNewOutboundStream", proto="x")), "missing key: the other peer's id"),
    (line(11, about("graft", peerID=YOU)), "missing key: topic"),
    (line(7, about("sendRPC", meta={})), "missing key: the other peer's id"),
    (line(-1), "negative type"),
    (line(timestamp=-1), "negative timestamp"),
    (line(13, about("sendRPCCompleted", sendTo=YOU)), "missing key: writeDurationNanos"),
    (
        line(13, about("sendRPCCompleted", sendTo=YOU, writeDurationNanos=-1)),
        "negative writeDurationNanos",
    ),
    (line(peerID="me"), "not base64: peerID"),
    (line(peerID=""), "not base64: peerID"),
    (line(peerID=f"{ME}\n"), "not base64: peerID"),
    (line(4, about("addPeer", peerID=f"{YOU}\n")), "not base64: the other peer's id"),
    (line(3, about("deliverMessage", messageID=f"{MESSAGE}\n")), "not base64: messageID"),
    (line(peerID="bWU"), "not base64: peerID"),
    (line(peerID="bWV="), "not base64: peerID"),
    (line(peerID="b_U="), "not base64: peerID"),
    (line(peerID="bWU="), "not the id of a peer: peerID"),
    (
        line(4, about("addPeer", peerID="12D3KooWCKXuiypoGCLFkNGVHB8ffjdGDAVjuhSXUHXyKgosTmey")),
        "not the id of a peer: the other peer's id",
    ),
    (line(12, about("prune", peerID="?", topic="t")), "not base64: the other peer's id"),
    (line(3, about("deliverMessage", messageID="m")), "not base64: messageID"),
    (line(join={"topic": "a\nb"}), "control character in topic"),
    (line(join={"topic": "\x85"}), "control character in topic"),
    (line(join={"topic": "\x7f"}), "control character in topic"),
    (
        line(6, about("recvRPC", receivedFrom=YOU, meta={"control": {"graft": [{"topic": "\n"}]}})),
        "control character in topic",
    ),
]
NO_TABLES: tuple[str, ...] = ()


@pytest.fixture(scope="module")
def mixed(ingest: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Good and bad lines in turn, in a plain file and a packed one."""
    folder = tmp_path_factory.mktemp("mixed")
    text = "\n".join(lines_in_turn()).encode() + b'\n{"type":9,"peerID":"\xff"}\n' + b"x" * 5000
    (folder / "plain.ndjson").write_bytes(text)
    # The same peer cannot tell of one time twice, so the copy tells of another.
    later = text.replace(str(T).encode(), str(T + 10**9).encode())
    (folder / "packed.ndjson.gz").write_bytes(gzip.compress(later))
    return ingest(sorted(folder.iterdir()), None, NO_TABLES)


def lines_in_turn() -> list[str]:
    lines = []
    for number in range(max(len(GOOD), len(BAD))):
        lines += GOOD[number : number + 1] + [text for text, _ in BAD[number : number + 1]]
    return lines


@pytest.mark.parametrize("name", ["plain.ndjson", "packed.ndjson.gz"])
def test_bad_lines_are_quarantined_with_their_reason(mixed: Any, name: str) -> None:
    reasons = dict(BAD)
    expected = [
        (number, reasons[text])
        for number, text in enumerate(lines_in_turn(), start=1)
        if text in reasons
    ]
    last = len(lines_in_turn())
    expected += [(last + 1, "not UTF-8"), (last + 2, NOT_JSON)]
    refused = [row for row in mixed.quarantine if row["file"].endswith(name)]
    assert [(row["line"], row["reason"]) for row in refused] == expected
    assert refused[0]["text"] == "garbage"
    assert refused[-1]["text"] == "x" * 1024


def test_good_lines_are_all_taken(mixed: Any) -> None:
    no_events = sum(not text.strip() or "newThing" in text for text in GOOD)
    assert len(mixed.events) == 2 * (len(GOOD) - no_events)
    topics = {row["topic"] for row in mixed.events if row["type"] == 9}
    assert topics == {"t", "ünï/<&>", "", '":'}
    (prune, _) = (row for row in mixed.events if row["type"] == 8)
    assert (prune["prune"], prune["messages"], prune["ihave"]) == (1, 0, 0)
    assert {row["message"] for row in mixed.events if row["type"] == 3} == {b"message".hex()}
    assert [row["proto"] for row in mixed.events if row["type"] == 4] == ["/meshsub/1.1.0"] * 2


def test_unknown_types_and_fields_are_counted_by_name(mixed: Any) -> None:
    assert mixed.description.notes == {
        "unknown event type 17": 2,
        **{f"unknown field {name}": 2 for name in ("newThing", "a", "b", "more", "x")},
        "unknown field odd name: STRING": 2,
    }


def test_truncated_gzip_gives_its_whole_lines(
    ingest: Any, libp2p_small: Path, tmp_path: Path
) -> None:
    packed = next(iter(sorted((libp2p_small / "json").iterdir()))).read_bytes()
    cut = packed[: len(packed) // 2]
    (tmp_path / "cut.ndjson.gz").write_bytes(cut)
    *whole, part = zlib.decompressobj(31).decompress(cut).split(b"\n")
    assert whole
    assert part
    trace = ingest([tmp_path / "cut.ndjson.gz"], None, NO_TABLES)
    assert len(trace.events) == len(whole)
    (refused,) = trace.quarantine
    assert (refused["line"], refused["text"]) == (len(whole) + 1, part.decode()[:1024])
    assert "cut off" in refused["reason"]


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


ENVELOPE = field(2, b"\0\2me") + field(3, T)
JOIN = field(1, 9) + ENVELOPE + field(13, field(1, b"t"))


def join(topic: bytes) -> bytes:
    return field(1, 9) + ENVELOPE + field(13, field(1, topic))


RECORDS = [
    (JOIN, None),
    (b"\xff\xff\xff", "not a TraceEvent"),
    (JOIN, None),
    (b"", "missing key: type"),
    (field(1, 9) + field(3, T), "missing key: peerID"),
    (field(1, 9) + field(2, b"me"), "missing key: timestamp"),
    (field(1, 9) + field(2, b"me") + field(3, (1 << 64) - 5), "negative timestamp"),
    (field(1, 9) + ENVELOPE, "missing key: topic"),
    (field(1, 0) + ENVELOPE + field(4, field(2, b"t")), "missing key: messageID"),
    (field(1, 4) + ENVELOPE, "missing key: the other peer's id"),
    (join(b"\xff"), "not UTF-8"),
    (join(b"a\x01"), "control character in topic"),
    (field(1, 17) + ENVELOPE + field(30, b"new"), None),
    (JOIN, None),
]


@pytest.mark.parametrize("name", ["trace.pb", "trace.pb.gz"])
def test_bad_protobuf_records_are_quarantined_by_ordinal(
    ingest: Any, tmp_path: Path, name: str
) -> None:
    """The stream ends inside its last record."""
    stream = b"".join(varint(len(record)) + record for record, _ in RECORDS) + b"\x40rest"
    (tmp_path / name).write_bytes(gzip.compress(stream) if name.endswith("gz") else stream)
    trace = ingest([tmp_path / name], None, NO_TABLES)
    expected = [(n, why) for n, (_, why) in enumerate(RECORDS, start=1) if why]
    expected.append((len(RECORDS) + 1, "record is cut off"))
    assert [(row["line"], row["reason"]) for row in trace.quarantine] == expected
    assert trace.quarantine[0]["text"] == "ffffff"
    assert len(trace.events) == sum(why is None for _, why in RECORDS) - 1  # of type 17
    assert trace.description.notes == {
        "unknown event type 17": 1,
        "unknown field TraceEvent.30": 1,
    }


def test_protobuf_record_beyond_the_longest_line_is_refused(ingest: Any, tmp_path: Path) -> None:
    records = (JOIN, join(b"t" * 70_000), JOIN)
    stream = b"".join(varint(len(record)) + record for record in records)
    (tmp_path / "trace.pb").write_bytes(stream)
    trace = ingest([tmp_path / "trace.pb"], SourceOptions(max_line=1000), NO_TABLES)
    (refused,) = trace.quarantine
    assert (refused["line"], refused["reason"]) == (2, "longer than 1,000 bytes (--max-line)")
    assert refused["text"] == records[1][:512].hex()
    assert [row["position"] for row in trace.events] == [1, 3]


def test_truncated_gzip_of_protobuf_gives_its_whole_records(
    ingest: Any, libp2p_small: Path, tmp_path: Path, as_json: Any
) -> None:
    packed = (libp2p_small / "trace.pb.gz").read_bytes()
    (tmp_path / "cut.pb.gz").write_bytes(packed[: len(packed) // 2])
    trace = ingest([tmp_path / "cut.pb.gz"], None, NO_TABLES)
    found = sorted((row["time"], row["peer"], row["type"]) for row in trace.events)
    assert 4_000 < len(found) < 16_000
    # The merged file is in order of time, so what is left is what happened first.
    before = sorted((row["time"], row["peer"], row["type"]) for row in as_json.events)
    assert [time for time, *_ in found] == [time for time, *_ in before[: len(found)]]
    (refused,) = trace.quarantine
    assert refused["line"] == len(found) + 1
    assert refused["reason"] == "record is cut off (truncated gzip)"


def test_events_too_far_apart_are_refused(ingest: Any, tmp_path: Path) -> None:
    """One of two timestamps is wrong, and nothing says which."""
    far = tmp_path / "far.ndjson"
    far.write_text(f"{line(timestamp=0)}\n{line()}\n")
    places = f"{far}, line 1", f"{far}, line 2"
    with pytest.raises(InputError, match=naming("946,684,876", *places, "--interval 1h")):
        ingest([tmp_path / "far.ndjson"], None, NO_TABLES)
    options = SourceOptions(interval_us=3_600_000_000)
    trace = ingest([tmp_path / "far.ndjson"], options, NO_TABLES)
    assert trace.description.clock.last == T // 10**9 // 3600


def test_trace_without_a_readable_event_is_refused(ingest: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.ndjson").write_text(line(timestamp=-1))
    with pytest.raises(InputError, match=NO_EVENT):
        ingest([tmp_path / "bad.ndjson"], None, NO_TABLES)
