"""Subscriptions of the examples in the paper on CD-MAX, and overlays checked by networkx."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

import networkx as nx

from vizpub.simulators.designs.stars import Interests


def example_1(nodes: int = 21) -> Interests:
    """A quarter of the other nodes for each pair of neighbouring topics, and one for all."""
    others = [{step, step + 1} for step in range(4) for _ in range((nodes - 1) // 4)]
    return Interests([{0, 1, 2, 3, 4, 5}, *others], 6)


def example_2(each: int) -> Interests:
    """Collections A, B, C and D: topics 10, 20, 30, 40 are 0 … 3."""
    return Interests([own for own in ({0, 1}, {0, 2}, {1, 2}, {0, 3}) for _ in range(each)], 4)


EXAMPLE_3: Sequence[Collection[int]] = (
    {1, 2, 3, 5, 7, 8},
    {0, 1, 3, 5, 7, 8, 9},
    {1, 4, 5},
    {2, 4, 6},
    {0, 2, 3, 4, 9},
    {2, 3, 6},
    {2, 5},
    {1, 6},
)
"""Table 2 of the paper."""


def example_3() -> Interests:
    return Interests(EXAMPLE_3, 10)


def example_4(topics: int) -> Interests:
    """A node for each topic, for each two of them, and for all."""
    singles = [{topic} for topic in range(topics)]
    pairs = [{topic, topic + 1} for topic in range(0, topics, 2)]
    return Interests([*singles, *pairs, set(range(topics))], topics)


def drawn(nodes: int, topics: int, most: int, seed: int) -> Interests:
    """Nodes with 0 to `most` topics each."""
    random = Random(seed)
    numbers = [random.randint(0, most) for _ in range(nodes)]
    return Interests([random.sample(range(topics), number) for number in numbers], topics)


def equal(nodes: int, topics: int, each: int, seed: int) -> Interests:
    """Nodes with the same number of topics each, all equally likely: the paper's experiments."""
    random = Random(seed)
    return Interests([random.sample(range(topics), each) for _ in range(nodes)], topics)


def graph(neighbours: Sequence[Sequence[int]]) -> nx.Graph:
    """The overlay; every edge is held by both ends."""
    for node, known in enumerate(neighbours):
        assert node not in known
        assert list(known) == sorted(set(known))
        assert all(node in neighbours[other] for other in known)
    made = nx.Graph()
    made.add_nodes_from(range(len(neighbours)))
    made.add_edges_from((node, other) for node, known in enumerate(neighbours) for other in known)
    return made


def check_overlay(neighbours: Sequence[Sequence[int]], interests: Interests, stars: bool) -> None:
    """Each topic is one component, of diameter 2 at most for stars; ends of an edge share one."""
    overlay = graph(neighbours)
    for of_it in interests.subscribers:
        if of_it:
            topic = overlay.subgraph(of_it)
            assert nx.is_connected(topic)
            assert not stars or nx.diameter(topic) <= 2
    for one, other in overlay.edges:
        assert set(interests.of[one]) & set(interests.of[other])
