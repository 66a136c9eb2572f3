"""Broadcasts of whole publications."""

from __future__ import annotations

import networkx as nx
import pytest

from tests.support.overlays import Overlay, hyparview
from vizpub.model.errors import UseError
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters

PEERS = 100


@pytest.fixture(scope="module")
def flooded() -> Overlay:
    return hyparview(PEERS, cycles=30)


def test_flood_is_received_over_all_links_but_those_it_came_by(flooded: Overlay) -> None:
    """m − n + 1 copies: everybody sends to all neighbours but one, the publisher to all."""
    links = flooded.graph("active").number_of_edges()
    for publisher in (0, 17, 80):
        receptions = flooded.publish(publisher)
        assert len(receptions) == links - PEERS + 1
        assert {peer for peer, _, _ in receptions} | {publisher} == {*range(PEERS)}


def test_first_copies_of_a_flood_took_the_shortest_paths(flooded: Overlay) -> None:
    """All latencies are equal."""
    lengths = nx.single_source_shortest_path_length(flooded.graph("active"), 5)
    first: dict[int, int] = {5: 0}
    for peer, _, hops in flooded.publish(5):
        first.setdefault(peer, hops)
    assert first == lengths


@pytest.mark.parametrize(("broadcast", "low", "high"), [("fanout:2", 2, 2), ("fanout:9", 3, 5)])
def test_fanout_is_the_number_of_copies_of_a_peer(broadcast: str, low: int, high: int) -> None:
    overlay = hyparview(PEERS, cycles=5, broadcast=broadcast)
    receptions = overlay.publish(0)
    reached = {0} | {peer for peer, _, _ in receptions}
    for sender in reached:
        copies = [to for to, by, _ in receptions if by == sender]
        assert low <= len(copies) == len({*copies}) <= high


def test_gossip_sends_the_stated_share_but_for_the_publisher() -> None:
    overlay = hyparview(PEERS, cycles=20, broadcast="gossip:0.6")
    sent = asked = 0
    for publisher in range(20):
        receptions = overlay.publish(publisher)
        reached = {peer for peer, _, _ in receptions} - {publisher}
        assert sum(by == publisher for _, by, _ in receptions) == len(
            overlay.links("active")[publisher]
        )
        sent += sum(by != publisher for _, by, _ in receptions)
        asked += sum(len(overlay.links("active")[peer]) - 1 for peer in reached)
    assert sent / asked == pytest.approx(0.6, abs=0.03)


def test_unknown_broadcast_is_refused_with_those_there_are() -> None:
    with pytest.raises(UseError, match="plumtree"):
        HyParViewParameters(broadcast="plumtre")
