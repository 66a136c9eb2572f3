"""What the experiment simulates."""

from __future__ import annotations

import pytest

from vizpub.analytics.prediction.percolation import passing_probability
from vizpub.experiments.gossip.points import (
    FIVE,
    HUBS,
    HUBS_PEERS,
    SIGMA,
    GossipPoint,
    degrees_of,
    network_cases,
    points_above,
    points_below,
)


@pytest.mark.parametrize("scale", ["small", "full"])
def test_networks_have_distinct_seeds_and_points(scale: str) -> None:
    found = network_cases(scale)
    assert len({(one.topology, one.peers, one.seed) for one in found}) == len(found)
    assert all(len({*one.points}) == len(one.points) for one in found)
    assert {one.peers for one in found if one.topology == HUBS} == {HUBS_PEERS}


def test_full_scale_is_20_networks_of_each_kind() -> None:
    found = network_cases("full")
    kinds = {(one.topology, one.peers) for one in found}
    assert len(found) == 20 * len(kinds)
    assert max(one.peers for one in found if one.topology == FIVE) >= 100_000
    assert len(network_cases("full", 3)) == 3 * len(kinds)


@pytest.mark.parametrize(
    "topology", ["poisson:5", "poisson:8", "scale-free:3.3", "scale-free:3.3,highest=100"]
)
def test_points_of_the_first_figures_are_below_the_threshold(topology: str) -> None:
    found = [*points_below(topology)]
    assert len(found) > 20
    assert all(passing_probability(*point) < degrees_of(topology).threshold for point in found)


@pytest.mark.parametrize("topology", ["poisson:5", "scale-free:3.6", "scale-free:4"])
def test_share_of_subscribers_is_a_share_also_without_a_threshold(topology: str) -> None:
    assert all(0 < point.sigma <= 1 for point in points_below(topology))


def test_points_of_the_last_figures_have_those_of_the_paper() -> None:
    assert {GossipPoint(SIGMA, 0.6), GossipPoint(SIGMA, 0.05), GossipPoint(SIGMA, 1.0)} <= {
        *points_above()
    }


def test_cut_off_raises_the_threshold_of_a_scale_free_graph() -> None:
    endless, cut = (degrees_of("scale-free:3.3", peers) for peers in (None, 1_001))
    assert endless.threshold == pytest.approx(0.573075, abs=1e-5)
    assert cut.threshold == pytest.approx(0.689, abs=1e-3)


def test_cut_off_that_a_topology_names_holds_for_any_number_of_peers() -> None:
    endless, cut = (degrees_of("scale-free:3.3,highest=100", peers) for peers in (None, 100_000))
    assert endless.threshold == cut.threshold == pytest.approx(0.859, abs=5e-4)
