"""Repairs star overlays of up to millions of nodes, compiled: `Upkeep`, event by event, on arrays.

An edge is not kept: it is there if one of its ends is the centre of a topic of the other. Degrees
are the leaves of a tree of maxima, so that the node of the highest degree is found in a few steps.
The subscribers of a topic are one piece of a pool; a topic that outgrows its piece gets one of
twice the size behind all others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int32, int64
from numba.core import types

from vizpub.machine.compiled import compiled
from vizpub.simulators.designs.algorithms import Design
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.kernels import centres_of, edges_of

_BEGIN, _NUMBER, _ROOM = range(3)
_LEAST_ROOM = 4


class Arrays(NamedTuple):
    """The state of an overlay; changed in place."""

    own: np.ndarray
    """The topics of each node; −1 = free."""
    centres: np.ndarray
    """The centre of each topic; −1 = none."""
    places: np.ndarray
    """Where in the piece of each of its topics a node is."""
    pool: np.ndarray
    """The subscribers of all topics."""
    pieces: np.ndarray
    """Of each topic, where in the pool its piece begins, its subscribers, and its room."""
    tree: np.ndarray
    """The maxima of degrees; in its first place, how many edges came or went."""


_NODES, _TOPICS = int32[:, ::1], int32[::1]
_ARRAYS: Any = types.NamedTuple(  # type: ignore[no-untyped-call]
    [_NODES, _TOPICS, _NODES, int32[::1], int64[:, ::1], int32[::1]], Arrays
)


@compiled(int64, int64, _NODES, _TOPICS)
def _are_linked(one: int, other: int, own: np.ndarray, centres: np.ndarray) -> bool:
    """Return True if one of the two is the centre of a topic of the other."""
    for topic in own[other]:
        if topic >= 0 and centres[topic] == one:
            return True
    for topic in own[one]:  # noqa: SIM110 - it is compiled
        if topic >= 0 and centres[topic] == other:
            return True
    return False


@compiled(int64, int64, int32[::1])
def _add_degree(node: int, change: int, tree: np.ndarray) -> None:
    at = len(tree) // 2 + node
    tree[at] += change
    while at > 1:
        at //= 2
        most = max(tree[2 * at], tree[2 * at + 1])
        if tree[at] == most:
            break
        tree[at] = most


@compiled(int64, int64, int64, int32[::1])
def _toggle(one: int, other: int, change: int, tree: np.ndarray) -> None:
    """Let an edge come (1) or go (−1)."""
    _add_degree(one, change, tree)
    _add_degree(other, change, tree)
    tree[0] += 1


@compiled(int64, int64, int64, _ARRAYS)
def _toggle_star(topic: int, centre: int, change: int, arrays: Arrays) -> None:
    """Let the edges come or go that only this topic, which has no centre now, needs."""
    own, centres, _, pool, pieces, tree = arrays
    begin, number = pieces[topic, _BEGIN], pieces[topic, _NUMBER]
    for subscriber in pool[begin : begin + number]:
        if subscriber != centre and not _are_linked(centre, subscriber, own, centres):
            _toggle(centre, subscriber, change, tree)


@compiled(int64, _ARRAYS)
def _least(topic: int, arrays: Arrays) -> int:
    """The subscriber of least degree, of several the first."""
    pool, pieces, tree = arrays.pool, arrays.pieces, arrays.tree
    begin, leaves = pieces[topic, _BEGIN], len(tree) // 2
    least = pool[begin]
    for node in pool[begin : begin + pieces[topic, _NUMBER]]:
        degree, lowest = tree[leaves + node], tree[leaves + least]
        if degree < lowest or (degree == lowest and node < least):
            least = node
    return int(least)


@compiled(int64, int64, _ARRAYS)
def _move(topic: int, centre: int, arrays: Arrays) -> None:
    """Take the centre from a topic, if it has one, and give it another; −1 = none."""
    centres = arrays.centres
    before, centres[topic] = centres[topic], -1
    if before >= 0:
        _toggle_star(topic, before, -1, arrays)
    if centre >= 0:
        _toggle_star(topic, centre, 1, arrays)
    centres[topic] = centre


@compiled(int64, int64, int64, _ARRAYS)
def _begin_topic(node: int, topic: int, end: int, arrays: Arrays) -> int:
    """Subscribe, and link to the centre; returns the end of the used part of the pool."""
    own, centres, places, pool, pieces, tree = arrays
    number = pieces[topic, _NUMBER]
    if number == pieces[topic, _ROOM]:
        room = max(2 * number, _LEAST_ROOM)
        begin = pieces[topic, _BEGIN]
        pool[end : end + number] = pool[begin : begin + number]
        pieces[topic, _BEGIN], pieces[topic, _ROOM] = end, room
        end += room
    centre = centres[topic]
    if centre >= 0 and not _are_linked(centre, node, own, centres):
        _toggle(centre, node, 1, tree)
    pool[pieces[topic, _BEGIN] + number] = node
    pieces[topic, _NUMBER] = number + 1
    for place in range(own.shape[1]):
        if own[node, place] < 0:
            own[node, place], places[node, place] = topic, number
            break
    if centre < 0 and number > 0:
        least = _least(topic, arrays)
        _move(topic, least, arrays)
    return end


@compiled(int64, int64, _ARRAYS)
def _end_topic(node: int, topic: int, arrays: Arrays) -> None:
    """End a subscription; a topic that loses its centre gets another."""
    own, centres, places, pool, pieces, tree = arrays
    begin, number, centre = pieces[topic, _BEGIN], pieces[topic, _NUMBER] - 1, centres[topic]
    is_lifted = centre == node or number == 1
    if is_lifted:
        _move(topic, -1, arrays)
    for place in range(own.shape[1]):
        if own[node, place] == topic:
            own[node, place] = -1
            hole = places[node, place]
            break
    last = pool[begin + number]
    pool[begin + hole] = last
    pieces[topic, _NUMBER] = number
    for place in range(own.shape[1]):
        if own[last, place] == topic:
            places[last, place] = hole
    if is_lifted and number > 1:
        least = _least(topic, arrays)
        _move(topic, least, arrays)
    elif not is_lifted and centre >= 0 and not _are_linked(centre, node, own, centres):
        _toggle(centre, node, -1, tree)


@compiled(int64, int64[::1], int64, _ARRAYS)
def begin_topics(node: int, topics: np.ndarray, end: int, arrays: Arrays) -> int:
    """Begin several; returns the end of the used part of the pool."""
    for topic in topics:
        end = _begin_topic(node, topic, end, arrays)
    return end


@compiled(int64, int64[::1], _ARRAYS)
def end_topics(node: int, topics: np.ndarray, arrays: Arrays) -> None:
    """End several."""
    for topic in topics:
        _end_topic(node, topic, arrays)


@compiled(int64, float64, _ARRAYS)
def _relieve(node: int, most: float, arrays: Arrays) -> bool:
    """Move topics away from the node, as `Stars.relieve` does; returns whether any was moved."""
    own, centres, _, pool, pieces, tree = arrays
    leaves, is_moved = len(tree) // 2, False
    for topic in np.sort(own[node]):
        if topic < 0 or centres[topic] != node:
            continue
        if tree[leaves + node] <= most:
            break
        least = _least(topic, arrays)
        degree, begin = tree[leaves + least], pieces[topic, _BEGIN]
        for subscriber in pool[begin : begin + pieces[topic, _NUMBER]]:
            if degree >= tree[leaves + node]:
                break
            if subscriber != least and not _are_linked(least, subscriber, own, centres):
                degree += 1
        if least != node and degree < tree[leaves + node]:
            _move(topic, least, arrays)
            is_moved = True
    return is_moved


@compiled(float64, _ARRAYS)
def relieve_highest(most: float, arrays: Arrays) -> None:
    """Relieve the node of the highest degree, of several the first, again and again."""
    tree = arrays.tree
    for _ in range(len(arrays.own)):
        at = 1
        while at < len(tree) // 2:
            at = 2 * at + (tree[2 * at] < tree[at])
        node = at - len(tree) // 2
        if not _relieve(node, most, arrays):
            break


class FlatUpkeep:
    """An overlay that is repaired. It begins as the algorithm constructs it for the first nodes;
    there is room for `nodes` that have come by the end, with as many topics each as the first have
    at most, and for `topics`.
    """

    def __init__(self, design: Design, first: FlatInterests, nodes: int, topics: int) -> None:
        """Raises: KeyError for an algorithm that is not compiled."""
        counts = np.diff(first.begins)
        own = np.full((nodes, counts.max()), -1, np.int32)
        self._arrays = Arrays(
            own,
            centres=np.full(topics, -1, np.int32),
            places=np.zeros_like(own),
            pool=np.empty(own.size + _LEAST_ROOM * topics, np.int32),
            pieces=np.zeros((topics, 3), np.int64),
            tree=np.zeros(2 << (nodes - 1).bit_length(), np.int32),
        )
        self._end = 0
        for node, held in enumerate(np.split(first.topics, first.begins[1:-1])):
            self._begin(node, held)
        centres = centres_of(first, design.algorithm.removesuffix("-ref"), refined=design.refines)
        self.centres[: len(centres)] = centres
        self._set_degrees(np.bincount(edges_of(first, centres).ravel(), minlength=nodes))
        self._up = int((counts > 0).sum())
        self._share = 0.0 if design.refines else self.degrees.max() / max(self._up, 1)

    def _set_degrees(self, degrees: np.ndarray) -> None:
        leaves = len(self._arrays.tree) // 2
        self._arrays.tree[leaves : leaves + len(degrees)] = degrees
        while leaves > 1:
            pairs = self._arrays.tree[leaves : 2 * leaves].reshape(-1, 2)
            leaves //= 2
            self._arrays.tree[leaves : 2 * leaves] = pairs.max(axis=1)

    @property
    def own(self) -> np.ndarray:
        """The topics of each node; −1 = free."""
        return self._arrays.own

    @property
    def centres(self) -> np.ndarray:
        """The centre of each topic; −1 = none."""
        return self._arrays.centres

    @property
    def degrees(self) -> np.ndarray:
        """The degree of each node."""
        leaves = len(self._arrays.tree) // 2
        return self._arrays.tree[leaves : leaves + len(self.own)]

    @property
    def bytes(self) -> int:
        """Memory of the arrays."""
        return sum(array.nbytes for array in self._arrays)

    def subscribers(self, topic: int) -> np.ndarray:
        """Those of a topic, in no order."""
        begin, number, _ = self._arrays.pieces[topic]
        return self._arrays.pool[begin : begin + number].copy()

    def interests(self) -> FlatInterests:
        """The subscriptions now."""
        rows = np.sort(self.own.astype(np.int64), axis=1)
        is_used = rows >= 0
        return FlatInterests.from_counts(is_used.sum(axis=1), rows[is_used], len(self.centres))

    def change(self, node: int, topics: Collection[int]) -> int:
        """Give the node these topics; one that is down has none. Returns the number of edges that
        came or went, twice if both.

        Raises: ValueError if there is no room for as many.
        """
        if len(topics) > self.own.shape[1]:
            raise ValueError(f"room for {self.own.shape[1]} topics, not {len(topics)}")
        old = {int(topic) for topic in self.own[node] if topic >= 0}
        self._arrays.tree[0] = 0
        end_topics(node, np.array(sorted(old.difference(topics)), np.int64), self._arrays)
        self._begin(node, np.array(sorted(set(topics) - old), np.int64))
        self._up += bool(topics) - bool(old)
        relieve_highest(self._share * self._up, self._arrays)
        return int(self._arrays.tree[0])

    def _begin(self, node: int, topics: np.ndarray) -> None:
        pool, numbers = self._arrays.pool, self._arrays.pieces[topics, _NUMBER]
        if self._end + (2 * numbers + _LEAST_ROOM).sum() > len(pool):  # if all outgrow their pieces
            pool = np.concatenate([pool, np.empty_like(pool)])
            self._arrays = self._arrays._replace(pool=pool)
        self._end = begin_topics(node, topics, self._end, self._arrays)
