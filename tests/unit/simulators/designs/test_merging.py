"""GM beside the same greedy choice written with networkx."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest

from tests.support.designs import drawn, graph
from vizpub.model.errors import UseError
from vizpub.simulators.designs.merging import ALL_PAIRS, greedy_merge
from vizpub.simulators.designs.stars import Interests


def merged(interests: Interests) -> set[tuple[int, int]]:
    overlay = nx.empty_graph(interests.nodes)

    def gain(pair: tuple[int, int]) -> int:
        common = set(interests.of[pair[0]]) & set(interests.of[pair[1]])
        return sum(
            not nx.has_path(overlay.subgraph(interests.subscribers[topic]), *pair)
            for topic in common
        )

    while True:
        gains = {pair: gain(pair) for pair in combinations(range(interests.nodes), 2)}
        best = max(gains, key=lambda pair: (gains[pair], [-node for node in pair]))
        if not gains[best]:
            return set(overlay.edges)
        overlay.add_edge(*best)


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_those_of_a_search_through_all(seed: int) -> None:
    print(f"seed {seed}")
    interests = drawn(11, 8, 4, seed)
    assert set(graph(greedy_merge(interests)).edges) == merged(interests)


def test_many_nodes_are_refused() -> None:
    with pytest.raises(UseError, match=ALL_PAIRS):
        greedy_merge(Interests([[0]] * 20_001, 1))
