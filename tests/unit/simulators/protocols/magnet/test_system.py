"""Magnet: its small world and places, and what its paper says of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.simulated import Simulated, hit_ratio, relays_per_delivery

PEERS, COMMUNITIES = 64, 8


def magnet(**chosen: Any) -> Simulated:
    world = {"peers": 60, "intervals": 30, "workload": "zipf:topics=30,subscriptions=5"}
    publications = {"publications": "every:2,first=18,last=27,from=anyone"}
    return Simulated("magnet", **{**world, **publications, **chosen})


@pytest.fixture(scope="module")
def grown() -> Simulated:
    return magnet()


def test_ring_is_that_of_the_places(grown: Simulated) -> None:
    ids, ring = grown.system.routing.ids, grown.graph("ring")
    order = [str(peer) for peer in sorted(range(60), key=ids.__getitem__)]
    for at, peer in enumerate(order):
        near = {order[(at + step) % 60] for step in (-3, -2, -1, 1, 2, 3)}
        assert {*ring[peer]} == near


def test_degree_is_bounded_whatever_peers_subscribe_to() -> None:
    """'O(1)': the thesis' Table 3.1, as Oscar's."""
    run = magnet(workload="zipf:topics=30,subscriptions=15", near=2, far=4)
    assert {degree for _, degree in run.graph("ring").out_degree} == {4}
    assert {degree for _, degree in run.graph("far").out_degree} == {4}
    assert hit_ratio(run) == 1


def test_peers_that_share_more_topics_are_nearer(grown: Simulated) -> None:
    topics = {report["peer"]: {*report["topics"]} for report in grown.reports[-1]}
    beside = [len(topics[one] & topics[other]) for one, other in grown.graph("ring").edges]
    all_pairs = [len(topics[one] & topics[other]) for one in topics for other in topics]
    assert sum(beside) / len(beside) > 1.2 * sum(all_pairs) / len(all_pairs)


def test_publications_come_to_all_subscribers_once_by_the_tree(grown: Simulated) -> None:
    """'None': the thesis' Table 3.2 on duplication."""
    assert hit_ratio(grown) == 1
    gauges = [report.get("gauges", {}) for reports in grown.reports for report in reports]
    assert sum(gauge.get("routes", 0) for gauge in gauges) > 0
    assert sum(gauge.get("tree_duplicates", 0) for gauge in gauges) == 0


def communities(folder: Path) -> str:
    """A workload of peers that subscribe to four of the five topics of their community."""
    drawn, path = random.Random(1), folder / "communities.csv"
    lines = [
        f"{peer},{topic}\n"
        for peer in range(PEERS)
        for topic in drawn.sample(range(5 * (peer % COMMUNITIES), 5 * (peer % COMMUNITIES) + 5), 4)
    ]
    path.write_text("".join(lines))
    return f"file:{path}"


@pytest.mark.parametrize(
    ("workload", "least", "most"),
    [
        ("communities", 0.3, 1),
        pytest.param("uniform:topics=40,subscriptions=4", -0.3, 0.3, marks=pytest.mark.long),
    ],
)
def test_clusters_save_relays_where_subscriptions_are_clustered(
    tmp_path: Path, workload: str, least: float, most: float
) -> None:
    """'Outperforms the strawman by a substantial margin on clustered subscription workloads': the
    paper's abstract. Where subscriptions are independent, there is little to gain.
    """
    world = {"peers": PEERS, "intervals": 22, "publications": "every:4,first=14,last=20"}
    drawn = communities(tmp_path) if workload == "communities" else workload
    clustered, plain = (
        relays_per_delivery(magnet(cluster=cluster, workload=drawn, **world))
        for cluster in (True, False)
    )
    assert least < 1 - clustered / plain < most


def test_most_is_delivered_under_churn() -> None:
    assert hit_ratio(magnet(churn="exponential:60s,down=20s,crash=0.5")) > 0.93
