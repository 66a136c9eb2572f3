"""Reports of a real trace, against what the run recorded beside it (tests/data/libp2p_small)."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from vizpub.ingest.sources.libp2p import json_events
from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent, make_event
from vizpub.ingest.sources.libp2p.reporting import TraceReports
from vizpub.reports.files import problems

SMALL = Path(__file__).parents[5] / "tests/data/libp2p_small"
SECOND = 1_000_000
EPOCH_US = 946_684_800 * SECOND
Json = dict[str, Any]


@cache
def events() -> tuple[TraceEvent, ...]:
    lines = [
        line
        for path in sorted((SMALL / "json").iterdir())
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    return tuple(make_event(json_events.decode(line)[0]) for line in lines)


@cache
def truth() -> Any:
    return json.loads(gzip.decompress((SMALL / "truth.json.gz").read_bytes()))


@cache
def reports() -> tuple[Json, ...]:
    made = TraceReports(EPOCH_US, SECOND, 30 * SECOND)
    for event in events():
        made.add(event)
    return tuple(report for _, told in made.reports_through(119) for report in told)


def names() -> dict[int, str]:
    return {node["idx"]: node["peer_id"] for node in truth()["nodes"]}


def test_reports_are_valid() -> None:
    assert {problem for report in reports() for problem in problems(report)} == set()
    pairs = [(report["peer"], report["interval"]) for report in reports()]
    assert len(pairs) == len(set(pairs))


def test_mesh_equals_the_snapshots() -> None:
    """Both ends of a link log it within its round trip, so it may differ at one of them."""
    by_interval: dict[int, set[tuple[str, str, str]]] = {}
    for report in reports():
        found = by_interval.setdefault(report["interval"], set())
        for link in report["neighbors"]:
            if link["layer"] == "mesh":
                found.add((report["peer"], link["peer"], link["topic"]))
    assert len(truth()["snapshots"]) == 11
    for snapshot in truth()["snapshots"]:
        interval = (snapshot["t_ns"] // 1000 - EPOCH_US) // SECOND - 1
        wanted = {
            (names()[int(src)], names()[dst], topic)
            for topic, mesh in snapshot["mesh"].items()
            for src, others in mesh.items()
            for dst in others
        }
        there = {report["peer"] for report in reports() if report["interval"] == interval}
        assert by_interval[interval] == {link for link in wanted if link[0] in there}, interval


def test_counts_equal_those_of_the_peers_own_tracers() -> None:
    """Copies of a message that the peer refused are left out."""
    refused = {(e.peer, e.message) for e in events() if e.type == EventType.REJECT}
    found: Counter[str] = Counter()
    for report in reports():
        found["messages_sent"] += report["publication"]["sent"]["messages"]
        found["messages_received"] += report["publication"]["received"]["messages"]
        found["sent"] += report["rpcs_sent"]
        found["received"] += report["rpcs_received"]
        found["dropped"] += report["gauges"]["dropped"]
        found["published"] += len(report["sent"])
        found["arrived"] += len(report["received"])
    raw = truth()["raw_tracer_totals"]
    copies = sum(
        event.type == EventType.DUPLICATE and (event.peer, event.message) in refused
        for event in events()
    )
    assert found == {
        "messages_sent": raw["SendRPC.messages"],
        "messages_received": raw["RecvRPC.messages"],
        "sent": raw["SendRPC"],
        "received": raw["RecvRPC"],
        "dropped": raw["DropRPC"],
        "published": len(truth()["messages"]),
        "arrived": raw["Deliver"] + raw["Duplicate"] - copies,
    }


def test_control_by_kind_equals_that_of_the_peers_own_tracers() -> None:
    found: Counter[str] = Counter()
    for entry in (entry for report in reports() for entry in report["control_kinds"]):
        kind = "subs" if "subscribe" in entry["kind"] else entry["kind"]
        for rpc, way in (("SendRPC", "sent"), ("RecvRPC", "received"), ("DropRPC", "dropped")):
            found[f"{rpc}.{kind}"] += entry[f"messages_{way}"]
            found[f"{rpc}.{kind}_ids"] += entry.get(f"ids_{way}", 0)
    raw = truth()["raw_tracer_totals"]
    assert {name for name, n in found.items() if n} <= raw.keys()
    assert +found == {name: n for name, n in raw.items() if n and name in found}
    for report in reports():
        for way in ("sent", "received"):
            total = sum(entry[f"messages_{way}"] for entry in report["control_kinds"])
            assert total == report["control"][way]["messages"]


def test_peers_report_from_joining_until_they_leave() -> None:
    at: dict[str, list[int]] = {}
    for report in reports():
        if not report.get("left"):
            at.setdefault(report["peer"], []).append(report["interval"])
    left = away = 0
    for node in truth()["nodes"]:
        found = at[node["peer_id"]]
        assert found[0] == _interval(node["joined_ns"])
        if "left_ns" in node:
            left += 1
            assert found[-1] + 1 - _interval(node["left_ns"]) in (0, 1), node
        else:
            assert found[-1] == 119
        missing = {*range(found[0], found[-1])} - {*found}
        # All streams to such a peer were closed: nothing tells it from one that is gone.
        spells = [
            (_interval(since), _interval(until)) for since, until in node.get("offline_ns", ())
        ]
        away += len(spells)
        assert bool(missing) == bool(spells)
        assert not missing - {i for since, until in spells for i in range(since, until + 1)}
    assert (left, away) == (5, 2)


def _interval(ns: int) -> int:
    return (ns // 1000 - EPOCH_US) // SECOND


@pytest.mark.parametrize("seed", range(3))
def test_order_within_an_interval_does_not_matter_between_peers(seed: int) -> None:
    print("seed", seed)
    rng, made = random.Random(seed), TraceReports(EPOCH_US, SECOND, 30 * SECOND)
    ours: dict[str, list[TraceEvent]] = {}
    for event in events():
        ours.setdefault(event.peer, []).append(event)
    found: list[Json] = []
    for last in range(0, 120, 7):
        until = (EPOCH_US + (last + 1) * SECOND) * 1000
        waiting = [peer for peer in ours if ours[peer]]
        while waiting:
            peer = rng.choice(waiting)
            if ours[peer] and ours[peer][0].time < until:
                made.add(ours[peer].pop(0))
            else:
                waiting.remove(peer)
        found += [report for _, told in made.reports_through(last) for report in told]
    assert made.late == 0

    def plain(told: tuple[Json, ...] | list[Json]) -> dict[tuple[str, int], Json]:
        return {(one["peer"], one["interval"]): one for one in told}

    wanted = {key: one for key, one in plain(reports()).items() if key[1] <= last}
    assert plain(found) == wanted


def test_event_before_the_epoch_makes_the_state_only() -> None:
    opened = TraceEvent(
        EventType.STREAM_OPENED, "a", EPOCH_US * 1000 - 5, "b", proto="/meshsub/1.1.0"
    )
    made = TraceReports(EPOCH_US, SECOND, 30 * SECOND)
    made.add(opened)
    (interval, told), *_ = made.reports_through(0)
    assert interval == 0
    assert [report["neighbors"] for report in told] == [[{"peer": "b", "layer": "streams"}]]


def test_late_event_is_counted_and_in_the_next_report() -> None:
    made = TraceReports(EPOCH_US, SECOND, 30 * SECOND)
    made.add(TraceEvent(EventType.JOIN, "a", EPOCH_US * 1000, topic="t"))
    assert [interval for interval, _ in made.reports_through(1)] == [0, 1]
    made.add(TraceEvent(EventType.PUBLISH, "a", (EPOCH_US + 5) * 1000, topic="t", message="m"))
    assert made.late == 1
    ((interval, (report,)),) = made.reports_through(2)
    assert (interval, report["sent"][0]["time_us"]) == (2, 5)


def test_writes_are_gauges_of_the_intervals_that_have_some() -> None:
    made = TraceReports(EPOCH_US, SECOND, 30 * SECOND)
    for us, write_ns in ((0, 2_000), (5, 6_000), (2 * SECOND, 500)):
        written = EventType.SEND_RPC_COMPLETED
        time = (EPOCH_US + us) * 1000
        made.add(TraceEvent(written, "a", time, "b", write_ns=write_ns))
    gauges = [report["gauges"] for _, (report,) in made.reports_through(2)]
    assert gauges == [
        {"dropped": 0, "rpc_writes": 2, "rpc_write_us": 8, "rpc_write_us_max": 6},
        {"dropped": 0},
        {"dropped": 0, "rpc_writes": 1, "rpc_write_us": 0.5, "rpc_write_us_max": 0.5},
    ]


@pytest.mark.parametrize(("held", "gone_at"), [(False, 4), (True, None)])
def test_silent_peer_is_gone_unless_somebody_has_a_stream_to_it(
    held: bool, gone_at: int | None
) -> None:
    made = TraceReports(EPOCH_US, SECOND, 3 * SECOND)
    made.add(TraceEvent(EventType.JOIN, "a", EPOCH_US * 1000 + 500_000_000, topic="t"))
    for second in range(9):
        at = (EPOCH_US + second * SECOND) * 1000 + 1
        made.add(TraceEvent(EventType.JOIN, "b", at, topic="t"))
    if held:
        made.add(TraceEvent(EventType.STREAM_OPENED, "b", EPOCH_US * 1000 + 2, "a"))
    left = [
        interval
        for interval, told in made.reports_through(8)
        for report in told
        if report["peer"] == "a" and report.get("left")
    ]
    assert left == ([] if gone_at is None else [gone_at - 1])
