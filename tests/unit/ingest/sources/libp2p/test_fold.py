"""Rules of presence, links, traffic and receptions against naive readings of small traces."""

from __future__ import annotations

import random
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.support.events import Happened, at, name_of, of_lines, trace
from tests.support.staged import Staged, Taken, staged
from vizpub.ingest.inputs.reader import RowKind
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent, rows_of_event
from vizpub.ingest.sources.libp2p.facts import SAME_EVENTS
from vizpub.ingest.sources.libp2p.presence import find_stays
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.model.clock import OPEN
from vizpub.model.errors import InputError

Span = tuple[int, int]
PEERS = ("src", "dst", "peer", "previous_hop")


@pytest.mark.parametrize("kind", [EventType.STREAM_OPENED, EventType.STREAM_CLOSED])
def test_event_of_two_peers_is_one_record(kind: EventType) -> None:
    rows = rows_of_event(TraceEvent(kind, "a", 0, "b"), 0, 1)
    assert [(row.peer, row.kind) for row in rows] == [("a", RowKind.RECORD), ("b", RowKind.FURTHER)]


def folded(folder: Path, events: Iterable[Happened], **options: Any) -> Staged:
    return staged(Libp2p(), trace(folder, events), SourceOptions(**options))


def rows(found: Staged, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table that was folded; peers by the names of the test."""
    return [
        tuple(name_of(row[c]) if c in PEERS and row[c] else row[c] for c in columns)
        for row in found.tables[table].to_pylist()
    ]


def stays_of(found: Staged) -> dict[str, Span]:
    each = find_stays(found.tables["peers"]).to_pylist()
    return {name_of(row["peer"]): (row["valid_from"], row["valid_to"]) for row in each}


def naive_lives(changes: Iterable[tuple[int, bool]]) -> list[Span]:
    """One change after another."""
    spans, since = [], None
    for us, opens in changes:
        if opens and since is None:
            since = us
        elif not opens and since is not None:
            spans.append((since, max(us, since + 1)))
            since = None
    return spans if since is None else [*spans, (since, OPEN)]


def naive_streams(events: Sequence[Happened]) -> dict[tuple[str, str], list[Span]]:
    changes = defaultdict(list)
    for event in events:
        if event.type in (EventType.STREAM_OPENED, EventType.STREAM_CLOSED):
            opens = event.type == EventType.STREAM_OPENED
            changes[event.peer, str(event.other)].append((event.us, opens))
    return {ends: naive_lives(each) for ends, each in changes.items()}


def naive_stays(events: Sequence[Happened]) -> dict[str, Span]:
    """The largest set of silent peers that can be gone, found by trying every set."""
    first, last = {}, {}
    for event in events:
        first.setdefault(event.peer, event.us)
        last[event.peer] = event.ns
    end: dict[str, int] = {}
    for type, peer, ns, other, *_ in events:
        if (
            type == EventType.STREAM_CLOSED
            and other in last
            and other != peer
            and ns >= last[other]
        ):
            end.setdefault(str(other), ns // 1000)
    holds = [
        ends for ends, spans in naive_streams(events).items() if spans and spans[-1][1] == OPEN
    ]
    gone: set[str] = set()
    for size in range(len(end) + 1):
        for some in map(set, combinations(sorted(end), size)):
            held = any(dst in some and src not in some and src != dst for src, dst in holds)
            gone = gone if held else some
    return {
        peer: (us, max(end[peer], us + 1) if peer in gone else OPEN) for peer, us in first.items()
    }


def random_streams(seed: int) -> list[Happened]:
    """Peers fall silent one by one; streams to them are closed late, or never."""
    rng = random.Random(seed)
    peers = "abcdef"
    silent_from = {peer: rng.choice([20, 40, 60, 200]) for peer in peers}
    events = []
    for us in sorted(rng.choices(range(100), k=60)):
        talking = [peer for peer in peers if us <= silent_from[peer]]
        if talking:
            peer, other = rng.choice(talking), rng.choice([*peers, "x"])
            type = rng.choice(
                [EventType.STREAM_OPENED, EventType.STREAM_CLOSED, EventType.STREAM_CLOSED]
            )
            events.append(at(us, type, peer, other))
    return events


STREAMS = {seed: random_streams(seed) for seed in range(40)}


@pytest.mark.parametrize("seed", STREAMS)
def test_presence_equals_the_largest_set_of_gone_peers(tmp_path: Path, seed: int) -> None:
    assert stays_of(folded(tmp_path, STREAMS[seed])) == naive_stays(STREAMS[seed])


def test_random_traces_hold_gone_and_staying_peers() -> None:
    """Else the test above would compare nothing."""
    ends = [valid_to for seed in range(6) for _, valid_to in naive_stays(STREAMS[seed]).values()]
    assert 3 < sum(valid_to != OPEN for valid_to in ends) < len(ends) - 3


@pytest.mark.parametrize("seed", range(6))
def test_streams_equal_one_change_after_another(tmp_path: Path, seed: int) -> None:
    links = rows(
        folded(tmp_path, STREAMS[seed]),
        "links",
        "src",
        "dst",
        "layer",
        "topic",
        "valid_from",
        "valid_to",
    )
    assert sorted(links) == sorted(
        (*ends, "streams", None, *span)
        for ends, spans in naive_streams(STREAMS[seed]).items()
        for span in spans
    )


def test_gone_peers_do_not_keep_each_other_present(tmp_path: Path) -> None:
    events = [
        *(at(1, EventType.STREAM_OPENED, src, dst) for src, dst in ("ab", "ba", "ca", "cb")),
        at(5, EventType.STREAM_CLOSED, "c", "a"),
        at(6, EventType.STREAM_CLOSED, "c", "b"),
    ]
    assert stays_of(folded(tmp_path, events)) == {"a": (1, 5), "b": (1, 6), "c": (1, OPEN)}


def test_silent_peer_is_kept_through_another_silent_one(tmp_path: Path) -> None:
    """d holds c, c holds b, b holds a: closings by e end none of them."""
    events = [
        *(at(1, EventType.STREAM_OPENED, src, dst) for src, dst in ("dc", "cb", "ba")),
        at(1, EventType.JOIN, "a", topic="t"),
        *(at(5, EventType.STREAM_CLOSED, "e", dst) for dst in "abc"),
        at(9, EventType.JOIN, "d", topic="t"),
    ]
    valid_to = {peer: span[1] for peer, span in stays_of(folded(tmp_path, events)).items()}
    assert valid_to == dict.fromkeys("abcde", OPEN)


@pytest.mark.parametrize(("ns", "valid_to"), [(4_999, OPEN), (5_000, 5), (5_001, 5)])
def test_stream_closed_before_the_last_event_ends_no_presence(
    tmp_path: Path, ns: int, valid_to: int
) -> None:
    """What was closed in the same nanosecond may have been closed after it."""
    events = [
        at(1, EventType.JOIN, "a", topic="t"),
        at(5, EventType.LEAVE, "a", topic="t"),
        Happened(EventType.STREAM_CLOSED, "b", ns, "a"),
        at(9, EventType.JOIN, "b", topic="t"),
    ]
    assert stays_of(folded(tmp_path, events))["a"] == (1, valid_to)


def naive_mesh(events: Sequence[Happened]) -> set[tuple[str, str, str, int, int]]:
    """One event after another, as a router would."""
    since: dict[tuple[str, str, str], int] = {}
    lives = set()
    for type, peer, ns, other, topic, *_ in events:
        if type == EventType.GRAFT:
            since.setdefault((peer, str(other), str(topic)), ns // 1000)
            continue
        ended = {
            EventType.PRUNE: lambda key, p=peer, o=other, t=topic: key == (p, o, t),
            EventType.STREAM_CLOSED: lambda key, p=peer, o=other: key[:2] == (p, o),
            EventType.LEAVE: lambda key, p=peer, t=topic: (key[0], key[2]) == (p, t),
        }.get(type, lambda key: False)
        for key in [key for key in since if ended(key)]:
            valid_from = since.pop(key)
            lives.add((*key, valid_from, max(ns // 1000, valid_from + 1)))
    return lives | {(*key, valid_from, OPEN) for key, valid_from in since.items()}


def random_mesh(seed: int) -> list[Happened]:
    rng = random.Random(seed)
    kinds = [EventType.GRAFT] * 4 + [
        EventType.PRUNE,
        EventType.STREAM_CLOSED,
        EventType.LEAVE,
        EventType.STREAM_OPENED,
    ]
    events = []
    # Many events share a microsecond, where their order in the file counts.
    for us in sorted(rng.choices(range(120), k=250)):
        type, peer, other = (
            rng.choice([*kinds, EventType.JOIN]),
            rng.choice("ab"),
            rng.choice("cde"),
        )
        topic = rng.choice(["news", "news/sport"])
        if type in (EventType.STREAM_CLOSED, EventType.STREAM_OPENED):
            events.append(at(us, type, peer, other))
        elif type in (EventType.JOIN, EventType.LEAVE):
            events.append(at(us, type, peer, topic=topic))
        else:
            events.append(at(us, type, peer, other, topic=topic))
    return events


MESHES = {seed: random_mesh(seed) for seed in range(5)}


@pytest.mark.parametrize("seed", MESHES)
def test_mesh_equals_a_router_that_follows_the_events(tmp_path: Path, seed: int) -> None:
    links = rows(
        folded(tmp_path, MESHES[seed]),
        "links",
        "src",
        "dst",
        "topic",
        "valid_from",
        "valid_to",
        "layer",
    )
    meshes = [row[:5] for row in links if row[5] == "mesh"]
    assert len(meshes) == len(set(meshes))
    assert set(meshes) == naive_mesh(MESHES[seed])


@pytest.mark.parametrize("seed", MESHES)
def test_subscriptions_equal_one_change_after_another(tmp_path: Path, seed: int) -> None:
    changes = defaultdict(list)
    for event in MESHES[seed]:
        if event.type in (EventType.JOIN, EventType.LEAVE):
            changes[event.peer, event.topic].append((event.us, event.type == EventType.JOIN))
    found = rows(
        folded(tmp_path, MESHES[seed]), "subscriptions", "peer", "topic", "valid_from", "valid_to"
    )
    assert Counter(found) == Counter(
        (*what, *span) for what, each in changes.items() for span in naive_lives(each)
    )
    assert len(found) > 10


def receptions(folder: Path, *events: Happened) -> list[Any]:
    found = folded(folder, events)
    return sorted(rows(found, "receptions", "tick", "peer", "previous_hop", "arrival", "first"))


def test_deliveries_are_told_to_be_first_and_duplicates_are_not(tmp_path: Path) -> None:
    """A peer forgets what it has seen after two minutes, and takes the same message again."""
    assert receptions(
        tmp_path,
        at(5, EventType.DELIVER, "b", "a", message="m"),
        at(7, EventType.DUPLICATE, "b", "c", message="m"),
        at(130_000_000, EventType.DELIVER, "b", "c", message="m"),
    ) == [(5, "b", "a", 1, True), (7, "b", "c", 2, False), (130_000_000, "b", "c", 3, True)]


def test_publisher_receives_its_own_message_back(tmp_path: Path) -> None:
    assert receptions(
        tmp_path,
        at(1, EventType.PUBLISH, "a", topic="t", message="m"),
        at(1, EventType.DELIVER, "a", "a", topic="t", message="m"),
        at(1, EventType.DELIVER, "a", topic="t", message="m"),
        at(4, EventType.DELIVER, "b", topic="t", message="m"),
        at(6, EventType.DELIVER, "a", topic="t", message="another"),
        at(9, EventType.DUPLICATE, "a", "b", topic="t", message="m"),
    ) == [(4, "b", None, 1, True), (6, "a", None, 1, True), (9, "a", "b", 2, False)]


def naming(kind: str, *messages: str) -> dict[str, Any]:
    ids = [b64encode(message.encode()).decode() for message in messages]
    return {"control": {kind: [{"messageIDs": ids}]}}


def test_copies_know_what_their_receiver_asked_for(tmp_path: Path) -> None:
    """An IDONTWANT counts whomever it was sent to, an IWANT for its receiver alone; what was
    received or dropped does not count.
    """
    events = [
        at(1, EventType.DUPLICATE, "b", "c", message="m"),
        at(2, EventType.SEND_RPC, "b", "a", meta=naming("idontwant", "m", "n")),
        at(3, EventType.DUPLICATE, "b", "c", message="m"),
        at(4, EventType.SEND_RPC, "b", "d", meta=naming("iwant", "m")),
        at(5, EventType.DUPLICATE, "b", "c", message="m"),
        at(6, EventType.DUPLICATE, "b", "d", message="m"),
        at(7, EventType.RECV_RPC, "b", "c", meta=naming("iwant", "o")),
        at(8, EventType.DROP_RPC, "b", "c", meta=naming("idontwant", "o")),
        at(9, EventType.DELIVER, "b", "c", message="o"),
        at(10, EventType.SEND_RPC, "b", "c", meta=naming("ihave", "p")),
        at(11, EventType.DELIVER, "b", "c", message="p"),
        at(12, EventType.DELIVER, "b", message="n"),
    ]
    found = Taken(Libp2p(), folded(tmp_path, events), SourceOptions())
    flags = "after_idontwant", "before_idontwant", "by_iwant"
    assert found.rows("receptions", "tick", *flags) == {
        (1, False, True, False),
        (3, True, False, False),
        (5, True, False, False),
        (6, True, False, True),
        (9, False, False, False),
        (11, False, False, False),
        (12, True, False, None),
    }


def test_rejection_of_an_own_message_is_left_out(tmp_path: Path) -> None:
    events = [
        at(1, EventType.REJECT, "a", "a", topic="t", message="m"),
        at(2, EventType.REJECT, "b", "a", topic="t", message="m"),
    ]
    found = rows(folded(tmp_path, events), "rejections", "peer", "previous_hop", "tick")
    assert found == [("b", "a", 2)]


SUMS = (
    *("control_messages_sent", "control_messages_received"),
    *("publication_messages_sent", "publication_messages_received", "dropped"),
    *("rpcs_sent", "rpcs_received"),
)


def random_rpcs(seed: int) -> tuple[list[Happened], dict[tuple[str, int], Counter[str]]]:
    """Events of some intervals of 10 µs, and what each of these counts."""
    rng = random.Random(seed)
    ways = {EventType.SEND_RPC: "sent", EventType.RECV_RPC: "received"}
    events, sums = [at(0, EventType.JOIN, "a", topic="t")], defaultdict(Counter)
    sums["a", 0].clear()
    for us in sorted(rng.choices(range(1000), k=80)):
        peer, type = rng.choice("ab"), rng.choice([*ways, EventType.DROP_RPC, EventType.JOIN])
        here = sums[peer, us // 10]
        if type == EventType.JOIN:
            events.append(at(us, type, peer, topic="t"))
            continue
        control, messages = rng.randrange(4), rng.randrange(3)
        kind = rng.choice(["ihave", "iwant", "graft", "prune", "idontwant"])
        meta = {"messages": [{}] * messages, "control": {kind: [{}] * control}}
        meta["subscription"] = [{}] * (type == EventType.RECV_RPC)
        events.append(at(us, type, peer, "c", meta=meta))
        if type == EventType.DROP_RPC:
            here["dropped"] += 1
        else:
            here[f"control_messages_{ways[type]}"] += control + (type == EventType.RECV_RPC)
            here[f"publication_messages_{ways[type]}"] += messages
            here[f"rpcs_{ways[type]}"] += 1
    return events, sums


@pytest.mark.parametrize("seed", range(3))
def test_traffic_equals_the_sums_of_intervals(tmp_path: Path, seed: int) -> None:
    """Intervals without an event, too, up to the last one with one."""
    events, sums = random_rpcs(seed)
    found = folded(tmp_path, events, interval_us=10)
    each = {
        (name_of(row["peer"]), interval): {name: row[name] for name in SUMS}
        for row in found.tables["traffic"].to_pylist()
        for interval in range(row["valid_from"], row["valid_to"])
    }
    expected = {}
    for peer in "ab":
        mine = [interval for one, interval in sums if one == peer]
        for interval in range(min(mine), max(mine) + 1):
            here = sums.get((peer, interval), Counter())
            expected[peer, interval] = {name: here[name] for name in SUMS}
    assert each == expected
    assert sum(
        row["valid_to"] - row["valid_from"] for row in found.tables["traffic"].to_pylist()
    ) == len(each)


@pytest.mark.parametrize("seed", range(2))
def test_gauges_of_writes_equal_the_sums_of_intervals(tmp_path: Path, seed: int) -> None:
    """What is written was counted when it was sent."""
    rng, meta = random.Random(seed), {"messages": [{}], "control": {"graft": [{}]}}
    events, expected = [at(0, EventType.JOIN, "a", topic="t")], defaultdict(list)
    for us in sorted(rng.choices(range(300), k=40)):
        peer, write_ns = rng.choice("ab"), rng.choice([0, 700, 40_000])
        written = EventType.SEND_RPC_COMPLETED
        events.append(at(us, written, peer, "c", meta=meta, write_ns=write_ns))
        expected[peer, us // 10].append(write_ns)
    found = folded(tmp_path, events, interval_us=10)
    assert sorted(rows(found, "gauges", "peer", "interval", "gauge", "value")) == sorted(
        (*of, gauge, value)
        for of, each in expected.items()
        for gauge, value in {
            "rpc_writes": len(each),
            "rpc_write_us": pytest.approx(sum(each) / 1000),
            "rpc_write_us_max": max(each) / 1000,
        }.items()
    )
    assert not found.tables["control"].num_rows
    assert not any(row["rpcs_sent"] for row in found.tables["traffic"].to_pylist())


def test_silence_of_years_is_one_row(tmp_path: Path) -> None:
    events = [at(0, EventType.JOIN, "a", topic="t"), at(10**15, EventType.LEAVE, "a", topic="t")]
    assert folded(tmp_path, events).tables["traffic"].num_rows == 3


@pytest.mark.parametrize("interval_us", [1, 1_000_000])
def test_trace_that_begins_in_its_middle_equals_one_in_order(
    tmp_path: Path, interval_us: int
) -> None:
    """Where the run begins is not told by the first line, which may be an outlier."""
    events = [
        at(10**12 + us, type, "a", "b", topic="t", message="m")
        for us, type in (
            (5, EventType.PUBLISH),
            (9, EventType.DELIVER),
            (7_000_000, EventType.REJECT),
        )
    ]
    lines = [event.line for event in events]
    late = 10**15 if interval_us == 1 else 0
    made = []
    for name, told in (("sorted", lines), ("mixed", [*lines[1:], lines[0]])):
        beyond = [at(10**12 + late + 8_000_000, EventType.JOIN, "a", topic="t").line]
        file = of_lines(tmp_path / name, [*beyond, *told] if name == "mixed" else [*told, *beyond])
        made.append(staged(Libp2p(), [file], SourceOptions(interval_us=interval_us)))
    in_order, mixed = made
    assert mixed.tables.keys() == in_order.tables.keys()
    for name, table in mixed.tables.items():
        if name != "quarantine":
            assert table == in_order.tables[name]
    assert [row[2:] for row in mixed.quarantine] == [row[2:] for row in in_order.quarantine]
    assert [row[1] for row in mixed.quarantine] == ([1] if late else [])
    (published,) = in_order.tables["publications"].to_pylist()
    assert published["tick"] == published["time_us"] == (5 if interval_us > 1 else 0)


def naive_copies(spans: Sequence[Span]) -> bool:
    return any((a[0] < b[1] and b[0] < a[1]) or a == b for a, b in combinations(spans, 2))


def random_spans(seed: int) -> list[Span]:
    """From when to when each of three files tells of a peer."""
    rng = random.Random(seed)
    return [(since, since + rng.choice([0, 0, 1, 4])) for since in rng.choices(range(14), k=3)]


FILES = {seed: random_spans(seed) for seed in range(30)} | {30: [(3, 5), (5, 5), (5, 5)]}


@pytest.mark.parametrize("seed", FILES)
def test_files_that_tell_of_one_time_are_copies(tmp_path: Path, seed: int) -> None:
    files = [
        of_lines(tmp_path / f"{n}", [at(us, EventType.JOIN, "a", topic="t").line for us in span])
        for n, span in enumerate(FILES[seed])
    ]
    counted = staged(Libp2p(), files, SourceOptions()).counted
    told = pytest.raises(InputError, match=SAME_EVENTS)
    with told if naive_copies(FILES[seed]) else nullcontext():
        Libp2p().describe(counted, SourceOptions())


def test_random_files_are_copies_and_are_none() -> None:
    """Else the test above would compare nothing."""
    assert 5 < sum(map(naive_copies, FILES.values())) < 25
