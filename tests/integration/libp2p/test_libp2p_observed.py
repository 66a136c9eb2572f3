"""Rules of presence, mesh and receptions against naive readings of small made-up traces."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from ingest.sources import libp2p_observed as observed
from ingest.sources import libp2p_presence as presence
from ingest.sources.libp2p_events import Type
from model.clock import OPEN, Clock

pytestmark = pytest.mark.spark

SCHEMA = (
    "type BIGINT, peer STRING, ts_ns BIGINT, other STRING, topic STRING, message STRING, "
    "reason STRING, file STRING, position BIGINT"
)
Event = tuple[Type, str, int, str | None, str | None, str | None]
Span = tuple[int, int]


def at(us: int, type: Type, peer: str, other: str | None = None, **about: str) -> Event:
    return (type, peer, us * 1000, other, about.get("topic"), about.get("message"))


def on_clock(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    """A trace in which the events stand in this order, one file a peer."""
    rows = [(int(type), *told, None, told[0], n) for n, (type, *told) in enumerate(events)]
    clock = Clock(ticks_per_interval=1_000_000, tick_us=1)
    return observed.on_clock(spark.createDataFrame(rows, SCHEMA), 0, clock)


def stays(events: DataFrame) -> dict[str, Span]:
    found = presence.reporting(events, observed.streams(events)).collect()
    return {row.peer: (row.vf, row.vt) for row in found}


def naive_streams(events: Sequence[Event]) -> dict[tuple[str, str], list[Span]]:
    lives: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for type, peer, ns, other, *_ in events:
        spans = lives[peer, str(other)]
        is_open = bool(spans) and spans[-1][1] == OPEN
        if type == Type.STREAM_OPENED and not is_open:
            spans.append((ns // 1000, OPEN))
        elif type == Type.STREAM_CLOSED and is_open:
            since, _ = spans.pop()
            spans.append((since, max(ns // 1000, since + 1)))
    return lives


def naive_stays(events: Sequence[Event]) -> dict[str, Span]:
    """The largest set of silent peers that can be gone, found by trying every set."""
    first, last = {}, {}
    for _, peer, ns, *_ in events:
        first.setdefault(peer, ns)
        last[peer] = ns
    end: dict[str, int] = {}
    for type, peer, ns, other, *_ in events:
        if type == Type.STREAM_CLOSED and other in last and other != peer and ns >= last[other]:
            end.setdefault(str(other), ns)
    holds = [
        ends for ends, spans in naive_streams(events).items() if spans and spans[-1][1] == OPEN
    ]
    gone: set[str] = set()
    for size in range(len(end) + 1):
        for some in map(set, combinations(sorted(end), size)):
            held = any(dst in some and src not in some and src != dst for src, dst in holds)
            gone = gone if held else some
    return {
        peer: (ns // 1000, max(end[peer] // 1000, ns // 1000 + 1) if peer in gone else OPEN)
        for peer, ns in first.items()
    }


def random_streams(seed: int) -> list[Event]:
    """Peers fall silent one by one; streams to them are closed late, or never."""
    rng = random.Random(seed)
    peers = "abcdef"
    silent_from = {peer: rng.choice([20, 40, 60, 200]) for peer in peers}
    events = []
    for us in sorted(rng.choices(range(100), k=60)):
        talking = [peer for peer in peers if us <= silent_from[peer]]
        if talking:
            peer, other = rng.choice(talking), rng.choice([*peers, "x"])
            type = rng.choice([Type.STREAM_OPENED, Type.STREAM_CLOSED, Type.STREAM_CLOSED])
            events.append(at(us, type, peer, other))
    return events


Traces = dict[int, list[Event]]


def together(traces: Traces) -> list[Event]:
    """All traces as one: no peer of one knows a peer of another."""
    return [
        (type, f"{seed}{peer}", ns, other and f"{seed}{other}", topic, message)
        for seed, events in traces.items()
        for type, peer, ns, other, topic, message in events
    ]


STREAMS = {seed: random_streams(seed) for seed in range(6)}


@pytest.fixture(scope="module")
def all_stays(spark: SparkSession) -> dict[str, Span]:
    return stays(on_clock(spark, together(STREAMS)))


@pytest.mark.parametrize("seed", STREAMS)
def test_presence_equals_the_largest_set_of_gone_peers(
    all_stays: dict[str, Span], seed: int
) -> None:
    found = {name[1:]: stay for name, stay in all_stays.items() if name[0] == str(seed)}
    assert found == naive_stays(STREAMS[seed])


def test_random_traces_hold_gone_and_staying_peers() -> None:
    """Else the test above would compare nothing."""
    ends = [vt for seed in range(6) for _, vt in naive_stays(random_streams(seed)).values()]
    assert 3 < sum(vt != OPEN for vt in ends) < len(ends) - 3


def test_gone_peers_do_not_keep_each_other_present(spark: SparkSession) -> None:
    events = [
        *(at(1, Type.STREAM_OPENED, src, dst) for src, dst in ("ab", "ba", "ca", "cb")),
        at(5, Type.STREAM_CLOSED, "c", "a"),
        at(6, Type.STREAM_CLOSED, "c", "b"),
    ]
    assert stays(on_clock(spark, events)) == {"a": (1, 5), "b": (1, 6), "c": (1, OPEN)}


def test_silent_peer_is_kept_through_another_silent_one(spark: SparkSession) -> None:
    """d holds c, c holds b, b holds a: closings by e end none of them."""
    events = [
        *(at(1, Type.STREAM_OPENED, src, dst) for src, dst in ("dc", "cb", "ba")),
        at(1, Type.JOIN, "a", topic="t"),
        *(at(5, Type.STREAM_CLOSED, "e", dst) for dst in "abc"),
        at(9, Type.JOIN, "d", topic="t"),
    ]
    vt = {peer: span[1] for peer, span in stays(on_clock(spark, events)).items()}
    assert vt == dict.fromkeys("abcde", OPEN)


def test_peer_named_by_others_is_present_during_streams(spark: SparkSession) -> None:
    """x is there while a, which is there until 50, has a stream to it; and again for b."""
    events = [
        at(1, Type.STREAM_OPENED, "b", "a"),
        at(10, Type.STREAM_OPENED, "a", "x"),
        at(20, Type.STREAM_CLOSED, "a", "x"),
        at(30, Type.STREAM_OPENED, "a", "x"),
        at(50, Type.STREAM_CLOSED, "b", "a"),
        at(60, Type.STREAM_OPENED, "b", "x"),
    ]
    trace = on_clock(spark, events)
    streams = observed.streams(trace)
    named = presence.named(streams, presence.reporting(trace, streams))
    found = sorted((row.peer, row.vf, row.vt) for row in named.collect())
    assert found == [("x", 10, 20), ("x", 30, 50), ("x", 60, OPEN)]


def naive_mesh(events: Sequence[Event]) -> set[tuple[str, str, str, int, int]]:
    """One event after another, as a router would."""
    since: dict[tuple[str, str, str], int] = {}
    lives = set()
    for type, peer, ns, other, topic, _ in events:
        if type == Type.GRAFT:
            since.setdefault((peer, str(other), str(topic)), ns // 1000)
            continue
        ended = {
            Type.PRUNE: lambda key, p=peer, o=other, t=topic: key == (p, o, t),
            Type.STREAM_CLOSED: lambda key, p=peer, o=other: key[:2] == (p, o),
            Type.LEAVE: lambda key, p=peer, t=topic: (key[0], key[2]) == (p, t),
        }.get(type, lambda key: False)
        for key in [key for key in since if ended(key)]:
            vf = since.pop(key)
            lives.add((*key, vf, max(ns // 1000, vf + 1)))
    return lives | {(*key, vf, OPEN) for key, vf in since.items()}


def random_mesh(seed: int) -> list[Event]:
    rng = random.Random(seed)
    kinds = [Type.GRAFT] * 4 + [Type.PRUNE, Type.STREAM_CLOSED, Type.LEAVE, Type.STREAM_OPENED]
    events = []
    # Many events share a microsecond, where their order in the file counts.
    for us in sorted(rng.choices(range(120), k=250)):
        type, peer, other = rng.choice(kinds), rng.choice("ab"), rng.choice("cde")
        topic = rng.choice(["news", "news/sport"])
        if type in (Type.STREAM_CLOSED, Type.STREAM_OPENED):
            events.append(at(us, type, peer, other))
        elif type == Type.LEAVE:
            events.append(at(us, type, peer, topic=topic))
        else:
            events.append(at(us, type, peer, other, topic=topic))
    return events


MESHES = {seed: random_mesh(seed) for seed in range(3)}


@pytest.fixture(scope="module")
def all_meshes(spark: SparkSession) -> list[Any]:
    found: list[Any] = observed.mesh(on_clock(spark, together(MESHES))).collect()
    return found


@pytest.mark.parametrize("seed", MESHES)
def test_mesh_equals_a_router_that_follows_the_events(all_meshes: list[Any], seed: int) -> None:
    assert {
        (row.src[1:], row.dst[1:], row.topic, row.vf, row.vt)
        for row in all_meshes
        if row.src[0] == str(seed)
    } == naive_mesh(MESHES[seed])


def receptions(spark: SparkSession, *events: Event) -> list[Any]:
    found = observed.receptions(on_clock(spark, events)).orderBy("tick").collect()
    return [(r.peer, r.previous_hop, r.tick, r.first) for r in found]


def test_message_delivered_again_is_first_once(spark: SparkSession) -> None:
    """A peer forgets what it has seen after two minutes, and takes the same message again."""
    found = receptions(
        spark,
        at(5, Type.DELIVER, "b", "a", message="m"),
        at(7, Type.DUPLICATE, "b", "c", message="m"),
        at(130_000_000, Type.DELIVER, "b", "c", message="m"),
    )
    later = ("b", "c", 130_000_000, False)
    assert found == [("b", "a", 5, True), ("b", "c", 7, False), later]


def test_publisher_receives_its_own_message_back(spark: SparkSession) -> None:
    found = receptions(
        spark,
        at(1, Type.PUBLISH, "a", topic="t", message="m"),
        at(1, Type.DELIVER, "a", "a", topic="t", message="m"),
        at(1, Type.DELIVER, "a", topic="t", message="m"),
        at(4, Type.DELIVER, "b", topic="t", message="m"),
        at(9, Type.DUPLICATE, "a", "b", topic="t", message="m"),
    )
    assert found == [("b", None, 4, True), ("a", "b", 9, False)]


def test_rejection_of_an_own_message_is_left_out(spark: SparkSession) -> None:
    events = [
        at(1, Type.REJECT, "a", "a", topic="t", message="m"),
        at(2, Type.REJECT, "b", "a", topic="t", message="m"),
    ]
    found = observed.rejections(on_clock(spark, events)).collect()
    assert [(row.peer, row.previous_hop, row.time_us) for row in found] == [("b", "a", 2)]
