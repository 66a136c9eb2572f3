"""Rows of metrics/percolation against counts by hand and exact sums on trees."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

from vizpub.analytics.own import Interval
from vizpub.analytics.prediction.predicted import CopyCounts, GossipEvent, IntervalGossip
from vizpub.model.metrics import METRICS_PERCOLATION


def interval(links: list[tuple[int, int]], wants: list[int], peers: int = 7) -> Interval:
    """Topic 5 has the subscribers `wants`; peers are 10, 11, …"""
    src, dst = ([10 + pair[end] for pair in links] for end in (0, 1))
    table = pa.table(
        {
            "src": pa.array(src, pa.int32()),
            "dst": pa.array(dst, pa.int32()),
            "layer": pa.array(["overlay"] * len(src)),
            "topic": pa.array([None] * len(src), pa.int32()),
        }
    )
    taken = pa.table(
        {
            "topic": pa.array([5] * len(wants), pa.int32()),
            "peer": pa.array([10 + peer for peer in wants], pa.int32()),
        }
    )
    return Interval(3, pa.array(range(10, 10 + peers), pa.int32()), table, taken)


def both_ways(graph: nx.Graph) -> list[tuple[int, int]]:
    return [pair for one, other in graph.edges for pair in ((one, other), (other, one))]


def event(publisher: int, *copies: tuple[int, int, bool]) -> GossipEvent:
    """Copies as (sender, receiver, is the first)."""
    sender, peer, first = zip(*copies, strict=True) if copies else ((), (), ())
    return GossipEvent(
        5,
        10 + publisher,
        10 + np.array(peer, np.int64),
        10 + np.array(sender, np.int64),
        np.array(first, np.bool_),
    )


TREE = nx.Graph([(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (5, 6)])
WANTS = [1, 5]


def exact(graph: nx.Graph, wants: list[int], gamma: float, publisher: int) -> float:
    """Mean receivers on a tree: each peer by the links on the way to it."""

    def reached(to: int) -> float:
        way = nx.shortest_path(graph, publisher, to)[1:]
        return float(np.prod([1.0 if peer in wants else gamma for peer in way]))

    return sum(map(reached, graph))


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("publisher", [0, 4])
def test_prediction_on_a_tree_is_exact(gamma: float, publisher: int) -> None:
    situation = IntervalGossip(interval(both_ways(TREE), WANTS), [event(publisher)])
    row = situation.row(None, gamma)
    assert row["predicted_receivers"] == pytest.approx(exact(TREE, WANTS, gamma, publisher))
    shares = [exact_share(gamma, to) for to in WANTS]
    assert row["predicted_subscribers"] == pytest.approx(np.mean(shares))
    assert row["sigma"] == pytest.approx(2 / 7)
    assert row["percolation_threshold"] is None  # every walk on a tree ends


def exact_share(gamma: float, to: int) -> float:
    """The probability that a peer gets an event of a random publisher."""
    ways = [nx.shortest_path(TREE, one, to)[1:] for one in TREE]
    return float(
        np.mean([np.prod([1.0 if peer in WANTS else gamma for peer in way]) for way in ways])
    )


def test_sigma_for_all_needs_no_events() -> None:
    row = IntervalGossip(interval(both_ways(TREE), []), []).row(0.25, 0.2)
    share = 0.25 + 0.75 * 0.2
    distances = dict(nx.all_pairs_shortest_path_length(TREE))
    mean = np.mean([sum(share**d for d in distances[one].values()) for one in TREE])
    assert row["predicted_receivers"] == pytest.approx(mean)
    assert row["measured_receivers"] is None
    assert row["gossip_events"] == 0


def test_prediction_for_all_is_unknown_where_nothing_shows_gamma() -> None:
    row = IntervalGossip(interval(both_ways(TREE), []), []).row(0.25, None)
    assert row["sigma"] == 0.25
    assert row["predicted_receivers"] is row["predicted_percolation"] is row["gamma"] is None


def test_prediction_without_events_is_unknown() -> None:
    row = IntervalGossip(interval(both_ways(TREE), WANTS), []).row(None, 0.2)
    assert row["predicted_receivers"] is row["sigma"] is row["predicted_percolation"] is None
    assert list(row) != []
    assert {*row} == {*METRICS_PERCOLATION.names}


def test_interval_without_peers_has_a_row() -> None:
    row = IntervalGossip(interval([], [], peers=0), []).row(0.2, 0.3)
    assert row["predicted_receivers"] is None
    assert row["percolation_threshold"] is None


def test_threshold_is_one_over_the_degree_but_one() -> None:
    graph = nx.random_regular_graph(4, 60, seed=2)
    row = IntervalGossip(interval(both_ways(graph), [], peers=60), []).row(0.2, 0.3)
    assert row["percolation_threshold"] == pytest.approx(1 / 3)


def test_copies_are_counted_by_their_links() -> None:
    """0 publishes to 1 (wants) and 2; 2 gets nothing; 1 sends to 3, not to 4, and 3 back to 1."""
    situation = IntervalGossip(
        interval(both_ways(TREE), WANTS), [event(0, (0, 1, True), (1, 3, True), (3, 1, False))]
    )
    # 0 offers to 2; 1 to 3 and 4 but not back to 0; 3 has no neighbour but 1, which wants it.
    assert situation.count_copies() == CopyCounts(3, 1)
    row = situation.row(None, 0.5)
    assert (row["copies_offered"], row["copies_passed"]) == (3, 1)
    assert row["measured_receivers"] == 3
    assert row["measured_subscribers"] == 0.5


def test_copies_along_other_links_do_not_count() -> None:
    """A link of one way, a sender that is absent, one that is unknown and one without the event."""
    links = [(0, 2), (2, 3), (4, 6)]
    strange = event(0, (0, 2, True), (3, 2, False), (40, 3, True), (4, 6, True), (-11, 6, False))
    # 0 offers to 2, 2 to 3 (not sent); 6 and 3 have no links; 4 has no event.
    assert IntervalGossip(interval(links, []), [strange]).count_copies() == CopyCounts(2, 1)


@pytest.mark.parametrize("copies", [[(0, 1, True), (1, 0, False)], [(0, 1, True), (0, 1, False)]])
def test_copies_back_and_repeated_copies_pass_no_offer_twice(copies: list[Any]) -> None:
    counts = IntervalGossip(interval([(0, 1), (1, 0)], []), [event(0, *copies)]).count_copies()
    assert counts == CopyCounts(1, 1)


def test_events_of_absent_publishers_are_left_out() -> None:
    row = IntervalGossip(interval(both_ways(TREE), WANTS), [event(30)]).row(None, 0.5)
    assert row["gossip_events"] == 0


def test_gamma_is_unknown_without_offers() -> None:
    assert CopyCounts().gamma is None
    assert (CopyCounts(4, 1) + CopyCounts(6, 4)).gamma == 0.5
