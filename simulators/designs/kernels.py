"""CD-ODA-II, CD-MAX and CD-MAX-Ref compiled, for up to millions of nodes.

The centres are those of `vizpub.simulators.designs.stars`, one by one. The next is at the top of a
heap by what its node can be at best: n_u + 1 is at least the largest topic that is left, and at
least S_u less the overlap of its topics when it was last counted, which only falls. Only a node at
the top is counted, on bits; large topics are kept as bits. What was counted is kept where a topic
goes, if the nodes that share another one with it are few.
"""

from __future__ import annotations

import numpy as np

from vizpub.machine.compiled import compiled
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.reach import (
    FLAT,
    as_bits,
    count_losses,
    largest_topic,
    reached_nodes,
)

RULES = {"cd-max": 0, "cd-oda-ii": 1}

_KEYS = "int64[::1], int64[::1], int64[::1], int64"
_HEAP = "int64[::1], int64[::1]"


@compiled(f"boolean(int64, int64, {_KEYS})")
def _precedes(
    one: int, other: int, least: np.ndarray, sums: np.ndarray, counts: np.ndarray, rule: int
) -> bool:
    """Return True if one node is to be the centre before the other, by their bounds."""
    if rule == 0:
        if least[one] != least[other]:
            return bool(least[one] < least[other])
        if sums[one] != sums[other]:
            return bool(sums[one] > sums[other])
    else:
        score, other_score = sums[one] * least[other], sums[other] * least[one]
        if score != other_score:
            return bool(score > other_score)
    if counts[one] != counts[other]:
        return bool(counts[one] < counts[other])
    return one < other


@compiled(f"void(int64, {_HEAP}, int64, {_KEYS})")
def _settle(  # noqa: PLR0913, PLR0917
    place: int,
    heap: np.ndarray,
    places: np.ndarray,
    size: int,
    least: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    rule: int,
) -> None:
    """Move the node at a place of the heap to where it belongs."""
    node = heap[place]
    while place > 0:
        above = (place - 1) // 2
        if not _precedes(node, heap[above], least, sums, counts, rule):
            break
        heap[place] = heap[above]
        places[heap[place]] = place
        place = above
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and _precedes(heap[below + 1], heap[below], least, sums, counts, rule):
            below += 1
        if not _precedes(heap[below], node, least, sums, counts, rule):
            break
        heap[place] = heap[below]
        places[heap[place]] = place
        place = below
    heap[place] = node
    places[node] = place


@compiled(f"int64(int64, {_HEAP}, int64, {_KEYS})")
def _drop(  # noqa: PLR0913, PLR0917
    node: int,
    heap: np.ndarray,
    places: np.ndarray,
    size: int,
    least: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    rule: int,
) -> int:
    """Take a node from the heap; returns how many are left."""
    size -= 1
    last, hole = heap[size], places[node]
    places[node] = -1
    if last != node:
        heap[hole] = last
        places[last] = hole
        _settle(hole, heap, places, size, least, sums, counts, rule)
    return size


