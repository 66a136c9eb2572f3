"""From the reports of two systems to their comparison, whose every figure is known by heart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.ingested import Store, copied
from vizpub.reports.files import ReportWriter
from vizpub.reports.records import Counters, Neighbor, Received, Report, RunHeader, Sent

pytestmark = pytest.mark.spark

PEERS, INTERVALS, SECOND = 5, 3, 1_000_000
# In a chain every peer knows the next, in a star all know from 0. A message of 0 goes to all; in
# the chain it also comes back to 0 once.
GOALS = {"chain": {p: [p + 1] for p in range(PEERS - 1)}, "star": {0: [1, 2, 3, 4]}}
CONTROL = {"chain": 2, "star": 3}
EXPECTED = {
    "network_size": (5, 5),
    "distinct_links": (4, 4),
    "out_degree_mean": (4 / 5, 4 / 5),
    "diameter": (4, 1),
    "average_path_length": ((4 * 1 + 3 * 2 + 2 * 3 + 4) / 10, 1),
    "publications": (3, 3),
    "hit_ratio": (1, 1),
    "hops_mean": (2.5, 1),
    "hops_max": (4, 1),
    "duplicates_per_delivery": (1 / 4, 0),
    "relay_share": (0, 0),
    "control_messages_sent_mean": (2, 3),
    "delay_us_max": (40_000, 10_000),
    "convergence_us": (2 * SECOND + 40_000, 2 * SECOND + 10_000),
    "gauges/lookups": (2, 2),
    "gauges/hops/total": (sum(range(PEERS)) * INTERVALS, 4 * INTERVALS),
    "gauges/hops/per/lookups": (1, 4 / 10),
}


def report(system: str, peer: int, interval: int) -> Report:
    message, start = f"m{interval}", interval * SECOND
    hop = peer if system == "chain" else min(peer, 1)
    sender = peer - 1 if system == "chain" else 0
    goals = GOALS[system].get(peer, [])
    to = tuple(map(str, [*goals, *([0] if (system, peer) == ("chain", 1) else [])]))
    sent = (Sent(message, "news", "0", to, hop, start + 10_000 * hop),) if to else ()
    received = Received(message, "news", "0", str(sender), hop, start + 10_000 * hop)
    back = Received(message, "news", "0", "1", 2, start + 20_000)
    arrived = (received,) if peer else (back,) if system == "chain" else ()
    return Report(
        peer=str(peer),
        interval=interval,
        neighbors=tuple(Neighbor(str(goal)) for goal in goals),
        topics=("news",),
        control=Counters(messages_sent=CONTROL[system]),
        sent=sent,
        received=arrived,
        gauges={"lookups": peer, "hops": hop},
    )


@pytest.mark.long
def test_comparison_of_two_systems_equals_the_known_metrics(
    stored: Store, tmp_path: Path, vizpub_here: Callable[..., CompletedProcess[str]]
) -> None:
    for system in GOALS:
        file, header = tmp_path / f"{system}.ndjson.gz", RunHeader(system, system, {}, 1, SECOND)
        with ReportWriter(file, header) as writer:
            for interval in range(INTERVALS):
                for peer in range(PEERS):
                    writer.write(report(system, peer, interval))
            writer.end(INTERVALS - 1)
        copied(stored(system, file), tmp_path / "ws")
    words = ["compare", "chain", "star", "--metrics", ",".join(EXPECTED), "--format", "json"]
    done = vizpub_here("--workspace", str(tmp_path / "ws"), *words)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    means = {(r["metric"], r["group"]): r["value"] for r in rows if r["estimate"] == "mean"}
    for name, values in EXPECTED.items():
        for group, value in zip(GOALS, values, strict=True):
            assert means[name, group] == pytest.approx(value), (name, group)
    ratios = {r["metric"]: r["value"] for r in rows if r["estimate"] == "ratio"}
    assert ratios["diameter"] == 4
