"""Figures of the recorded gossipsub trace (tests/data/libp2p_small/README.md): events, structure.

`facts` and `truth` were written by the run itself, `tracestat` by the official tool.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from vizpub.ingest.sources.libp2p.events import EventType
from vizpub.model.clock import OPEN
from vizpub.model.tables import TRAFFIC

pytestmark = pytest.mark.spark


EVENTS = {
    EventType.PUBLISH: "PUBLISH_MESSAGE",
    EventType.REJECT: "REJECT_MESSAGE",
    EventType.DUPLICATE: "DUPLICATE_MESSAGE",
    EventType.DELIVER: "DELIVER_MESSAGE",
    EventType.STREAM_OPENED: "ON_NEW_OUTBOUND_STREAM",
    EventType.STREAM_CLOSED: "ON_CLOSED_OUTBOUND_STREAM",
    EventType.RECV_RPC: "RECV_RPC",
    EventType.SEND_RPC: "SEND_RPC",
    EventType.DROP_RPC: "DROP_RPC",
    EventType.JOIN: "JOIN",
    EventType.LEAVE: "LEAVE",
    EventType.GRAFT: "GRAFT",
    EventType.PRUNE: "PRUNE",
}
RPCS = {"recvRPC": EventType.RECV_RPC, "sendRPC": EventType.SEND_RPC, "dropRPC": EventType.DROP_RPC}


def texts(data: Path) -> list[bytes]:
    return [gzip.decompress(path.read_bytes()) for path in sorted((data / "json").iterdir())]


def test_recorded_trace_equals_its_description(data: Path, facts: Any) -> None:
    files = texts(data)
    assert len(files) == facts["files"] == 30
    assert sum(map(len, files)) == facts["raw_bytes"] == 4_926_407
    assert sum(text.count(b"\n") for text in files) == facts["lines"] == 16_491


def test_lines_are_all_read_as_events(as_json: Any, facts: Any) -> None:
    found = Counter(row["type"] for row in as_json.events)
    assert {EVENTS[EventType(number)]: count for number, count in found.items()} == facts["events"]
    assert sum(found.values()) == facts["lines"]
    assert as_json.quarantine == []
    times = [row["time"] for row in as_json.events]
    assert (min(times), max(times)) == (facts["first_ts_ns"], facts["last_ts_ns"])


def test_events_of_a_file_are_in_order_of_time(as_json: Any) -> None:
    by_file = defaultdict(list)
    for row in as_json.events:
        by_file[row["file"]].append((row["position"], row["time"]))
    for found in by_file.values():
        times = [time for *_, time in sorted(found)]
        assert times == sorted(times)


def test_events_per_topic_equal_the_facts(as_json: Any, facts: Any) -> None:
    words = {3: "deliverMessage", 2: "duplicateMessage", 11: "graft", 9: "join", 10: "leave"}
    words |= {0: "publishMessage", 12: "prune", 1: "rejectMessage"}
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in as_json.events:
        if row["topic"] is not None:
            own = row["type"] == EventType.DELIVER and row["other"] == row["peer"]
            found[row["topic"]]["deliverSelf" if own else words[row["type"]]] += 1
    assert found == facts["per_topic_events"]


def test_rpc_entry_counts_equal_the_facts(as_json: Any, facts: Any) -> None:
    found = {}
    for name in facts["rpc_meta"]:
        rpc, _, entry = name.partition(".")
        column = entry.replace(".", "_")
        found[name] = sum(r[column] for r in as_json.events if r["type"] == RPCS[rpc])
    assert found == facts["rpc_meta"]
    assert all(
        (row["ihave"] is None) == (row["type"] not in RPCS.values()) for row in as_json.events
    )


def test_empty_control_block_counts_no_control_message(
    as_json: Any, data: Path, facts: Any
) -> None:
    empty = set()
    for path in (data / "json").iterdir():
        lines = gzip.decompress(path.read_bytes()).splitlines()
        empty |= {(str(path), n) for n, line in enumerate(lines) if b'"control":{}' in line}
    assert len(empty) == facts["rpc_with_empty_control_object"] == 22
    order: dict[str, list[Any]] = defaultdict(list)
    for row in as_json.events:
        order[row["file"]].append(row)
    for file, n in empty:
        row = sorted(order[file], key=lambda r: r["position"])[n]
        assert row["type"] in RPCS.values()
        kinds = ("ihave", "iwant", "graft", "prune", "idontwant")
        assert [row[name] for name in kinds] == [0] * 5


def test_peers_and_their_keys_equal_the_truth(as_json: Any, truth: Any) -> None:
    found = {row["name"] for row in as_json.peers}
    assert len(found) == 30
    assert found == {node["peer_id"] for node in truth.recorded["nodes"]}


def test_clock_starts_on_a_whole_interval(as_json: Any) -> None:
    description = as_json.description
    assert description.epoch == "2000-01-01T00:00:00Z"
    assert (description.clock.tick_us, description.clock.interval_us) == (1, 1_000_000)
    assert description.clock.last == 109
    assert description.protocol == "gossipsub"
    assert description.parameters == {"protocols": ["/meshsub/1.3.0"]}
    assert description.unknown == ("traffic in bytes (traces have no sizes)",)
    assert description.notes == {}


def test_presence_equals_joining_and_leaving_times(as_json: Any, truth: Any, facts: Any) -> None:
    stays = {row["peer"]: (row["valid_from"], row["valid_to"]) for row in as_json.presence}
    kinds: Counter[str] = Counter()
    for node in truth.recorded["nodes"]:
        valid_from, valid_to = stays.pop(node["peer_id"])
        assert valid_from == truth.tick(node["joined_ns"])
        kind = node.get("left_kind", "stayed")
        kinds[kind] += 1
        if kind == "stayed":
            assert valid_to == OPEN
        else:
            # Sockets were closed, so the others saw it as soon as the packet was there;
            # one that leaves gracefully lingers for a moment.
            late = valid_to - truth.tick(node["left_ns"])
            assert 0 < late <= (150_000 if kind == "crash" else 600_000)
    assert not stays
    assert kinds == facts["left"] == {"stayed": 25, "crash": 3, "graceful": 2}


def test_offline_peer_stays_present_without_links(as_json: Any, truth: Any, facts: Any) -> None:
    away = [node for node in truth.recorded["nodes"] if "offline_ns" in node]
    assert len(away) == facts["offline_spells"] == 2
    trace = as_json.clipped()
    for node in away:
        ((since, until),) = node["offline_ns"]
        middle = truth.tick((since + until) // 2)
        assert trace.alive("presence", middle, peer=node["peer_id"])
        assert not trace.alive("links", middle, dst=node["peer_id"])


@pytest.mark.parametrize("number", range(11))
def test_tables_at_a_snapshot_equal_the_router_state(as_json: Any, truth: Any, number: int) -> None:
    """Neighbours, mesh and subscribers equal the router's own state."""
    trace, snapshot = as_json.clipped(), truth.recorded["snapshots"][number]
    tick = truth.tick(snapshot["t_ns"])

    def neighbors(**wanted: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for row in trace.alive("links", tick, **wanted):
            found[row["src"]].add(row["dst"])
        return found

    assert neighbors(layer="streams") == truth.named(snapshot["pubsub_peers"])
    for topic in truth.recorded["topics"]:
        mesh = truth.named(snapshot["mesh"].get(topic, {}))
        assert neighbors(layer="mesh", topic=topic) == mesh, topic
        subscribed = {r["peer"] for r in trace.alive("subscriptions", tick, topic=topic)}
        assert subscribed == {truth.names[i] for i in snapshot["subscribers"].get(topic, [])}


def test_truth_has_eleven_snapshots(truth: Any) -> None:
    assert len(truth.recorded["snapshots"]) == 11


def test_mesh_of_grafts_and_prunes_alone_is_larger(as_json: Any, truth: Any) -> None:
    """Without the closed streams and the left topics the mesh would be larger than it was."""
    state: dict[tuple[str, str, str], bool] = {}
    for row in sorted(as_json.events, key=lambda r: (r["time"], r["file"], r["position"])):
        if row["type"] in (EventType.GRAFT, EventType.PRUNE):
            state[row["peer"], row["topic"], row["other"]] = row["type"] == EventType.GRAFT
    meshes = [row for row in as_json.links if row["layer"] == "mesh" and row["valid_to"] == OPEN]
    assert len(meshes) < sum(state.values())


def test_subscriptions_equal_the_recorded_log(as_json: Any, truth: Any, facts: Any) -> None:
    spans = as_json.clipped().subscriptions
    died = {row["peer"]: row["valid_to"] for row in as_json.presence if row["valid_to"] != OPEN}
    ends = Counter(
        "open"
        if span["valid_to"] == OPEN
        else "crash"
        if span["valid_to"] == died.get(span["peer"])
        else "unsub"
        for span in spans
    )
    log = Counter(entry["op"] for entry in truth.recorded["subscription_log"])
    assert log == facts["subscription_log_ops"] == {"sub": 50, "unsub": 9, "crash": 5}
    assert (len(spans), ends["unsub"], ends["crash"]) == (50, 9, 5)
    begun = {(span["peer"], span["topic"], span["valid_from"]) for span in spans}
    assert begun == {
        (truth.names[e["node"]], e["topic"], truth.tick(e["t_ns"]))
        for e in truth.recorded["subscription_log"]
        if e["op"] == "sub"
    }


def test_traffic_totals_equal_the_known_numbers(as_json: Any) -> None:
    def total(name: str) -> int:
        return sum(row[name] for row in as_json.traffic)

    assert total("control_messages_sent") == 2_032
    assert total("control_messages_received") == 2_585
    assert total("publication_messages_sent") == 3_662
    assert total("publication_messages_received") == 3_662
    assert (total("rpcs_sent"), total("rpcs_received"), total("dropped")) == (5_675, 6_028, 59)


def test_traffic_per_peer_equals_the_counts_of_routers(as_json: Any, truth: Any) -> None:
    kinds = ("subs", "ihave", "iwant", "graft", "prune", "idontwant")
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in as_json.traffic:
        known = {k: v for k, v in row.items() if v is not None and k not in ("peer", "interval")}
        found[row["peer"]].update(known)
    for node, counts in truth.recorded["raw_tracer_per_node"].items():
        row = found[truth.names[int(node)]]
        for way, rpc in (("sent", "SendRPC"), ("received", "RecvRPC")):
            control = sum(counts.get(f"{rpc}.{kind}", 0) for kind in kinds)
            assert row[f"control_messages_{way}"] == control
            assert row[f"publication_messages_{way}"] == counts.get(f"{rpc}.messages", 0)
        assert row["dropped"] == counts.get("DropRPC", 0)
        assert row["rpcs_sent"] == counts.get("SendRPC", 0)
        assert row["rpcs_received"] == counts.get("RecvRPC", 0)


def test_traffic_has_a_row_per_peer_and_interval_present(as_json: Any) -> None:
    found = Counter((row["peer"], row["interval"]) for row in as_json.traffic)
    expected = {
        (row["peer"], interval)
        for row in as_json.presence
        for interval in range(
            row["valid_from"] // 10**6,
            min((row["valid_to"] - 1) // 10**6, as_json.description.clock.last) + 1,
        )
    }
    assert found == dict.fromkeys(expected, 1)
    unknown = {name for name in TRAFFIC.names if "bytes" in name} | {"duplicates"}
    for row in as_json.traffic:
        assert {name for name, value in row.items() if value is None} == unknown


def test_event_counts_per_peer_equal_tracestat(as_json: Any, tracestat: Any, truth: Any) -> None:
    """The official tool counts own deliveries too."""
    words = {
        "Publish": EventType.PUBLISH,
        "Deliver": EventType.DELIVER,
        "Duplicate": EventType.DUPLICATE,
    }
    words |= {
        "Reject": EventType.REJECT,
        "SendRPC": EventType.SEND_RPC,
        "DropRPC": EventType.DROP_RPC,
    }
    found = Counter((row["peer"], row["type"]) for row in as_json.events)
    per_peer = tracestat["Events"]["PerPeer"]
    assert len(per_peer) == 30
    for peer, counts in per_peer.items():
        assert counts == {word: found[peer, number] for word, number in words.items()}
    totals = {word: sum(c for (_, t), c in found.items() if t == n) for word, n in words.items()}
    assert totals == tracestat["Events"]["Totals"]
    assert totals == {
        **{"Publish": 64, "Deliver": 848, "Duplicate": 2_863},
        **{"Reject": 15, "SendRPC": 5_675, "DropRPC": 59},
    }


def test_event_counts_per_topic_equal_tracestat(as_json: Any, data: Path) -> None:
    words = {EventType.PUBLISH: "Published", EventType.DELIVER: "Delivered"}
    words |= {EventType.DUPLICATE: "Duplicate", EventType.REJECT: "Rejected"}
    found = Counter(
        (row["topic"], words[row["type"]]) for row in as_json.events if row["type"] in words
    )
    sections = (data / "tracestat_topics.txt").read_text().split("### -topic ")[1:]
    assert len(sections) == 3
    for section in sections:
        topic, *lines = section.splitlines()
        for word in words.values():
            assert f"{word} Messages: {found[topic, word]}" in lines