@compiled(f"int64[::1]({FLAT}, int64)")
def _centres(  # noqa: C901, PLR0915
    begins: np.ndarray, topics: np.ndarray, firsts: np.ndarray, subscribers: np.ndarray, rule: int
) -> np.ndarray:
    nodes, number = len(begins) - 1, len(firsts) - 1
    open_topics = firsts[1:] - firsts[:-1] > 1
    words = (nodes + 63) // 64
    rows = np.full(number, -1, dtype=np.int64)
    bits = as_bits(firsts, subscribers, rows, words)
    union = np.empty(words, dtype=np.uint64)
    least, sums = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    counts, remaining = begins[1:] - begins[:-1], np.zeros(nodes, dtype=np.int64)
    overlaps, exact = np.full(nodes, -1, dtype=np.int64), np.zeros(nodes, dtype=np.bool_)
    heads, chains = np.zeros((number, 2), np.int32), np.empty((len(topics), 2), np.int32)
    heads[:, 0] = -1
    losses = np.empty((len(subscribers), 2), dtype=np.int64)
    heap, places = np.empty(nodes, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
    size = 0
    for node in range(nodes):
        for topic in topics[begins[node] : begins[node + 1]]:
            if open_topics[topic]:
                sums[node] += firsts[topic + 1] - firsts[topic]
                remaining[node] += 1
        if remaining[node]:
            least[node] = largest_topic(node, begins, topics, firsts, subscribers, open_topics)
            heap[size] = node
            size += 1
            _settle(size - 1, heap, places, size, least, sums, counts, rule)
    centres = np.full(number, -1, dtype=np.int64)
    while size:
        node = heap[0]
        if not exact[node]:
            least[node] = reached_nodes(
                node, begins, topics, firsts, subscribers, open_topics, rows, bits, union
            )
            overlaps[node] = sums[node] - least[node]
            exact[node] = True
            _settle(0, heap, places, size, least, sums, counts, rule)
            continue
        for topic in topics[begins[node] : begins[node + 1]]:
            if not open_topics[topic]:
                continue
            open_topics[topic] = False
            centres[topic] = node
            first, last = firsts[topic], firsts[topic + 1]
            updated = count_losses(
                topic, begins, topics, firsts, subscribers, open_topics, heads, chains, losses
            )
            for at in range(first, last):
                subscriber = subscribers[at]
                sums[subscriber] -= last - first
                remaining[subscriber] -= 1
                if remaining[subscriber] == 0:
                    size = _drop(subscriber, heap, places, size, least, sums, counts, rule)
                    continue
                most = largest_topic(subscriber, begins, topics, firsts, subscribers, open_topics)
                exact[subscriber] = remaining[subscriber] == 1 or (updated and exact[subscriber])
                if overlaps[subscriber] >= 0:
                    if updated:
                        overlaps[subscriber] -= losses[at - first, 0]
                    most = max(most, sums[subscriber] - overlaps[subscriber])
                least[subscriber] = most
                _settle(places[subscriber], heap, places, size, least, sums, counts, rule)
    return centres


@compiled("boolean(int64, int64, int64[::1], int64[::1], int64[::1])")
def _are_linked(
    one: int, other: int, begins: np.ndarray, topics: np.ndarray, centres: np.ndarray
) -> bool:
    """Return True if one of the two is the centre of a topic of the other."""
    for place in range(begins[other], begins[other + 1]):
        if centres[topics[place]] == one:
            return True
    for place in range(begins[one], begins[one + 1]):  # noqa: SIM110 - it is compiled
        if centres[topics[place]] == other:
            return True
    return False


@compiled(f"int64[:, ::1]({FLAT}, int64[::1])")
def _edges(
    begins: np.ndarray,
    topics: np.ndarray,
    firsts: np.ndarray,
    subscribers: np.ndarray,
    chosen: np.ndarray,
) -> np.ndarray:
    """Each edge once: fix the centres one by one, and take the edges that come."""
    centres = np.full(len(chosen), -1, dtype=np.int64)
    edges = np.empty((len(topics), 2), dtype=np.int64)
    count = 0
    for topic in range(len(chosen)):
        node = chosen[topic]
        if node >= 0:
            for at in range(firsts[topic], firsts[topic + 1]):
                subscriber = subscribers[at]
                if subscriber != node and not _are_linked(
                    node, subscriber, begins, topics, centres
                ):
                    edges[count, 0] = node
                    edges[count, 1] = subscriber
                    count += 1
            centres[topic] = node
    return edges[:count].copy()


@compiled(f"void({FLAT}, int64[::1], int64[::1], int64[::1])")
def _relieve_nodes(  # noqa: C901, PLR0912, PLR0913, PLR0917
    begins: np.ndarray,
    topics: np.ndarray,
    firsts: np.ndarray,
    subscribers: np.ndarray,
    order: np.ndarray,
    centres: np.ndarray,
    degrees: np.ndarray,
) -> None:
    """Relieve every node in this order, as `Stars.relieve` does."""
    for node in order:
        for place in range(begins[node], begins[node + 1]):
            topic = topics[place]
            if centres[topic] != node:
                continue
            first, last = firsts[topic], firsts[topic + 1]
            least = subscribers[first]
            for at in range(first, last):
                if degrees[subscribers[at]] < degrees[least]:
                    least = subscribers[at]
            if least == node:
                continue
            degree = degrees[least]
            for at in range(first, last):
                subscriber = subscribers[at]
                if subscriber != least and not _are_linked(
                    least, subscriber, begins, topics, centres
                ):
                    degree += 1
            if degree >= degrees[node]:
                continue
            centres[topic] = -1
            for at in range(first, last):
                subscriber = subscribers[at]
                if subscriber != node and not _are_linked(
                    node, subscriber, begins, topics, centres
                ):
                    degrees[node] -= 1
                    degrees[subscriber] -= 1
            for at in range(first, last):
                subscriber = subscribers[at]
                if subscriber != least and not _are_linked(
                    least, subscriber, begins, topics, centres
                ):
                    degrees[least] += 1
                    degrees[subscriber] += 1
            centres[topic] = least


def centres_of(flat: FlatInterests, rule: str, *, refined: bool) -> np.ndarray:
    """The centre of every topic; −1 = it needs none."""
    centres = _centres(*flat.arrays, RULES[rule])
    return refine_centres(flat, centres) if refined else centres


def refine_centres(flat: FlatInterests, centres: np.ndarray) -> np.ndarray:
    """The centres after the pass of CD-MAX-Ref."""
    degrees = np.bincount(edges_of(flat, centres).ravel(), minlength=flat.nodes)
    order = np.argsort(-degrees, kind="stable").astype(np.int64)
    moved = centres.copy()
    _relieve_nodes(*flat.arrays, order, moved, degrees.astype(np.int64))
    return moved


def edges_of(flat: FlatInterests, centres: np.ndarray) -> np.ndarray:
    """The edges of the stars, a row each: pairs of nodes, each once."""
    return _edges(*flat.arrays, centres)
