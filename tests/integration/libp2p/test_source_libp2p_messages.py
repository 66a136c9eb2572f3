"""Figures of the recorded gossipsub trace (tests/data/libp2p_small/README.md): its messages.

`facts` and `truth` were written by the run itself, `tracestat` by the official tool.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from vizpub.ingest.sources.libp2p.events import EventType

pytestmark = pytest.mark.spark

UNCHECKED = ("normal", "burst")
"""Kinds of messages that no peer rejects."""


def delivered(as_json: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """First receptions by message and peer."""
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in as_json.receptions:
        if row["first"]:
            assert row["peer"] not in found[row["message"]]
            found[row["message"]][row["peer"]] = row
    return found


def hit_counts(as_json: Any) -> dict[str, tuple[int, int]]:
    """Delivered to and eligible of each message, from the observed tables alone."""
    trace, arrived = as_json.clipped(), delivered(as_json)
    counts = {}
    for message in trace.publications:
        now = trace.alive("subscriptions", message["tick"], topic=message["topic"])
        eligible = {row["peer"] for row in now} - {message["publisher"]}
        reached = eligible & arrived[message["message"]].keys()
        counts[message["message"]] = (len(reached), len(eligible))
    return counts


def of_kinds(truth: Any, *kinds: str) -> list[Any]:
    return [m for m in truth.recorded["messages"] if not kinds or m["kind"] in kinds]


def test_publications_equal_the_truth(as_json: Any, truth: Any, facts: Any) -> None:
    found = {
        (m["message"], m["topic"], m["publisher"], m["time_us"], m["tick"], m["interval"])
        for m in as_json.publications
    }
    recorded = set()
    for message in truth.recorded["messages"]:
        tick = truth.tick(message["t_ns"])
        publisher = truth.names[message["publisher"]]
        recorded.add((message["id_hex"], message["topic"], publisher, tick, tick, tick // 10**6))
    assert found == recorded
    assert len(as_json.publications) == facts["messages"] == 64
    kinds = Counter(message["kind"] for message in truth.recorded["messages"])
    assert kinds == facts["message_kinds"] == {"normal": 56, "burst": 6, "reject": 1, "ignore": 1}


def test_publications_of_unsubscribed_publishers_are_counted(as_json: Any, facts: Any) -> None:
    trace = as_json.clipped()
    outside = [
        m
        for m in trace.publications
        if not trace.alive("subscriptions", m["tick"], topic=m["topic"], peer=m["publisher"])
    ]
    assert len(outside) == facts["messages_from_non_subscribed_publisher"] == 8


def test_first_receptions_equal_the_truth(as_json: Any, truth: Any) -> None:
    found = {
        (message, peer, row["previous_hop"], row["time_us"])
        for message, rows in delivered(as_json).items()
        for peer, row in rows.items()
    }
    recorded = {
        (m["id_hex"], truth.names[d["node"]], truth.names[d["from"]], truth.tick(d["t_ns"]))
        for m in truth.recorded["messages"]
        for d in m["deliveries"]
    }
    assert found == recorded
    assert len(found) == 784


def test_duplicates_equal_the_truth(as_json: Any, truth: Any) -> None:
    found = Counter((r["message"], r["peer"]) for r in as_json.receptions if not r["first"])
    recorded = {
        (message["id_hex"], truth.names[int(node)]): count
        for message in truth.recorded["messages"]
        for node, count in message["duplicates_per_node"].items()
    }
    assert found == recorded
    assert found.total() == 2_863


def test_own_deliveries_are_no_receptions(as_json: Any, facts: Any) -> None:
    own = [e for e in as_json.events if e["type"] == EventType.DELIVER and e["other"] == e["peer"]]
    assert len(own) == facts["deliver_events_with_receivedFrom_self"] == 64
    assert {(e["message"], e["peer"]) for e in own} == {
        (m["message"], m["publisher"]) for m in as_json.publications
    }
    assert not any(row["peer"] == row["previous_hop"] for row in as_json.receptions)
    assert len(as_json.receptions) == 784 + 2_863
    arrived = len(as_json.receptions) + len(as_json.rejections)
    assert arrived <= facts["rpc_meta"]["recvRPC.messages"]


def test_arrival_numbers_follow_the_order_of_time(as_json: Any) -> None:
    by_peer = defaultdict(list)
    for row in as_json.receptions:
        by_peer[row["peer"]].append((row["arrival"], row["tick"]))
    for found in by_peer.values():
        assert [arrival for arrival, _ in sorted(found)] == list(range(1, len(found) + 1))
        ticks = [tick for _, tick in sorted(found)]
        assert ticks == sorted(ticks)


def test_rejections_equal_the_truth(as_json: Any, truth: Any, facts: Any) -> None:
    reasons = Counter(row["reason"] for row in as_json.rejections)
    assert reasons == facts["reject_reasons"] == {"validation failed": 8, "validation ignored": 7}
    found = Counter((r["message"], r["peer"], r["reason"]) for r in as_json.rejections)
    assert found == {
        (m["id_hex"], truth.names[int(node)], reason): count
        for m in of_kinds(truth, "reject", "ignore")
        for node, counts in m["rejects_per_node"].items()
        for reason, count in counts.items()
    }


def test_eligible_peers_equal_the_subscribers_at_publication(as_json: Any, truth: Any) -> None:
    found = {message: eligible for message, (_, eligible) in hit_counts(as_json).items()}
    assert found == {
        m["id_hex"]: len(set(m["subscribers_at_publish"]) - {m["publisher"]})
        for m in truth.recorded["messages"]
    }


def test_hit_ratios_equal_the_facts(as_json: Any, truth: Any, facts: Any) -> None:
    counts = hit_counts(as_json)
    pooled = [sum(column) for column in zip(*counts.values(), strict=True)]
    assert pooled == [782, 851]
    kept = {m["id_hex"]: counts[m["id_hex"]] for m in of_kinds(truth, *UNCHECKED)}
    known = facts["hit_excl_publisher"]
    pooled = [sum(column) for column in zip(*kept.values(), strict=True)]
    assert pooled == [known["delivered"], known["expected"]] == [782, 819]
    assert pooled[0] / pooled[1] == pytest.approx(known["pooled"], abs=1e-12)
    mean = sum(hits / eligible for hits, eligible in kept.values()) / len(kept)
    assert mean == pytest.approx(known["mean_of_messages"], abs=1e-12)
    rejected = {row["message"] for row in as_json.rejections}
    assert counts.keys() - rejected == kept.keys()


def test_hit_ratio_with_publishers_equals_the_facts(as_json: Any, truth: Any, facts: Any) -> None:
    counts, ratios = hit_counts(as_json), []
    for message in of_kinds(truth, *UNCHECKED):
        hits, eligible = counts[message["id_hex"]]
        own = message["publisher_subscribed"]
        ratios.append((hits + own) / (eligible + own))
    mean = sum(ratios) / len(ratios)
    assert mean == pytest.approx(facts["hit_incl_publisher_mean_of_messages"], abs=1e-12)


def test_hit_counts_per_topic_equal_the_facts(as_json: Any, truth: Any, facts: Any) -> None:
    counts = hit_counts(as_json)
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for message in of_kinds(truth, *UNCHECKED):
        for i, count in enumerate(counts[message["id_hex"]]):
            found[message["topic"]][i] += count
    known = facts["hit_per_topic_excl_publisher"]
    assert found == {topic: row[:2] for topic, row in known.items()}


def test_late_and_lost_messages_are_counted_as_recorded(as_json: Any, facts: Any) -> None:
    arrived, counts = delivered(as_json), hit_counts(as_json)
    late = sum(len(arrived[message]) - hits for message, (hits, _) in counts.items())
    assert late == facts["deliveries_to_nodes_not_subscribed_at_publish"] == 2
    rejected = {row["message"] for row in as_json.rejections}
    nobody = [m for m in counts if not arrived[m] and m not in rejected]
    assert len(nobody) == facts["messages_nobody_received"] == 2


def test_hops_of_first_receptions_equal_the_facts(as_json: Any, facts: Any) -> None:
    publisher = {m["message"]: m["publisher"] for m in as_json.publications}
    hops: Counter[str] = Counter()
    for message, rows in delivered(as_json).items():
        for row in rows.values():
            hop, at = 1, row
            while at["previous_hop"] != publisher[message]:
                before = rows[at["previous_hop"]]
                assert before["time_us"] < at["time_us"]
                hop, at = hop + 1, before
            hops[str(hop)] += 1
    assert hops == facts["hops_of_first_deliveries"] == {"1": 300, "2": 337, "3": 134, "4": 13}
    mean = sum(int(hop) * count for hop, count in hops.items()) / hops.total()
    assert mean == pytest.approx(facts["mean_hops"], abs=1e-12)


def test_delays_of_messages_equal_tracestat(as_json: Any, tracestat: Any) -> None:
    """In whole ms, rounded; the publisher's own delivery is the 0."""
    published = {m["message"]: m["time_us"] for m in as_json.publications}
    delays = {message: [0] for message in published}
    for message, rows in delivered(as_json).items():
        delays[message] += [
            (r["time_us"] - published[message] + 500) // 1000 for r in rows.values()
        ]
    known = tracestat["Delays"]["PerMessage"]
    assert {m: sorted(found) for m, found in delays.items()} == {
        m: sorted(found) for m, found in known.items()
    }
