"""Failures, load and delays of overlays, beside networkx and exhaustive choices."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from tests.support.designs import check_overlay, drawn, graph
from vizpub.experiments.cd_max.beyond import measure_overlays, report_lines
from vizpub.experiments.cd_max.measuring import OverlayCase
from vizpub.simulators.designs.algorithms import Design
from vizpub.simulators.designs.nearer import move_nearer


def test_measures_are_those_of_the_overlay() -> None:
    found = measure_overlays(1)
    interests = OverlayCase("nodes", 200, "uniform", 1).interests()
    stars = Design("cd-max-ref").stars(interests)
    overlay = graph(stars.neighbours)
    ours = found["cd-max-ref"]
    assert ours["maximum degree"] == max(dict(overlay.degree).values())
    copies = [len(of_it) - 1 for of_it in interests.subscribers]
    assert ours["copies of a publication"] == pytest.approx(np.mean(copies))
    assert ours["copies of one a topic + links"] == sum(copies) + overlay.number_of_edges()
    assert found["cd-max-ref near"]["ms to a subscriber"] < ours["ms to a subscriber"]
    assert found["cd-max-ref near"]["maximum degree"] <= ours["maximum degree"]
    shares = [value for name, value in ours.items() if name.startswith("connected")]
    assert 1 > shares[0] > shares[1] > shares[2] > 0
    assert sum(line.startswith("| cd-max") for line in report_lines([found])) == 4


@pytest.mark.parametrize("seed", range(4))
def test_centres_move_nearer_without_a_higher_degree(seed: int) -> None:
    print(f"seed {seed}")
    interests = drawn(30, 12, 4, seed)
    places = np.random.default_rng(seed).random((30, 2))
    delays = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    stars = Design("cd-max").stars(interests)
    before, highest = dict(stars.centres), max(map(len, stars.links))

    def total(topic: int, centre: int) -> float:
        return float(sum(delays[centre, other] for other in interests.subscribers[topic]))

    moved = move_nearer(stars, delays)
    check_overlay(stars.neighbours, interests, stars=True)
    assert max(map(len, stars.links)) <= highest
    changed = {topic for topic, node in stars.centres.items() if before[topic] != node}
    assert len(changed) == moved > 0
    assert all(
        total(topic, stars.centres[topic]) < total(topic, before[topic]) for topic in changed
    )
    assert nx.is_connected(graph(stars.neighbours).subgraph(interests.subscribers[0]))
