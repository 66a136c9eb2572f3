"""What is counted while centres are chosen: whom a node reaches by the topics that are left, and
how its overlap falls when one goes.

The overlap of a node is S_u − (n_u + 1): of each node that it reaches, itself among them, the
topics in common less one.
"""

from __future__ import annotations

import numpy as np

from vizpub.machine.compiled import compiled, population

FLAT = "int64[::1], int64[::1], int64[::1], int64[::1]"
"""The arrays of FlatInterests."""
_WORTH = 2
"""Words of 64 nodes that are counted in the time of a step along a chain, about."""


@compiled(f"int64(int64, {FLAT}, boolean[::1], int64[::1], uint64[:, ::1], uint64[::1])")
def reached_nodes(  # noqa: PLR0913, PLR0917
    node: int,
    begins: np.ndarray,
    topics: np.ndarray,
    firsts: np.ndarray,
    subscribers: np.ndarray,
    open_topics: np.ndarray,
    rows: np.ndarray,
    bits: np.ndarray,
    union: np.ndarray,
) -> int:
    """Nodes that share a topic with this one that is left, itself among them."""
    one = np.uint64(1)
    union[:] = np.uint64(0)
    count = 0
    for place in range(begins[node], begins[node + 1]):
        row = rows[topics[place]]
        if open_topics[topics[place]] and row >= 0:
            for word in range(len(union)):
                union[word] |= bits[row, word]
            count = 1
    if count:
        count = 0
        for word in range(len(union)):
            count += population(union[word])
    for place in range(begins[node], begins[node + 1]):
        topic = topics[place]
        if open_topics[topic] and rows[topic] < 0:
            for at in range(firsts[topic], firsts[topic + 1]):
                subscriber = subscribers[at]
                bit = one << np.uint64(subscriber & 63)
                word = subscriber >> 6
                if not union[word] & bit:
                    union[word] |= bit
                    count += 1
    return count


@compiled(f"int64(int64, {FLAT}, boolean[::1])")
def largest_topic(
    node: int,
    begins: np.ndarray,
    topics: np.ndarray,
    firsts: np.ndarray,
    subscribers: np.ndarray,
    open_topics: np.ndarray,
) -> int:
    """Subscribers of the node's largest topic that is left."""
    most = 0
    for place in range(begins[node], begins[node + 1]):
        topic = topics[place]
        if open_topics[topic]:
            most = max(most, firsts[topic + 1] - firsts[topic])
    return most


@compiled("uint64[:, ::1](int64[::1], int64[::1], int64[::1], int64)")
def as_bits(
    firsts: np.ndarray, subscribers: np.ndarray, rows: np.ndarray, words: int
) -> np.ndarray:
    """The topics that take fewer words than they have subscribers; gives them `rows`."""
    heavy = 0
    for topic in range(len(rows)):
        if firsts[topic + 1] - firsts[topic] > words:
            rows[topic] = heavy
            heavy += 1
    bits = np.zeros((heavy, words), dtype=np.uint64)
    for topic in range(len(rows)):
        if rows[topic] >= 0:
            for at in range(firsts[topic], firsts[topic + 1]):
                subscriber = subscribers[at]
                bits[rows[topic], subscriber >> 6] |= np.uint64(1) << np.uint64(subscriber & 63)
    return bits


@compiled(f"boolean(int64, {FLAT}, boolean[::1], int32[:, ::1], int32[:, ::1], int64[:, ::1])")
def count_losses(  # noqa: PLR0913, PLR0917
    topic: int,
    begins: np.ndarray,
    topics: np.ndarray,
    firsts: np.ndarray,
    subscribers: np.ndarray,
    open_topics: np.ndarray,
    heads: np.ndarray,
    chains: np.ndarray,
    losses: np.ndarray,
) -> bool:
    """Count by how much the overlap of each subscriber of a topic falls when the topic is closed.

    That is the number of subscribers, itself among them, with whom it shares another open topic.

    Writes it to `losses[:, 0]`, in the order of the subscribers, unless it takes longer than to
    count them again; returns whether it did. `heads` has (−1, 0) for each topic, before and after;
    `chains` has room for each subscription, `losses` for each subscriber.
    """
    first, last = firsts[topic], firsts[topic + 1]
    steps, entries = 0, 0
    for at in range(first, last):  # chain those who have the same other topic
        losses[at - first, 1] = -1
        node = subscribers[at]
        for place in range(begins[node], begins[node + 1]):
            shared_topic = topics[place]
            if open_topics[shared_topic]:
                chains[entries, 0] = at - first
                chains[entries, 1] = heads[shared_topic, 0]
                heads[shared_topic, 0] = entries
                steps += 2 * heads[shared_topic, 1] + 1  # in the end, the squares of all lengths
                heads[shared_topic, 1] += 1
                entries += 1
    worth = steps <= (last - first) * ((len(begins) + 62) // 64) // _WORTH
    for at in range(first, last if worth else first):
        node, count = subscribers[at], 0
        for place in range(begins[node], begins[node + 1]):
            entry = heads[topics[place], 0]
            while entry >= 0:
                if losses[chains[entry, 0], 1] < at:
                    losses[chains[entry, 0], 1] = at
                    count += 1
                entry = chains[entry, 1]
        losses[at - first, 0] = count
    for at in range(first, last):
        node = subscribers[at]
        for place in range(begins[node], begins[node + 1]):
            heads[topics[place], 0] = -1
            heads[topics[place], 1] = 0
    return bool(worth)
