"""What no overlay can go below, and for a few nodes the best that there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from vizpub.model.errors import UseError
from vizpub.simulators.designs.stars import Interests

_MOST_NODES = 12
"""For the optimum: a few seconds each."""

_Row = Sequence[tuple[int, float]]
"""Variables with their factors."""


def least_edges(interests: Interests) -> int:
    """A bound on the edges of any topic-connected overlay.

    A topic with d subscribers takes d − 1 edges, and an edge serves at most the topics that its
    ends have in common: so many edges as the pairs of most common topics need to serve all.
    """
    wanted = sum(len(of_it) - 1 for of_it in interests.subscribers if of_it)
    takes = np.zeros((interests.nodes, len(interests.subscribers)), dtype=np.float32)
    for node, topics in enumerate(interests.of):
        takes[node, topics] = 1
    # A row at a time: all pairs of some thousand nodes need gigabytes.
    counts = np.zeros(max(map(len, interests.of), default=0) + 1, dtype=np.int64)
    for node in range(interests.nodes):
        common = (takes[node + 1 :] @ takes[node]).astype(np.int64)
        counts += np.bincount(common, minlength=len(counts))
    edges = 0
    for common in range(len(counts) - 1, 0, -1):
        edges_here = min(int(counts[common]), -(-wanted // common))
        edges += edges_here
        wanted -= edges_here * common
        if wanted <= 0:
            break
    return edges


def least_maximum_of_stars(interests: Interests) -> int:
    """A bound on the maximum degree of star overlays: the centre of the largest topic."""
    return max((len(of_it) - 1 for of_it in interests.subscribers if of_it), default=0)


def fewest_edges(interests: Interests) -> int:
    """The edges of the smallest topic-connected overlay, of at most 12 nodes.

    Integer programming; whatever is left unconnected adds the constraint that an edge leaves it.

    Raises: UseError for more nodes.
    """
    pairs = _pairs(interests)
    cuts: list[_Row] = []
    for topic in interests.shared_topics():
        of_it = interests.subscribers[topic]
        cuts += [_leaving(pairs, {node}, of_it) for node in of_it]
    while True:
        chosen = _minimize([1.0] * len(pairs), [(cut, 1.0) for cut in cuts], len(pairs))
        edges = [pair for pair, number in pairs.items() if chosen[number] > 0.5]
        more = [
            _leaving(pairs, part, interests.subscribers[topic])
            for topic in interests.shared_topics()
            for part in _parts(edges, interests.subscribers[topic])
        ]
        if not more:
            return len(edges)
        cuts += more


def smallest_maximum_of_stars(interests: Interests) -> int:
    """The least maximum degree of any star overlay, of at most 12 nodes. Raises: UseError."""
    pairs = _pairs(interests)
    places = [(t, node) for t in interests.shared_topics() for node in interests.subscribers[t]]
    centre = {place: len(pairs) + number for number, place in enumerate(places)}
    largest = len(pairs) + len(centre)
    rows: list[tuple[_Row, float]] = [
        ([(centre[topic, node], 1.0) for node in interests.subscribers[topic]], 1.0)
        for topic in interests.shared_topics()
    ]
    for (topic, node), chosen in centre.items():
        for leaf in interests.subscribers[topic]:
            if leaf != node:
                pair = pairs[min(node, leaf), max(node, leaf)]
                rows.append(([(pair, 1.0), (chosen, -1.0)], 0.0))
    for node in range(interests.nodes):
        edges_of_node = [(number, -1.0) for pair, number in pairs.items() if node in pair]
        rows.append(([(largest, 1.0), *edges_of_node], 0.0))
    solution = _minimize([0.0] * largest + [1.0], rows, largest)
    return round(float(solution[largest]))


def _pairs(interests: Interests) -> dict[tuple[int, int], int]:
    """Pairs of nodes with a topic in common, numbered."""
    if interests.nodes > _MOST_NODES:
        raise UseError(
            f"the optimum is found for at most {_MOST_NODES} nodes, not {interests.nodes:,}"
        )
    near = {pair for of_it in interests.subscribers for pair in combinations(of_it, 2)}
    return {pair: number for number, pair in enumerate(sorted(near))}


def _leaving(
    pairs: dict[tuple[int, int], int], part: set[int], subscribers: Iterable[int]
) -> list[tuple[int, float]]:
    """The pairs between a part of a topic's subscribers and the others."""
    rest = set(subscribers) - part
    return [
        (pairs[min(one, other), max(one, other)], 1.0)
        for one in sorted(part)
        for other in sorted(rest)
    ]


def _parts(edges: Sequence[tuple[int, int]], subscribers: Sequence[int]) -> Iterator[set[int]]:
    """The components of a topic's subscribers; none if they are one."""
    unvisited = set(subscribers)
    while unvisited:
        part, new = set[int](), {min(unvisited)}
        while new:
            part |= new
            new = {
                neighbour
                for edge in edges
                for node, neighbour in (edge, edge[::-1])
                if node in new and neighbour in unvisited
            } - part
        if len(part) == len(subscribers):
            return
        yield part
        unvisited -= part


def _minimize(
    costs: Sequence[float], rows: Sequence[tuple[_Row, float]], binary: int
) -> Sequence[float]:
    """The cheapest integers with every row at least its bound; the first `binary` are 0 or 1."""
    if not rows:
        return [0.0] * len(costs)
    entries = [(r, column, value) for r, (row, _) in enumerate(rows) for column, value in row]
    at, columns, values = zip(*entries, strict=True)
    matrix = csr_array((values, (at, columns)), shape=(len(rows), len(costs)))
    upper = [1.0] * binary + [np.inf] * (len(costs) - binary)
    result = milp(
        costs,
        constraints=LinearConstraint(matrix, lb=[least for _, least in rows]),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, upper),
    )
    assert result.success, result.message
    solution: Sequence[float] = result.x
    return solution
