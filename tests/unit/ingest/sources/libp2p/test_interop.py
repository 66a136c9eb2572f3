"""Lines of interoperability logs: what each reports, and why one is refused."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

from vizpub.ingest.inputs.reader import RecordRefused
from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent
from vizpub.ingest.sources.libp2p.interop import NO_PEER_YET, NodeLog, is_line, parse_time

TIME = "2000-01-01T00:00:07.5Z"
NS = 946_684_807_500_000_000


def line(msg: str, **more: Any) -> bytes:
    return json.dumps({"time": TIME, "level": "INFO", "msg": msg, **more}).encode()


ME = line("PeerID", id="me", node_id=3)


def told(*lines: bytes) -> list[TraceEvent]:
    log = NodeLog()
    return [event for text in (ME, *lines) for event in log.events(text)][1:]


def kinds(events: list[TraceEvent]) -> list[tuple[int, str, str | None, str | None, str | None]]:
    """Without the RPCs."""
    return [(e.type, e.peer, e.other, e.topic, e.message) for e in events if e.entries is None]


def message(way: str, other: str, id: str) -> bytes:
    return line(f"{way} Message", **{"to" if way == "Sent" else "from": other}, topic="t", id=id)


def test_first_message_of_an_id_is_delivered_and_others_are_duplicates() -> None:
    events = told(
        message("Received", "a", "7"), message("Sent", "b", "7"), message("Received", "b", "7")
    )
    assert kinds(events) == [
        (EventType.DELIVER, "me", "a", "t", "7"),
        (EventType.DUPLICATE, "me", "b", "t", "7"),
    ]
    assert [(e.type, e.entries.messages) for e in events if e.entries] == [
        (EventType.RECV_RPC, 1),
        (EventType.SEND_RPC, 1),
        (EventType.RECV_RPC, 1),
    ]


def test_message_that_was_sent_and_never_received_was_published_once() -> None:
    events = told(
        message("Sent", "a", "7"), message("Sent", "b", "7"), message("Received", "b", "7")
    )
    assert kinds(events) == [
        (EventType.PUBLISH, "me", None, "t", "7"),
        (EventType.DUPLICATE, "me", "b", "t", "7"),
    ]


def test_entries_of_the_mesh_and_subscriptions_become_events() -> None:
    events = told(
        line("Sent Graft", to="a", topic="t"),
        line("Received Prune", **{"from": "a"}, topic="t"),
        line("Received Subscription", **{"from": "b"}, topic="u"),
        line("Received Ihave", **{"from": "b"}, ids="[1, 2]"),
        line("sent", peer="b", rpc={}),
    )
    assert kinds(events) == [
        (EventType.GRAFT, "me", "a", "t", None),
        (EventType.PRUNE, "me", "a", "t", None),
        (EventType.JOIN, "me", "b", "u", None),
    ]
    assert sum(len(e.entries.control) for e in events if e.entries) == 4


@pytest.mark.parametrize("zone", ["Z", "+00:00", "-03:30", "+14:00"])
def test_time_equals_numpys_with_any_digits_and_zone(zone: str) -> None:
    print("seed 5")
    random = Random(5)
    for digits in range(10):
        second = random.randrange(2**31)
        base = str(np.datetime64(second, "s"))
        fraction = "".join(random.choices("0123456789", k=digits))
        text = f"{base}{'.' if digits else ''}{fraction}{zone}"
        (event,) = NodeLog().events(line("PeerID", id="me").replace(TIME.encode(), text.encode()))
        sign = -1 if zone[0] == "-" else 1
        minutes = 0 if zone == "Z" else sign * (int(zone[1:3]) * 60 + int(zone[4:]))
        meant = np.datetime64(f"{base}.{fraction.ljust(9, '0')}", "ns") - np.timedelta64(
            minutes, "m"
        )
        assert event.time == int(meant.astype(int)), text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not one JSON object"),
        (b"[1]", "not one JSON object"),
        (b"[" * 100_000, "not one JSON object"),
        (b'{"a": "\\ud800"}', "not one JSON object"),
        (b'{"msg": "a", "msg": "b"}', "a key appears twice"),
        (line("Sent Graft", to="a"), "missing key: topic"),
        (line("Sent Graft", topic="t"), "missing key: to"),
        (line("Received Message", **{"from": "a"}, topic="t"), "missing key: id"),
        (line("Received Message", **{"from": "a"}, topic="t", id=7), "wrong type: id"),
        (line("Sent Graft", to="a\n", topic="t"), "control character in to"),
        (line("PeerID", id="another"), "a second peer in one file"),
        (line("Sent Graft", to="a", topic="t").replace(b"T00", b" 00"), "time is not RFC 3339"),
        (
            line("Sent Graft", to="a", topic="t").replace(b"2000-01-01", b"2000-02-31"),
            "time is not",
        ),
        (line("Sent Graft", to="a", topic="t").replace(b"2000", b"1960"), "negative time"),
    ],
)
def test_bad_line_is_refused_with_its_reason(text: bytes, why: str) -> None:
    log = NodeLog()
    list(log.events(ME))
    with pytest.raises(RecordRefused, match=why):
        list(log.events(text))
    assert kinds(list(log.events(message("Received", "a", "1"))))


def test_sender_and_topic_of_a_received_message_may_be_unknown() -> None:
    """Only its id is demanded of a node, and other lines are its own affair."""
    log = NodeLog()
    texts = [line("PeerID", id="me", node_id="3"), line("Received Message", id="7")]
    texts += [line("Received Message", id="7"), line("Validation Result", result="Accept")]
    events = [event for text in texts for event in log.events(text)]
    assert kinds(events) == [
        (EventType.DELIVER, "me", None, None, "7"),
        (EventType.DUPLICATE, "me", None, None, "7"),
    ]
    assert log.unknown == {"lines 'Validation Result'": 1}
    assert log.is_partial
    list(log.events(line("Sent Graft", to="a", topic="t")))
    assert not log.is_partial


def test_line_before_the_peer_is_named_is_refused() -> None:
    with pytest.raises(RecordRefused, match=NO_PEER_YET):
        list(NodeLog().events(line("Sent Graft", to="a", topic="t")))


def test_lines_of_logs_are_recognised_and_others_are_not() -> None:
    assert is_line(ME)
    assert is_line(line("sent", rpc={}))
    assert is_line(b'{"time": "", "msg": "PeerID", "id": "a", "node_id": "1"}')
    assert is_line(b'{"time": "", "msg": "Received Message", "id": "7"}')
    assert is_line(line("Sent Graft", service="gossipsub", to="a", topic="t"))
    for other in (
        b"",
        b"{}",
        b"[" * 10_000,
        line("Sent Graft"),
        b'{"type":1,"peerID":"","timestamp":0}',
    ):
        assert not is_line(other)


def test_time_beyond_64_bits_is_refused() -> None:
    assert parse_time("2262-01-01T00:00:00Z") < 2**63
    with pytest.raises(RecordRefused, match="too large"):
        parse_time("2300-01-01T00:00:00Z")
