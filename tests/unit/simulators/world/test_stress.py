"""Costs of ways over a line of three routers, counted by hand."""

from __future__ import annotations

import pytest

from vizpub.simulators.world.routers import RouterNetwork
from vizpub.simulators.world.stress import Spread, compare_ways

# Peers 0 and 1 at router 0, peer 2 at router 1, peer 3 at router 2.
ROUTERS = RouterNetwork({(0, 1): 10, (1, 2): 20}, [0, 0, 1, 2], 1)


def test_costs_are_those_of_the_links_on_the_way() -> None:
    """Peer 0 publishes by 0 → 2 → 1 → 3, and peer 2 receives a second copy."""
    spread = Spread(0, [(0, 2), (2, 1), (1, 3), (1, 2)], {1: 25, 2: 13, 3: 60})
    overlay, unicast, multicast = compare_ways(ROUTERS, [spread])
    assert overlay[:5] == ("overlay", 6, 13, 3, 4)
    assert overlay.stretch == (25 + 13 + 60) / (2 + 12 + 32)
    assert overlay.stretch_median == 60 / 32
    assert unicast == ("unicast", 6, 9, 3, 2, 1, 1)
    assert multicast == ("multicast", 6, 6, 1, 1, 1, 1)


def test_costs_are_means_over_messages_that_reached_somebody() -> None:
    one = Spread(0, [(0, 3)], {3: 32})
    other = Spread(0, [(0, 1)], {1: 4})
    overlay, unicast, _ = compare_ways(ROUTERS, [one, other, Spread(0, [], {})])
    assert overlay.links == unicast.links == (4 + 2) / 2
    assert overlay.router_link_max == 0.5
    assert overlay.stretch == pytest.approx(36 / 34)
    assert compare_ways(ROUTERS, []) == []
