"""Lines of logs, by patterns: a recorded trace rewritten as lines, against the trace itself; and
logs of nim-libp2p's test node and of Waku's nodes, written after their formats with a known truth.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from base58 import b58encode

from tests.support.ingested import ingested
from tests.support.staged import OF_TRACES, Taken, take
from vizpub.ingest.pipeline import settling_request
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.sources import sources_for
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.lines.patterns import read_patterns
from vizpub.ingest.sources.lines.source import EARLY, NO_MATCH
from vizpub.model.errors import InputError, UseError
from vizpub.model.run import DUPLICATES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_NS = 1_785_892_500 * 10**9
KINDS = {
    "publishMessage": ("publish", ("topic", "messageID")),
    "rejectMessage": ("reject", ("receivedFrom", "topic", "messageID", "reason")),
    "duplicateMessage": ("duplicate", ("receivedFrom", "topic", "messageID")),
    "deliverMessage": ("deliver", ("receivedFrom", "topic", "messageID")),
    "onNewOutboundStream": ("connect", ("peerID",)),
    "onClosedOutboundStream": ("disconnect", ("peerID",)),
    "join": ("join", ("topic",)),
    "leave": ("leave", ("topic",)),
    "graft": ("graft", ("peerID", "topic")),
    "prune": ("prune", ("peerID", "topic")),
}
GROUPS = {"receivedFrom": "other", "peerID": "other", "messageID": "message"}


def take_lines(pattern: str, *paths: Path) -> Taken:
    return take(*paths, options=SourceOptions(pattern=pattern))


def pattern_of(kind: str, fields: tuple[str, ...]) -> str:
    names = [GROUPS.get(name, name) for name in fields]
    groups = " ".join(f"{name}=(?P<{name}>[^|]+)?\\|" for name in names)
    return (
        f"[lines.{kind}]\nkind = '{kind}'\n"
        f"pattern = '(?P<peer>\\S+) {kind} at (?P<time>\\d+) {groups}'\n"
    )


PATTERN = "time_unit = 'ns'\n" + "".join(pattern_of(*of) for of in KINDS.values())


@pytest.fixture(scope="module")
def events(libp2p_small: Path) -> list[dict[str, Any]]:
    traces = sorted((libp2p_small / "json").glob("*.gz"))
    lines = [line for path in traces for line in gzip.decompress(path.read_bytes()).splitlines()]
    return sorted(map(json.loads, lines), key=lambda event: event["timestamp"])


@pytest.fixture(scope="module")
def original(libp2p_small: Path) -> Taken:
    return take(libp2p_small / "json")


@pytest.fixture(scope="module")
def rewritten(events: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Taken:
    lines = ["", "a line that is no event"]
    for event in events:
        for what in event.keys() & KINDS.keys():
            kind, fields = KINDS[what]
            values = {}
            for name in fields:
                text = event[what].get(name) or ""
                if name in ("receivedFrom", "peerID"):
                    text = b58encode(b64decode(text)).decode()
                elif name == "messageID":
                    text = b64decode(text).hex()
                values[GROUPS.get(name, name)] = text
            peer = b58encode(b64decode(event["peerID"])).decode()
            told = " ".join(f"{name}={text}|" for name, text in values.items())
            lines.append(f"INFO {peer} {kind} at {event['timestamp']} {told}")
    path = tmp_path_factory.mktemp("lines") / "all.log"
    path.write_text("\n".join(lines))
    return take_lines(PATTERN, path)


@pytest.mark.parametrize(("table", "columns"), OF_TRACES.items())
def test_rewritten_events_mean_what_the_trace_means(
    original: Taken, rewritten: Taken, table: str, columns: tuple[str, ...]
) -> None:
    assert not rewritten.staged.quarantine
    assert rewritten.told.notes[NO_MATCH] == 1
    assert rewritten.rows(table, *columns) == original.rows(table, *columns)
    assert len(rewritten.rows(table, *columns)) > 20 or table == "rejections"


def test_kinds_without_a_pattern_are_unknown(rewritten: Taken, tmp_path: Path) -> None:
    assert rewritten.told.unknown == ("traffic",)
    path = tmp_path / "a.log"
    path.write_text("a got m at 1000000000\na got m at 2000000000\n")
    pattern = (
        "time_unit = 'ns'\n[lines.x]\nkind = 'receive'\n"
        r"pattern = '(?P<peer>\S+) got (?P<message>\S+) at (?P<time>\d+)'"
    )
    found = take_lines(pattern, path)
    known = {"peers", "names", "presence", "publications", "receptions", "rejections"}
    assert found.seen.known_tables == known
    assert {"links", "topics", "traffic", "rejections"} <= {*found.told.unknown}
    assert DUPLICATES not in found.told.unknown  # this log has one


@pytest.mark.parametrize(
    ("lines", "receptions", "publications"),
    [
        (["got m", "got m"], [True, False], 0),
        (["sent m", "got m", "got m"], [False], 1),  # the first is what it delivers to itself
        (["sent m", "got m from b"], [False], 1),
        (["got m from b", "sent m"], [True], 0),
        (["sent m", "sent m"], [], 1),
    ],
)
def test_first_copy_that_a_peer_has_decides_what_its_lines_are(
    tmp_path: Path, lines: list[str], receptions: list[bool], publications: int
) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{at} a {text}\n" for at, text in enumerate(lines)))
    found = take_lines(
        "time_unit = 's'\n[lines.got]\nkind = 'receive'\npattern = '(?P<time>.) (?P<peer>.) got "
        "(?P<message>.)( from (?P<other>.))?'\n[lines.sent]\nkind = 'send'\n"
        "pattern = '(?P<time>.) (?P<peer>.) sent (?P<message>.)'",
        path,
    )
    assert [row["first"] for row in found.records("receptions", "tick")] == receptions
    assert len(found.records("publications")) == publications


def nim_logs(folder: Path, seed: int) -> tuple[dict[str, tuple[str, int]], dict[Any, int], int]:
    """Write logs of nodes with clocks that differ. Return publisher and time by message, the time
    by message and peer, and the number of arrivals before their publication.
    """
    random = Random(seed)
    peers = [f"pod-{n}" for n in range(7)]
    skew = {peer: random.randrange(-3, 3) * 10**6 for peer in peers}
    logs = {peer: [(START_NS, f"Peer details   tid=1 peer=1 peerId=16U*{peer}")] for peer in peers}
    published, received, early = {}, {}, 0
    for _ in range(12):
        message, publisher = str(random.randrange(2**63)), random.choice(peers)
        at = START_NS + random.randrange(10**9, 60 * 10**9)
        sent = at + skew[publisher]
        logs[publisher].append((sent, f"Sent message   tid=1 msgId={message} timestamp={sent}"))
        published[message] = publisher, sent
        for peer in random.sample(peers, 6):
            now = at + random.randrange(4 * 10**6) + skew[peer]
            delay = int((now - sent) / 10**6)
            text = f"msgId={message} sentAt={sent} current={now} delayMs={delay}"
            logs[peer].append((now, f"Received message   tid=1 {text}"))
            early += now < sent
            if peer != publisher:
                received[message, peer] = now
    for peer, lines in logs.items():
        host = folder / "hosts" / peer
        host.mkdir(parents=True)
        stamped = [f"INF {datetime.fromtimestamp(at / 1e9, UTC)} {text}" for at, text in lines]
        (host / "main.1000.stdout").write_text("\n".join([*stamped, "12 milliseconds: 3", ""]))
    (folder / "shadow.yaml").write_text("general: {}\n")
    return published, received, early


def test_logs_of_nim_libp2p_are_what_the_nodes_did(tmp_path: Path) -> None:
    published, received, early = nim_logs(tmp_path, 1)
    found = take_lines(read_patterns("nim-libp2p"), tmp_path)
    assert not found.staged.quarantine
    assert {
        (row["message"], row["publisher"], row["time_us"]) for row in found.records("publications")
    } == {(m, peer, (at - START_NS) // 1000) for m, (peer, at) in published.items()}
    assert {
        (row["message"], row["peer"], row["time_us"], row["first"])
        for row in found.records("receptions")
    } == {(*key, (at - START_NS) // 1000, True) for key, at in received.items()}
    assert found.told.notes == {NO_MATCH: 7, EARLY: early}
    assert early > 5
    assert {DUPLICATES, "links"} <= {*found.told.unknown}
    assert {row["topic"] for row in found.records("subscriptions")} == {"test"}


def waku_logs(folder: Path, seed: int, *, are_all_logged: bool) -> dict[str, Any]:
    """Write logs of nodes that flood messages, and return what is in them."""
    random = Random(seed)
    peers = [f"16U*{n:06}" for n in range(6)]
    logs: dict[str, list[tuple[int, str]]] = {peer: [] for peer in peers}
    truth: dict[str, Any] = {"published": set(), "first": set(), "again": set()}
    for number in range(8):
        message, topic = f"0x{number:064x}", f"/waku/2/rs/0/{number % 2}"
        queue = [(START_NS + number * 10**9, random.choice(peers), "")]
        had: set[str] = set()
        while queue:
            at, peer, sender = min(queue)
            queue.remove((at, peer, sender))
            about = f"my_peer_id={peer} msg_hash={message} msg_id=b9...cc"
            is_new = peer not in had
            had.add(peer)
            if sender and (is_new or are_all_logged):
                text = f"from_peer_id={sender} topic={topic} receivedTime={at} payloadSizeBytes=9"
                logs[peer].append((at, f"received relay message   tid=7 {about} {text}"))
                truth["first" if is_new else "again"].add((message, peer, sender, at))
            if not sender:
                truth["published"].add((message, topic, peer, at))
            for other in random.sample(peers, 3) if is_new else ():
                if other not in (peer, sender):
                    text = f"to_peer_id={other} topic={topic} sentTime={at} payloadSizeBytes=9"
                    logs[peer].append((at, f"sent relay message   tid=7 {about} {text}"))
                    queue.append((at + random.randrange(1, 10**8), other, peer))
    lines = [text for texts in logs.values() for text in texts]
    (folder / "all.log").write_text(
        "".join(f"NTC 2025 \x1b[1m{text}\x1b[0m\n" for _, text in lines)
    )
    return truth


@pytest.mark.parametrize("are_all_logged", [True, False])
def test_logs_of_waku_are_what_the_nodes_did(tmp_path: Path, are_all_logged: bool) -> None:
    truth = waku_logs(tmp_path, 2, are_all_logged=are_all_logged)
    found = take_lines(read_patterns("waku"), tmp_path / "all.log")
    assert not found.staged.quarantine
    # The first event of all is a publication whose sends have its time.
    assert found.rows("publications", "message", "topic", "publisher", "time_us") == {
        (m, topic, peer, (at - START_NS) // 1000) for m, topic, peer, at in truth["published"]
    }
    for is_first, copies in ((True, truth["first"]), (False, truth["again"])):
        assert {
            (row["message"], row["peer"], row["previous_hop"], row["time_us"])
            for row in found.records("receptions")
            if row["first"] is is_first
        } == {(m, peer, sender, (at - START_NS) // 1000) for m, peer, sender, at in copies}
    assert bool(truth["again"]) is are_all_logged
    assert (DUPLICATES in found.told.unknown) is not are_all_logged


def test_lines_with_bad_values_are_refused_and_files_that_do_not_fit_are_skipped(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.log").write_text("got m at 1\ngot m at never\nwent home\ngot m at 2")
    (tmp_path / "notes.md").write_text("got m at 3\n")
    pattern = (
        "time_unit = 's'\nfile = '(?P<peer>[^/]+)\\.log$'\n[lines.x]\nkind = 'deliver'\n"
        r"pattern = 'got (?P<message>\S+) at (?P<time>\S+)'"
    )
    found = take_lines(pattern, tmp_path)
    assert [(file, line) for file, line, *_ in found.staged.quarantine] == [("a.log", 2)]
    assert found.told.notes[NO_MATCH] == 1
    assert found.rows("receptions", "peer", "time_us") == {("a", 0), ("a", 1_000_000)}
    with pytest.raises(InputError, match=r"notes\.md"):
        take_lines(pattern, tmp_path / "notes.md")
    (tmp_path / "a.log").write_text("went home\n")
    with pytest.raises(InputError) as error:
        take_lines(pattern, tmp_path)
    assert f"1 {NO_MATCH}" in str(error.value.hint)


def test_lines_of_windows_match_as_others_do(tmp_path: Path) -> None:
    pattern = (
        "time_unit = 's'\n[lines.x]\nkind = 'deliver'\n"
        r"pattern = '(?P<peer>\w+) got (?P<message>\w+) at (?P<time>\d+)$'"
    )
    (tmp_path / "a.log").write_bytes(b"a got m at 1\r\na got n at 2\na got o at 3\r\n")
    found = take_lines(pattern, tmp_path)
    assert found.rows("receptions", "message") == {("m",), ("n",), ("o",)}
    assert NO_MATCH not in found.told.notes


def test_lines_without_patterns_are_an_error() -> None:
    with pytest.raises(UseError, match="--pattern"):
        sources_for(SourceOptions(), "lines")


def test_run_of_logs_keeps_negative_delays(spark: SparkSession, tmp_path: Path) -> None:
    published, received, early = nim_logs(tmp_path / "logs", 3)
    request = IngestRequest(
        (str(tmp_path / "logs"),),
        "nim",
        tmp_path,
        "lines",
        SourceOptions(pattern=read_patterns("nim-libp2p")),
    )
    run = ingested(spark, request).run
    assert run.manifest.notes[EARLY] == early
    names = run.read("publications").to_pylist()
    message_names = {row["message"]: row["name"] for row in names}
    delays = {
        name: [at // 1000 - published[m][1] // 1000 for (m, _), at in received.items() if m == name]
        for name in published
    }
    rows = run.read("metrics/messages").to_pylist()
    assert {message_names[row["message"]]: row["delay_us_max"] for row in rows} == {
        name: max(values) for name, values in delays.items()
    }
    assert {message_names[row["message"]]: row["causality_violations"] for row in rows} == {
        name: sum(value < 0 for value in values) for name, values in delays.items()
    }
    assert {row["hit_ratio"] for row in rows} <= {1.0, 5 / 6}
    again = settling_request(run)
    assert (again.source, again.options) == ("lines", request.options)
