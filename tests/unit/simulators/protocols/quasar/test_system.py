"""Quasar: routing vectors beside breadth-first search, and what is said of its walks."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from tests.support.simulated import Simulated, hit_ratio


def quasar(**chosen: Any) -> Simulated:
    world = {"peers": 60, "intervals": 30, "workload": "zipf:topics=30,subscriptions=5"}
    return Simulated("quasar", **{**world, "publications": "every:2,first=15,last=28", **chosen})


@pytest.fixture(scope="module")
def grown() -> Simulated:
    return quasar(publications="none", degree=4, depth=3)


def test_vectors_tell_of_the_members_by_distance(grown: Simulated) -> None:
    """Level i from a neighbour has the peers that a path of i links leads to from it, without those
    that each peer leaves out: the one it tells.
    """
    graph, system = grown.graph("active").to_undirected(), grown.system
    for peer, vectors in enumerate(system.vectors):
        assert {str(other) for other in vectors} == {*graph[str(peer)]}
        for other, levels in vectors.items():
            assert [*levels[0]] == [other]
            assert {*map(str, levels[1])} == {*graph[str(other)]} - {str(peer)}
            around = nx.single_source_shortest_path_length(graph, str(other), cutoff=2)
            farther = {one for one, hops in around.items() if hops == 2}
            assert {*map(str, levels[2])} >= farther - {*graph[str(peer)], str(peer)}
            for level in levels:
                assert all(system.topics[one] == topics for one, topics in level.items())


def test_static_system_delivers_nearly_all() -> None:
    """The thesis (section 3.3): 97 % even without churn, as members absorb walks to others."""
    ratios = [hit_ratio(quasar(walks=walks)) for walks in (2, 3)]
    assert 0.9 < ratios[0] < ratios[1] < 1


def test_walks_that_know_where_they_were_find_more_members() -> None:
    assert hit_ratio(quasar(walks=2)) > hit_ratio(quasar(walks=2, negated=0))


def test_walks_go_on_under_churn() -> None:
    assert hit_ratio(quasar(churn="exponential:60s,down=20s,crash=0.5")) > 0.9


def test_walk_ends_after_its_steps() -> None:
    run = quasar(workload="zipf:topics=30,subscriptions=1", ttl=4)
    relayed = [copy for copy in run.received() if not copy["subscribed"]]
    assert relayed
    for message, copies in run.first_copies().items():
        reached = max((c["hops"] for c in copies.values() if c["subscribed"]), default=0)
        assert max(c["hops"] for c in relayed if c["message"] == message) <= reached + 4
