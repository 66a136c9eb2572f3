"""Subscriptions of up to millions of nodes, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vizpub.simulators.designs.stars import Interests

_SPARE = 2
"""Draws for each topic that a node takes; a node for which they do not suffice draws again."""


@dataclass(frozen=True)
class FlatInterests:
    """Who subscribes to what; all int64, for compiled functions.

    The topics of node u are `topics[begins[u]:begins[u + 1]]`, ascending; the subscribers of topic
    t are `subscribers[firsts[t]:firsts[t + 1]]`, ascending.
    """

    begins: np.ndarray
    topics: np.ndarray
    firsts: np.ndarray
    subscribers: np.ndarray

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.begins) - 1

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All four, as compiled functions take them."""
        return self.begins, self.topics, self.firsts, self.subscribers

    @classmethod
    def of(cls, interests: Interests) -> FlatInterests:
        """The same subscriptions."""
        counts = np.array([len(topics_of_node) for topics_of_node in interests.of], dtype=np.int64)
        topics = np.array(
            [topic for topics_of_node in interests.of for topic in topics_of_node], dtype=np.int64
        )
        return cls.from_counts(counts, topics, len(interests.subscribers))

    @classmethod
    def draw(
        cls, nodes: int, topics: int, each: int, seed: int, exponent: float | None = None
    ) -> FlatInterests:
        """Each node draws `each` distinct topics one after the other: by weights (r + 1)^-exponent,
        or all equally likely. The same law as the workloads `zipf` and `uniform`, in other draws.
        """
        weights = np.arange(1, topics + 1, dtype=float) ** -(exponent or 0.0)
        edges = np.cumsum(weights) / weights.sum()
        random = np.random.default_rng(seed)
        chosen = np.empty((nodes, each), dtype=np.int64)
        missing = np.arange(nodes)
        draws = _SPARE * each
        while len(missing):
            drawn = np.searchsorted(edges, random.random((len(missing), draws)), side="right")
            done = _first_distinct(drawn, each)
            full = (done >= 0).all(axis=1)
            chosen[missing[full]] = done[full]
            # To draw on only where draws are short would favour what is drawn often.
            missing, draws = missing[~full], 2 * draws
        chosen.sort(axis=1)
        return cls.from_counts(np.full(nodes, each), chosen.ravel(), topics)

    @classmethod
    def from_counts(cls, counts: np.ndarray, topics: np.ndarray, number: int) -> FlatInterests:
        """So many topics of each node, the topics of all, and the number of topics."""
        nodes = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        order = np.argsort(topics, kind="stable")
        sizes = np.bincount(topics, minlength=number)
        return cls(_ends(counts), topics, _ends(sizes), nodes[order])


def _ends(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _first_distinct(drawn: np.ndarray, each: int) -> np.ndarray:
    """The first `each` different values of every row; −1 where there are fewer."""
    new = np.ones(drawn.shape, dtype=bool)
    for place in range(1, drawn.shape[1]):
        new[:, place] = (drawn[:, :place] != drawn[:, place : place + 1]).all(axis=1)
    rank = np.cumsum(new, axis=1)
    distinct = np.full((len(drawn), each), -1, dtype=np.int64)
    rows, columns = np.nonzero(new & (rank <= each))
    distinct[rows, rank[rows, columns] - 1] = drawn[rows, columns]
    return distinct
