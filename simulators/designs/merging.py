"""GM, greedy merge: the pair of nodes next that joins the most components of topics.

Chockler, Melamed, Tock and Vitenberg, PODC 2007. At first every subscriber of a topic is a
component of its own; at the end every topic is one. Ties go to the pair of the lowest indexes,
which gives the degrees that the paper on CD-MAX prints.
"""

from __future__ import annotations

import numpy as np

from vizpub.machine.compiled import compiled
from vizpub.model.errors import UseError
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.protocols.broadcast.topologies import neighbours_in

ALL_PAIRS = "gm compares all pairs"

_MOST_NODES = 20_000
"""What a pair would gain is kept for every pair."""
_MOST_TOPICS = 255

_CSR = "int64[::1], int64[::1]"


@compiled("int64(int64[::1], int64)")
def _root(parents: np.ndarray, place: int) -> int:
    """The component of a subscription, with shorter ways for the next who ask."""
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = parents[place]
    return place


@compiled(f"int64({_CSR}, int64[::1], int64, int64, boolean)")
def _gain(
    begins: np.ndarray,
    topics: np.ndarray,
    parents: np.ndarray,
    one: int,
    other: int,
    merging: bool,
) -> int:
    """Topics in which the two are in different components; with `merging` they then no longer
    are.
    """
    i, j, gain = begins[one], begins[other], 0
    while i < begins[one + 1] and j < begins[other + 1]:
        if topics[i] < topics[j]:
            i += 1
        elif topics[i] > topics[j]:
            j += 1
        else:
            first, second = _root(parents, i), _root(parents, j)
            if first != second:
                gain += 1
                if merging:
                    parents[second] = first
            i += 1
            j += 1
    return gain


@compiled(f"int64[:, ::1]({_CSR})")
def _merge_greedily(begins: np.ndarray, topics: np.ndarray) -> np.ndarray:
    nodes = len(begins) - 1
    parents = np.arange(len(topics), dtype=np.int64)
    gains = np.zeros((nodes, nodes), dtype=np.uint8)
    most = 0
    for one in range(nodes):
        for other in range(one + 1, nodes):
            gains[one, other] = _gain(begins, topics, parents, one, other, False)
            most = max(most, gains[one, other])
    edges = np.empty((len(topics), 2), dtype=np.int64)
    count = 0
    # Gains only fall. So a pair that was passed over at this gain never has it again, and pairs
    # that still have it are met in their order.
    for gain in range(most, 0, -1):
        for one in range(nodes):
            for other in range(one + 1, nodes):
                if gains[one, other] == gain:
                    current = _gain(begins, topics, parents, one, other, False)
                    gains[one, other] = current
                    if current == gain:
                        _gain(begins, topics, parents, one, other, True)
                        edges[count, 0] = one
                        edges[count, 1] = other
                        count += 1
    return edges[:count].copy()


def greedy_merge(interests: Interests) -> list[list[int]]:
    """The neighbours of each node, ascending. Raises: UseError for too many nodes or topics."""
    if interests.nodes > _MOST_NODES:
        raise UseError(
            f"{ALL_PAIRS}, of at most {_MOST_NODES:,} nodes, not {interests.nodes:,}; "
            "cd-oda-ii and cd-max have no such limit"
        )
    if max(map(len, interests.of), default=0) > _MOST_TOPICS:
        raise UseError(f"gm takes nodes with at most {_MOST_TOPICS} topics")
    flat = FlatInterests.of(interests)
    return neighbours_in(_merge_greedily(flat.begins, flat.topics).tolist(), interests.nodes)
