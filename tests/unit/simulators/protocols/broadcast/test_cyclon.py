"""Broadcasts on CYCLON."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.overlays import LATENCY_US, SECOND, Overlay
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.broadcast.cyclon import BroadcastCyclon, BroadcastCyclonParameters
from vizpub.simulators.protocols.poldercast.cyclon import Cyclon, CyclonParameters

PEERS = 200


def cyclon(**chosen: bool | str) -> Overlay:
    net = Simulation(PEERS, 1, lambda sender, to: LATENCY_US)
    parameters = BroadcastCyclonParameters(view=20, gossip=8, **chosen)  # type: ignore[arg-type]
    overlay = Overlay(net, BroadcastCyclon(net, parameters))
    overlay.join_all(1000)
    overlay.wait(15)
    return overlay


def test_views_are_those_of_cyclon_alone() -> None:
    net = Simulation(PEERS, 1, lambda sender, to: LATENCY_US)
    system = Cyclon(net, CyclonParameters(view=20, gossip=8))
    alone = Overlay(net, system)  # type: ignore[arg-type]
    alone.join_all(1000)
    alone.wait(15)
    assert alone.links("cyclon") == cyclon().links("cyclon")


def test_fanout_goes_to_peers_of_the_view_and_reaches_nearly_all() -> None:
    """1 − exp(−F) of the peers are expected (Kermarrec et al. 2003), of those that publish."""
    overlay, random = cyclon(broadcast="fanout:4"), Random(1)
    shares = [overlay.reached(random.randrange(PEERS)) for _ in range(10)]
    assert sum(shares) / 10 == pytest.approx(0.98, abs=0.01)


def test_acknowledged_copies_remove_dead_peers_from_views() -> None:
    left = {}
    for acknowledged in (False, True):
        overlay = cyclon(broadcast="flood", acknowledged=acknowledged)
        dead = {*range(0, PEERS, 2)}
        for peer in dead:
            overlay.kill(peer)
        overlay.publish(1, 0.3)
        overlay.publish(1, 0.6)
        views = overlay.links("cyclon").values()
        left[acknowledged] = sum(len(dead & {*view}) for view in views)
    assert left[True] < 0.2 * left[False]


def test_views_stay_full_and_distinct_while_publications_spread() -> None:
    overlay = cyclon(broadcast="flood", acknowledged=True)
    overlay.publish(1, 1)
    overlay.net.run(overlay.net.now + 5 * SECOND)
    for peer, view in overlay.links("cyclon").items():
        assert len({*view} - {peer}) == len(view) >= 19
