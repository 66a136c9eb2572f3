"""The protobuf reader against records that the test itself puts together byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from tests.support.protobuf import varint
from vizpub.ingest.sources.libp2p.protobuf import (
    CUT_OFF,
    IMPOSSIBLE_LENGTH,
    StreamBroken,
    parse_event,
    split_records,
    unknown_fields,
)
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.reports.compressed import Content, LongLine


def fields(*pairs: tuple[int, int | bytes]) -> bytes:
    """Numbers as varints (wire type 0), bytes with their length (wire type 2)."""
    out = b""
    for number, value in pairs:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def delimited(*found: bytes) -> bytes:
    return b"".join(varint(len(record)) + record for record in found)


ENVELOPE: tuple[tuple[int, int | bytes], ...] = ((2, b"me"), (3, 946_684_875_443_002_231))
RPC = fields(
    (1, b"you"),
    (
        2,
        fields(
            *[(1, fields((1, b"m"), (2, b"news")))] * 2,
            (2, fields((1, 0), (2, b"news"))),
            (
                3,
                fields(
                    (1, fields((1, b"news"), (2, b"m1"), (2, b"m2"))),
                    (2, fields((1, b"m1"))),
                    (3, fields((1, b"news"))),
                    (4, fields((1, b"news"), (2, b"x"))),
                    *[(5, fields((1, b"m1"), (1, b"m2")))] * 3,
                ),
            ),
        ),
    ),
)
PAYLOADS: dict[int, tuple[int, str, bytes, dict[str, Any]]] = {
    0: (4, "publishMessage", fields((1, b"m"), (2, b"t")), {"messageID": b"m", "topic": b"t"}),
    1: (
        5,
        "rejectMessage",
        fields((1, b"m"), (2, b"o"), (3, b"r"), (4, b"t")),
        {"messageID": b"m", "other": b"o", "reason": b"r", "topic": b"t"},
    ),
    2: (
        6,
        "duplicateMessage",
        fields((1, b"m"), (2, b"o"), (3, b"t")),
        {"messageID": b"m", "other": b"o", "topic": b"t"},
    ),
    3: (
        7,
        "deliverMessage",
        fields((1, b"m"), (2, b"t"), (3, b"o")),
        {"messageID": b"m", "other": b"o", "topic": b"t"},
    ),
    4: (
        8,
        "onNewOutboundStream",
        fields((1, b"o"), (2, b"/meshsub/1.3.0")),
        {"other": b"o", "proto": b"/meshsub/1.3.0"},
    ),
    5: (9, "onClosedOutboundStream", fields((1, b"o")), {"other": b"o"}),
    6: (10, "recvRPC", RPC, {"other": b"you"}),
    7: (11, "sendRPC", RPC, {"other": b"you"}),
    8: (12, "dropRPC", RPC, {"other": b"you"}),
    9: (13, "join", fields((1, b"t")), {"topic": b"t"}),
    10: (14, "leave", fields((2, b"t")), {"topic": b"t"}),
    11: (15, "graft", fields((1, b"o"), (2, b"t")), {"other": b"o", "topic": b"t"}),
    12: (16, "prune", fields((1, b"o"), (2, b"t")), {"other": b"o", "topic": b"t"}),
    13: (17, "sendRPCCompleted", RPC + fields((3, 1500)), {"other": b"you", "write_ns": 1500}),
}


def event(number: int) -> bytes:
    field, _, payload, _ = PAYLOADS[number]
    return fields((1, number), *ENVELOPE, (field, payload))


@pytest.mark.parametrize("number", PAYLOADS)
def test_events_of_every_type_are_parsed(number: int) -> None:
    _, name, _, told = PAYLOADS[number]
    found = parse_event(event(number))
    assert (found.type, found.peerID) == (number, b"me")
    assert found.timestamp == 946_684_875_443_002_231
    payload = getattr(found, name)
    assert {key: getattr(payload, key) for key in told} == told
    assert unknown_fields(found, len(event(number))) == []


def test_rpc_messages_subscriptions_and_control_are_parsed() -> None:
    meta = parse_event(event(7)).sendRPC.meta
    assert [m.messageID for m in meta.messages] == [b"m", b"m"]
    assert [s.subscribe for s in meta.subscription] == [False]
    assert [list(have.messageIDs) for have in meta.control.ihave] == [[b"m1", b"m2"]]
    assert len(meta.control.iwant) == len(meta.control.graft) == len(meta.control.prune) == 1
    assert [list(i.messageIDs) for i in meta.control.idontwant] == [[b"m1", b"m2"]] * 3


def test_unknown_fields_are_named() -> None:
    join = fields((1, b"t"), (9, b"new"))
    record = fields((1, 9), *ENVELOPE, (13, join), (99, 1))
    assert unknown_fields(parse_event(record), len(record)) == ["Join.9", "TraceEvent.99"]


def test_garbage_is_a_decode_error() -> None:
    with pytest.raises(DecodeError):
        parse_event(b"\xff\xff\xff")


@given(st.lists(st.binary(max_size=300)), st.integers(1, 50))
def test_records_are_read_whole_from_parts_of_any_size(found: list[bytes], size: int) -> None:
    stream = delimited(*found)
    parts = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert list(split_records(parts)) == found


@given(st.lists(st.integers(0, 9_000)), st.integers(1, 3_000), st.integers(5_000, 8_000))
def test_record_beyond_the_limit_is_passed_over(sizes: list[int], size: int, limit: int) -> None:
    """What stands behind it is read; of itself there is the beginning, and how long it was."""
    found = [bytes([n % 251]) * length for n, length in enumerate(sizes)]
    stream = delimited(*found)
    parts = [stream[i : i + size] for i in range(0, len(stream), size)]
    told = [
        (len(record), record) if not isinstance(record, LongLine) else (record.size, record[:-1])
        for record in split_records(parts, limit)
    ]
    assert [length for length, _ in told] == sizes
    for record, (length, text) in zip(found, told, strict=True):
        assert text == (record if length <= limit else record[: len(text)])
        assert len(text) > 4_000 or length <= limit


def test_long_record_that_is_cut_off_is_told_once() -> None:
    stream = split_records([delimited(event(9)), delimited(b"x" * 9_000)[:-1]], 5_000)
    assert next(stream) == event(9)
    with pytest.raises(StreamBroken, match=CUT_OFF):
        next(stream)


@pytest.mark.parametrize("cut", range(1, len(delimited(event(9), event(9)))))
def test_stream_cut_anywhere_gives_its_whole_records(cut: int) -> None:
    size = len(delimited(event(9)))
    stream = split_records([delimited(event(9), event(9))[:cut]])
    assert [next(stream) for _ in range(cut // size)] == [event(9)] * (cut // size)
    if cut % size:
        with pytest.raises(StreamBroken, match=CUT_OFF):
            next(stream)
    else:
        assert next(stream, None) is None


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\x7f"])
def test_impossible_record_length_breaks_the_stream(length: bytes) -> None:
    stream = split_records([delimited(event(9)) + length + delimited(event(9))])
    assert next(stream) == event(9)
    with pytest.raises(StreamBroken, match=IMPOSSIBLE_LENGTH):
        next(stream)


@pytest.mark.parametrize("name", ["trace.pb.gz", "one_node.*.pb"])
def test_real_protobuf_is_recognised(libp2p_small: Path, name: str) -> None:
    (path,) = libp2p_small.glob(name)
    assert Libp2p().recognises(str(path), head(path)) == "protobuf"


def test_real_json_is_recognised(libp2p_small: Path) -> None:
    paths = [*(libp2p_small / "json").iterdir(), *libp2p_small.glob("*.ndjson.gz")]
    assert len(paths) == 31
    assert {Libp2p().recognises("any", head(path)) for path in paths} == {"json"}


def head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return b"".join(Content(stream))[: 1 << 16]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"msg,node,prev_node,t_us\n1,2,3,4\n",
        b'{"format": "vizpub.report/1", "peer": "17", "interval": 42}\n',
        b"[1, 2]\n",
        b"\x00" * 100,
        b"PAR1\x15\x04",
        "# über alles\n".encode(),
    ],
)
def test_other_content_is_not_recognised_as_libp2p(text: bytes) -> None:
    assert Libp2p().recognises("trace.json", text) is None


def test_trace_behind_leading_garbage_is_recognised() -> None:
    line = json.dumps({"type": 9, "peerID": "bWU=", "timestamp": 1, "join": {"topic": "t"}})
    assert Libp2p().recognises("any", b"garbage\n\n" + 2 * f"{line}\n".encode()) == "json"
    damaged = delimited(b"\xff\xff", event(9), event(9))
    assert Libp2p().recognises("any", damaged + event(9)[:3]) == "protobuf"


def test_text_that_quotes_an_event_is_no_trace() -> None:
    """A README beside a trace, given alone, was made a run of its one example."""
    line = json.dumps({"type": 9, "peerID": "bWU=", "timestamp": 1, "join": {"topic": "t"}})
    text = f"# A trace\n\nEach line is an event:\n\n    {line}\n\nsee docs.\n"
    assert Libp2p().recognises("README.md", text.encode()) is None
    assert Libp2p().recognises("one", line.encode()) == "json"
