"""Plumtree: its tree, its repairs, its cost."""

from __future__ import annotations

from random import Random

import networkx as nx
import pytest

from tests.support.overlays import Overlay, hyparview
from vizpub.simulators.engine.network import HEADER_BYTES
from vizpub.simulators.protocols.broadcast.plumtree import ANNOUNCED_BYTES

PEERS = 100


def grown(broadcast: str = "plumtree", cycles: float = 40) -> Overlay:
    """An overlay whose links do not change any more."""
    return hyparview(PEERS, cycles=cycles, broadcast=broadcast)


class TestTree:
    @pytest.mark.parametrize("broadcast", ["plumtree", "plumtree:batch=100ms"])
    def test_redundant_copies_end_with_a_spanning_tree(self, broadcast: str) -> None:
        overlay, random = grown(broadcast), Random(1)
        before = overlay.links("active")
        receptions = [overlay.publish(random.randrange(PEERS)) for _ in range(50)]
        assert overlay.links("active") == before
        links = sum(map(len, before.values()))
        assert len(receptions[0]) == links - PEERS + 1
        for last in receptions[-10:]:
            assert sorted(peer for peer, _, _ in last) == sorted({peer for peer, _, _ in last})
            assert len(last) == PEERS - 1
        eager = overlay.graph("eager")
        assert nx.reciprocity(eager) == 1
        assert nx.is_tree(eager.to_undirected())
        lazy = overlay.links("lazy")
        for peer, others in overlay.links("active").items():
            assert sorted(lazy[peer] + overlay.links("eager")[peer]) == sorted(others)

    def test_optimised_tree_is_flatter(self) -> None:
        """Of one publisher: with optimisation the last hop is at most that many hops later."""
        lasts = {}
        for broadcast in ("plumtree", "plumtree:optimise=1"):
            overlay = grown(broadcast)
            overlay.publish(7)
            for _ in range(20):
                receptions = overlay.publish(3)
                assert {peer for peer, _, _ in receptions} == {*range(PEERS)} - {3}
            lasts[broadcast] = max(hops for _, _, hops in receptions)
            assert len(receptions) == PEERS - 1
        assert lasts["plumtree:optimise=1"] < lasts["plumtree"]


class TestRepair:
    def test_publication_reaches_all_within_a_timer_after_failures(self) -> None:
        overlay = grown("plumtree:timeout=1s,again=500ms")
        for publisher in range(5):
            overlay.publish(publisher)
        for peer in Random(4).sample(range(PEERS), PEERS // 5):
            overlay.kill(peer)
        overlay.wait(2)
        assert overlay.reached(overlay.up[0], 2) == 1
        for peer in overlay.up[:20]:
            receptions = overlay.publish(peer)
        assert len(receptions) == len(overlay.up) - 1
        assert nx.is_tree(overlay.graph("eager").to_undirected())

    def test_lost_copies_are_fetched_from_announcers(self) -> None:
        overlay = grown()
        for publisher in range(5):
            overlay.publish(publisher)
        grafts, *_ = [kind for kind in overlay.net.kinds if kind.name == "graft"]
        overlay.net._loss, before = 0.1, grafts.sent
        share = overlay.reached(9, 5)
        assert share == 1
        assert grafts.sent > before


class TestAnnouncements:
    def test_announcements_of_a_batch_share_a_message(self) -> None:
        overlay = grown("plumtree:batch=1s")
        for publisher in range(5):
            overlay.publish(publisher)
        overlay.wait(1)
        announcements, *_ = [kind for kind in overlay.net.kinds if kind.name == "ihave"]
        for seconds in (0, 1.5):
            sent, size = announcements.sent, announcements.bytes
            for _ in range(4):
                overlay.publish(3, seconds)
            overlay.wait(2)
            count = announcements.sent - sent
            one_each = HEADER_BYTES + ANNOUNCED_BYTES
            if seconds:
                assert announcements.bytes - size == count * one_each
            else:
                assert announcements.bytes - size == count * (one_each + 3 * ANNOUNCED_BYTES)
