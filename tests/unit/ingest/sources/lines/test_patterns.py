"""Pattern files: what is wrong with one, what times mean, and what the shipped ones find."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub.ingest.inputs.reader import RecordRefused
from vizpub.ingest.sources.lines.patterns import KINDS, LinePatterns, read_patterns
from vizpub.ingest.sources.lines.source import Lines
from vizpub.model.errors import InputError

GOOD = r"""
time_unit = "ms"
[lines.got]
kind = "deliver"
pattern = '(?P<peer>\w+) got (?P<message>\w+) at (?P<time>[^|]+)'
"""
NS = 1785892519582000000
"""2026-08-05 01:15:19.582 UTC."""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("got]", "got", ["line 3"]),
        ("kind", "sort", ["lines.got", "sort"]),
        ('"deliver"', "3", ["lines.got.kind"]),
        ('"deliver"', '"delivery"', ["lines.got.kind", "delivery", "duplicate"]),
        (r"(?P<message>\w+)", "", ["lines.got.pattern", "deliver", "message"]),
        ("(?P<time>[^|]+)", "", ["lines.got.pattern", "time"]),
        ("(?P<peer>", "(?:", ["lines.got.pattern", "peer", "'file'"]),
        ("(?P<peer>", "(?P<pod>", ["lines.got.pattern", "'pod'", "peer"]),
        ("(?P<peer>", "(?P<peer", ["lines.got.pattern", "not a regular expression"]),
        ("[lines.got]", 'file = "("\n[lines.got]', ["file", "not a regular expression"]),
        ("[lines.got]", 'file = "(?P<pod>.)"\n[lines.got]', ["file", "'pod'", "'peer'"]),
        ('"ms"', '"m"', ["time_unit", "ns"]),
        ("time_unit", "unit", ["unit"]),
        ('"deliver"', '"join"', ["lines.got.pattern", "'message'", "topic"]),
        ("[lines.got]", "[others.got]", ["others"]),
        (GOOD, "[lines]", ["lines", "[lines.received]"]),
    ],
)
def test_wrong_pattern_file_is_an_error_that_names_file_and_key(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    assert old in GOOD
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError) as error:
        read_patterns(str(path))
    assert all(word in str(error.value) for word in (str(path), *words))


def test_unknown_file_is_an_error_that_names_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_patterns(str(tmp_path / "none.toml"))
    assert "nim-libp2p, waku" in str(error.value.hint)


@pytest.mark.parametrize(
    ("text", "unit", "time"),
    [
        ("1785892519582000000", "ns", NS),
        ("1785892519582000", "us", NS),
        ("1785892519582.25", "ms", NS + 250_000),
        ("1785892519.582000001", "s", NS + 1),
        ("2026-08-05 01:15:19.582+00:00", "s", NS),
        ("2026-08-05T03:15:19.582+02:00", "s", NS),
        ("2026-08-05 01:15:19,582", "s", NS),
    ],
)
def test_times_are_numbers_in_the_unit_or_dates(text: str, unit: str, time: int) -> None:
    match = LinePatterns.parse(GOOD.replace('"ms"', f'"{unit}"')).match(f"a got m at {text}|", None)
    assert match is not None
    assert match.time == time


@pytest.mark.parametrize(
    ("line", "pattern", "word"),
    [
        ("a got m at noon", GOOD, "time"),
        ("a got m at 1e3", GOOD, "time"),
        ("a got m at 2026-13-05 01:15:19", GOOD, "time"),
        ("a got m at 99999999999999999999", GOOD, "time"),
        ("a got m at 5", GOOD.replace("time_unit", "#"), "time_unit"),
        ("a got  at 5", GOOD.replace(r"message>\w+", r"message>\w*"), "message"),
        ("a got b\x01c at 5", GOOD.replace(r"message>\w+", r"message>\S+"), "message"),
    ],
)
def test_line_with_a_bad_value_is_refused(line: str, pattern: str, word: str) -> None:
    with pytest.raises(RecordRefused, match=word):
        LinePatterns.parse(pattern).match(line, None)


def test_first_pattern_that_matches_counts_and_a_group_wins_over_the_topic_of_its_table() -> None:
    text = (
        GOOD
        + r"""
