"""StAN: overlays of topics that are random and connected, and share links."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import pytest

from tests.support.simulated import Simulated, hit_ratio, relays_per_delivery


def stan(**chosen: Any) -> Simulated:
    world = {"peers": 60, "intervals": 30, "workload": "zipf:topics=20,subscriptions=8"}
    return Simulated("stan", **{**world, "publications": "every:2,first=18,last=28", **chosen})


@pytest.fixture(scope="module")
def grown() -> Simulated:
    return stan()


def pairs(run: Simulated) -> Counter[frozenset[str]]:
    """The pairs of peers with links, and how many topics each serves."""
    found = Counter[frozenset[str]]()
    for topic in range(20):
        edges = {frozenset(edge) for edge in run.graph("overlay", str(topic)).edges}
        found.update(edges)
    return found


def test_overlays_of_topics_are_connected_and_have_only_subscribers(grown: Simulated) -> None:
    for topic in range(20):
        subscribers = {r["peer"] for r in grown.reports[-1] if str(topic) in r["topics"]}
        overlay = grown.graph("overlay", str(topic))
        assert {*overlay} == subscribers
        assert nx.is_connected(overlay.to_undirected())
        assert {degree for _, degree in overlay.out_degree} == {min(4, len(subscribers) - 1)}
    assert hit_ratio(grown) == 1
    assert relays_per_delivery(grown) == 0


def test_topics_share_links(grown: Simulated) -> None:
    """'Sharing a large number of physical connections', beside topics that choose apart."""
    shared, apart = pairs(grown), pairs(stan(sharing=False, publications="none"))
    assert shared.total() == pytest.approx(apart.total(), rel=0.05)
    assert len(shared) < 0.75 * len(apart)


def test_sharing_leaves_overlays_random(grown: Simulated) -> None:
    """'Without disrupting its logical properties': few are chosen by many, and neighbours cluster
    no more than by chance.
    """
    overlay = max((grown.graph("overlay", str(topic)) for topic in range(20)), key=len)
    n = len(overlay)
    assert max(degree for _, degree in overlay.in_degree) < 5 * 4
    chance = overlay.to_undirected().size() / (n * (n - 1) / 2)
    assert nx.average_clustering(overlay.to_undirected()) < 2 * chance


def test_links_are_repaired_after_half_of_the_peers_crash() -> None:
    run = stan(churn="script:kill 30 at interval 18", publications="every:2,first=24,last=28")
    assert len(run.reports[-1]) == 30
    assert hit_ratio(run) == 1


def test_nearly_all_is_delivered_under_churn() -> None:
    churn = "exponential:60s,down=20s,crash=0.5"
    assert hit_ratio(stan(churn=churn)) > 0.93
