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
from vizpub.simulators.designs.flat import Flat
from vizpub.simulators.designs.reach import FLAT, as_bits, largest, lost, reached

RULES = {"cd-max": 0, "cd-oda-ii": 1}

_KEYS = "int64[::1], int64[::1], int64[::1], int64"
_HEAP = "int64[::1], int64[::1]"


@compiled(f"boolean(int64, int64, {_KEYS})")
def _before(
    one: int, other: int, least: np.ndarray, sums: np.ndarray, counts: np.ndarray, rule: int
) -> bool:
    """Whether one node is to be the centre before the other, by their bounds."""
    if rule == 0:
        if least[one] != least[other]:
            return bool(least[one] < least[other])
        if sums[one] != sums[other]:
            return bool(sums[one] > sums[other])
    else:
        here, there = sums[one] * least[other], sums[other] * least[one]
        if here != there:
            return bool(here > there)
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
        if not _before(node, heap[above], least, sums, counts, rule):
            break
        heap[place] = heap[above]
        places[heap[place]] = place
        place = above
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and _before(heap[below + 1], heap[below], least, sums, counts, rule):
            below += 1
        if not _before(heap[below], node, least, sums, counts, rule):
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
    left = firsts[1:] - firsts[:-1] > 1
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
            if left[topic]:
                sums[node] += firsts[topic + 1] - firsts[topic]
                remaining[node] += 1
        if remaining[node]:
            least[node] = largest(node, begins, topics, firsts, subscribers, left)
            heap[size] = node
            size += 1
            _settle(size - 1, heap, places, size, least, sums, counts, rule)
    centres = np.full(number, -1, dtype=np.int64)
    while size:
        node = heap[0]
        if not exact[node]:
            least[node] = reached(
                node, begins, topics, firsts, subscribers, left, rows, bits, union
            )
            overlaps[node] = sums[node] - least[node]
            exact[node] = True
            _settle(0, heap, places, size, least, sums, counts, rule)
            continue
        for topic in topics[begins[node] : begins[node + 1]]:
            if not left[topic]:
                continue
            left[topic] = False
            centres[topic] = node
            first, last = firsts[topic], firsts[topic + 1]
            kept = lost(topic, begins, topics, firsts, subscribers, left, heads, chains, losses)
            for at in range(first, last):
                other = subscribers[at]
                sums[other] -= last - first
                remaining[other] -= 1
                if remaining[other] == 0:
                    size = _drop(other, heap, places, size, least, sums, counts, rule)
                    continue
                most = largest(other, begins, topics, firsts, subscribers, left)
                exact[other] = remaining[other] == 1 or (kept and exact[other])
                if overlaps[other] >= 0:
                    if kept:
                        overlaps[other] -= losses[at - first, 0]
                    most = max(most, sums[other] - overlaps[other])
                least[other] = most
                _settle(places[other], heap, places, size, least, sums, counts, rule)
    return centres


@compiled("boolean(int64, int64, int64[::1], int64[::1], int64[::1])")
def _linked(
    one: int, other: int, begins: np.ndarray, topics: np.ndarray, centres: np.ndarray
) -> bool:
    """Whether one of the two is the centre of a topic of the other."""
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
                other = subscribers[at]
                if other != node and not _linked(node, other, begins, topics, centres):
                    edges[count, 0] = node
                    edges[count, 1] = other
                    count += 1
            centres[topic] = node
    return edges[:count].copy()


@compiled(f"void({FLAT}, int64[::1], int64[::1], int64[::1])")
def _refine(  # noqa: C901, PLR0912, PLR0913, PLR0917
    begins: np.ndarray,
    topics: np.ndarray,
    firsts: np.ndarray,
    subscribers: np.ndarray,
    order: np.ndarray,
    centres: np.ndarray,
    degrees: np.ndarray,
) -> None:
    """As `Stars.relieve` of every node, in this order."""
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
                other = subscribers[at]
                if other != least and not _linked(least, other, begins, topics, centres):
                    degree += 1
            if degree >= degrees[node]:
                continue
            centres[topic] = -1
            for at in range(first, last):
                other = subscribers[at]
                if other != node and not _linked(node, other, begins, topics, centres):
                    degrees[node] -= 1
                    degrees[other] -= 1
            for at in range(first, last):
                other = subscribers[at]
                if other != least and not _linked(least, other, begins, topics, centres):
                    degrees[least] += 1
                    degrees[other] += 1
            centres[topic] = least


def centres_of(flat: Flat, rule: str, *, refined: bool = False) -> np.ndarray:
    """The centre of every topic; −1 = it needs none."""
    centres = _centres(*flat.arrays, RULES[rule])
    return refine(flat, centres) if refined else centres


def refine(flat: Flat, centres: np.ndarray) -> np.ndarray:
    """The centres after the pass of CD-MAX-Ref."""
    degrees = np.bincount(edges_of(flat, centres).ravel(), minlength=flat.nodes)
    order = np.argsort(-degrees, kind="stable").astype(np.int64)
    moved = centres.copy()
    _refine(*flat.arrays, order, moved, degrees.astype(np.int64))
    return moved


def edges_of(flat: Flat, centres: np.ndarray) -> np.ndarray:
    """The edges of the stars, a row each: pairs of nodes, each once."""
    return _edges(*flat.arrays, centres)
