"""Lower bounds, and optima by exhaustive search."""

from __future__ import annotations

from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from tests.support.designs import drawn, equal, example_1, example_3, example_4
from tests.support.words import naming
from vizpub.model.errors import UseError
from vizpub.simulators.designs.algorithms import ALGORITHMS, Design, construct
from vizpub.simulators.designs.bounds import (
    fewest_edges,
    least_edges,
    least_maximum_of_stars,
    smallest_maximum_of_stars,
)
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.kernels import centres_of, edges_of
from vizpub.simulators.designs.stars import Interests, Stars


def is_connected(edges: tuple[tuple[int, int], ...], interests: Interests) -> bool:
    overlay = nx.Graph(edges)
    overlay.add_nodes_from(range(interests.nodes))
    return all(nx.is_connected(overlay.subgraph(s)) for s in interests.subscribers if s)


@pytest.mark.parametrize("seed", range(4))
def test_fewest_edges_are_those_of_an_exhaustive_search(seed: int) -> None:
    print(f"seed {seed}")
    interests = drawn(5, 5, 3, seed)
    pairs = list(combinations(range(5), 2))
    least = next(
        count
        for count in range(len(pairs) + 1)
        if any(is_connected(edges, interests) for edges in combinations(pairs, count))
    )
    assert fewest_edges(interests) == least


@pytest.mark.parametrize("seed", range(4))
def test_smallest_maximum_is_that_of_all_choices_of_centres(seed: int) -> None:
    print(f"seed {seed}")
    interests = drawn(7, 5, 3, seed)
    shared = interests.shared_topics()
    found = [
        max(map(Stars(interests, dict(zip(shared, centres, strict=True))).degree, range(7)))
        for centres in product(*(interests.subscribers[topic] for topic in shared))
    ]
    assert smallest_maximum_of_stars(interests) == min(found)


def test_fourth_example_could_have_a_quarter_of_the_maximum_degree() -> None:
    """The paper says that CD-MAX-Ref finds n/2: half of the nodes of pairs would be the centres."""
    interests = example_4(6)
    assert smallest_maximum_of_stars(interests) == 6 // 2


@pytest.mark.parametrize("seed", range(5))
def test_bounds_and_optima_hold_for_every_algorithm(seed: int) -> None:
    print(f"seed {seed}")
    interests = drawn(9, 8, 3, seed)
    edges, maximum = fewest_edges(interests), smallest_maximum_of_stars(interests)
    assert least_edges(interests) <= edges
    assert least_maximum_of_stars(interests) <= maximum
    for algorithm in ALGORITHMS:
        degrees = [len(k) for k in construct(Design(algorithm), interests).neighbours]
        assert sum(degrees) // 2 >= edges
        assert algorithm == "gm" or max(degrees) >= maximum


def test_third_example_has_these_optima() -> None:
    assert fewest_edges(example_3()) == 10
    assert smallest_maximum_of_stars(example_3()) == 4


@pytest.mark.parametrize(
    ("shape", "average", "maximum"),
    [
        ((200, 100, 10), 5.81, 30.9),
        ((100, 400, 10), 10.22, None),
        ((500, 100, 10), None, 65.7),
        ((1000, 100, 10), 4.77, 121.7),
        ((2500, 100, 10), None, 287),
    ],
)
def test_bounds_have_the_known_values(
    shape: tuple[int, int, int], average: float | None, maximum: float | None
) -> None:
    found = [equal(*shape, seed) for seed in range(5)]
    if average is not None:
        ours = sum(2 * least_edges(one) / shape[0] for one in found) / 5
        assert ours == pytest.approx(average, rel=0.02)
    if maximum is not None:
        assert sum(map(least_maximum_of_stars, found)) / 5 == pytest.approx(maximum, rel=0.03)


def test_optimum_of_many_nodes_is_refused() -> None:
    with pytest.raises(UseError, match=naming("12 nodes")):
        fewest_edges(example_1(21))


@pytest.mark.parametrize(("nodes", "most"), [(200, 1.28), (500, 1.18), (1000, 1.12), (2500, 1.06)])
def test_refined_overlays_are_near_the_bound_of_stars(nodes: int, most: float) -> None:
    """As near as those of the paper's Table 6."""
    ratios = []
    for seed in range(1, 6):
        flat = FlatInterests.draw(nodes, 100, 10, seed)
        edges = edges_of(flat, centres_of(flat, "cd-max", refined=True))
        ratios.append(np.bincount(edges.ravel()).max() / (np.diff(flat.firsts).max() - 1))
    print(f"seeds 1 to 5: {ratios}")
    assert np.mean(ratios) <= most