topic = "t"
[lines.any]
kind = "publish"
pattern = '(?P<peer>\w+) \w+ (?P<message>\w+)(?: on (?P<topic>\w+))? at (?P<time>\d+)'
topic = "other"
"""
    )
    patterns = LinePatterns.parse(text)
    found = [
        patterns.match(line, None)
        for line in ("a got m at 1", "a sent m at 1", "a sent m on u at 1", "a slept")
    ]
    assert [match and match.values["topic"] for match in found] == ["t", "other", "u", None]


NIM = "INF 2026-08-05 01:15:19.582+00:00 "
WAKU_HASH = "0x17cfd30767acac9b86c18333ba918abef93cc23f65b6c98c845c682584f92583"


@pytest.mark.parametrize(
    ("name", "line", "kind", "expected"),
    [
        (
            "nim-libp2p",
            NIM + "Peer details               tid=1 peer=3 peerId=16U*GiNg1a",
            "join",
            {"peer": "pod-3", "topic": "test", "time": NS},
        ),
        (
            "nim-libp2p",
            NIM + "Bootstrap node ready (kad-dht anchor)   tid=1 peer=3 peerId=16U*GiNg1a",
            "leave",
            {"peer": "pod-3", "topic": "test", "time": NS},
        ),
        (
            "nim-libp2p",
            NIM + "Sent message   tid=1 msgId=13647046878266911 timestamp=1785892519584947712",
            "publish",
            {"peer": "pod-3", "message": "13647046878266911", "time": 1785892519584947712},
        ),
        (
            "nim-libp2p",
            NIM + "Received message   tid=1 msgId=2759438560592407784 sentAt=1785892519584947712 "
            "current=1785892519583493632 delayMs=-1",
            "deliver",
            {"message": "2759438560592407784", "time": 1785892519583493632,
             "published": 1785892519584947712},
        ),
        (
            "nim-libp2p",
            '{"lvl":"INF","ts":"2026-08-05 01:15:19.582+00:00","msg":"Received message","tid":1,'
            '"msgId":"27","sentAt":1785892519584947712,"current":1785892519593493632,"delayMs":8}',
            "deliver",
            {"message": "27", "time": 1785892519593493632, "published": 1785892519584947712},
        ),
        (
            "waku",
            'NTC 2025-11-20 13:06:16.015+00:00 received relay message    topics="waku relay" tid=7 '
            f"file=protocol.nim:221 my_peer_id=16U*GiNg1a msg_hash={WAKU_HASH} "
            "msg_id=b9cfa467b62a...67128d31aecc from_peer_id=16U*wJXtuH topic=/waku/2/rs/2/0 "
            "receivedTime=1763643976019361536 payloadSizeBytes=1000",
            "receive",
            {"peer": "16U*GiNg1a", "other": "16U*wJXtuH", "message": WAKU_HASH,
             "topic": "/waku/2/rs/2/0", "time": 1763643976019361536},
        ),
        (
            "waku",
            '{"lvl":"DBG","ts":2026-07-16 15:10:00.145+00:00,"msg":"sent relay message","topics":'
            f'"waku relay","tid":7,"my_peer_id":"16U*S6zwhq","msg_hash":"{WAKU_HASH}","msg_id":'
            '"b9cf...aecc","to_peer_id":"16U*74x9yd","topic":"/waku/2/rs/0/0",'
            '"contentTopic":"/my-app/1/dst/proto","sentTime":1784214600145432320}',
            "send",
            {"peer": "16U*S6zwhq", "other": "16U*74x9yd", "message": WAKU_HASH,
             "topic": "/waku/2/rs/0/0", "time": 1784214600145432320},
        ),
        (
            "waku",
            f"received relay message my_peer_id=16U*a msg_hash={WAKU_HASH} from_peer_id=16U*b "
            "receivedTime=1763643976019361536",
            "receive",
            {"peer": "16U*a", "other": "16U*b", "topic": None},
        ),
        (
            "waku",
            'NTC 2025-11-20 13:06:16.015+00:00 handling lightpush request topics="waku lightpush" '
            "tid=7 my_peer_id=16U*GiNg1a peer_id=16U*wJXtuH requestId=db01 "
            rf'pubsubTopic="some(\"/waku/2/rs/2/0\")" msg_hash={WAKU_HASH} '
            "receivedTime=1763643976019361536",
            "publish",
            {"peer": "16U*GiNg1a", "message": WAKU_HASH, "topic": "/waku/2/rs/2/0"},
        ),
    ],
)  # fmt: skip
def test_shipped_patterns_find_the_events_of_their_logs(
    name: str, line: str, kind: str, expected: dict[str, object]
) -> None:
    patterns = LinePatterns.parse(read_patterns(name))
    path = "/logs/shadow.data/hosts/pod-3/main.1000.stdout.gz"
    match = patterns.match(line, patterns.peer_of_file(path))
    assert match is not None
    found = {**match.values, "time": match.time, "published": match.published}
    assert {key: found[key] for key in expected} == expected
    (of_kind,) = (of for of, what in KINDS.items() if what is match.kind)
    assert of_kind == kind


def test_file_is_no_copy_of_one_that_names_another_peer() -> None:
    source = Lines(LinePatterns.parse(read_patterns("nim-libp2p")))
    assert [*map(source.read_name, ("/pod-3.log", "/pod-4.log"))] == ["pod-3", "pod-4"]


@pytest.mark.parametrize("path", ["/logs/pod-3.log", "pod-3.txt.gz", "/d/pod-3/main.1000.stdout"])
def test_nodes_of_nim_libp2p_have_the_names_of_their_files(path: str) -> None:
    patterns = LinePatterns.parse(read_patterns("nim-libp2p"))
    assert patterns.peer_of_file(path) == "pod-3"
    assert patterns.peer_of_file(f"s3://run/{path}?region=eu-west-1") == "pod-3"
    assert Lines(patterns).recognises(f"s3://run/{path}?region=eu-west-1", b"a") == "text"
