"""Repairs star overlays of up to millions of nodes, compiled: `Upkeep`, event by event, on arrays.

An edge is not kept: it is there if one of its ends is the centre of a topic of the other. Degrees
are the leaves of a tree of maxima, so that the node of the highest degree is found in a few steps.
The subscribers of a topic are one piece of a pool; a topic that outgrows its piece gets one of
twice the size behind all others.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from vizpub.machine.compiled import compiled
from vizpub.simulators.designs.algorithms import Design
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.kernels import centres_of, edges_of

_CENTRES = "int32[:, ::1], int32[::1]"
"""own, centres: the topics of each node (−1 = free), and the centre of each topic (−1 = none)."""
_STATE = f"{_CENTRES}, int32[:, ::1], int32[::1], int64[:, ::1], int32[::1]"
"""And places, where in its topic's piece each node is, pool, pieces (begin and number of each
topic's subscribers, room), tree (the maxima; first how many edges came or went).
"""
_BEGIN, _NUMBER, _ROOM = range(3)
_LEAST_ROOM = 4


@compiled(f"boolean(int64, int64, {_CENTRES})")
def _are_linked(one: int, other: int, own: np.ndarray, centres: np.ndarray) -> bool:
    """Return True if one of the two is the centre of a topic of the other."""
    for topic in own[other]:
        if topic >= 0 and centres[topic] == one:
            return True
    for topic in own[one]:  # noqa: SIM110 - it is compiled
        if topic >= 0 and centres[topic] == other:
            return True
    return False


@compiled("void(int64, int64, int32[::1])")
def _add_degree(node: int, change: int, tree: np.ndarray) -> None:
    at = len(tree) // 2 + node
    tree[at] += change
    while at > 1:
        at //= 2
        most = max(tree[2 * at], tree[2 * at + 1])
        if tree[at] == most:
            break
        tree[at] = most


@compiled("void(int64, int64, int64, int32[::1])")
def _toggle(one: int, other: int, change: int, tree: np.ndarray) -> None:
    """Let an edge come (1) or go (−1)."""
    _add_degree(one, change, tree)
    _add_degree(other, change, tree)
    tree[0] += 1


@compiled(f"void(int64, int64, int64, {_STATE})")
def _toggle_star(  # noqa: PLR0913, PLR0917
    topic: int,
    centre: int,
    change: int,
    own: np.ndarray,
    centres: np.ndarray,
    places: np.ndarray,
    pool: np.ndarray,
    pieces: np.ndarray,
    tree: np.ndarray,
) -> None:
    """Let the edges come or go that only this topic, which has no centre now, needs."""
    begin, number = pieces[topic, _BEGIN], pieces[topic, _NUMBER]
    for subscriber in pool[begin : begin + number]:
        if subscriber != centre and not _are_linked(centre, subscriber, own, centres):
            _toggle(centre, subscriber, change, tree)


@compiled(f"int64(int64, {_STATE})")
def _least(  # noqa: PLR0913, PLR0917
    topic: int,
    own: np.ndarray,
    centres: np.ndarray,
    places: np.ndarray,
    pool: np.ndarray,
    pieces: np.ndarray,
    tree: np.ndarray,
) -> int:
    """The subscriber of least degree, of several the first."""
    begin, leaves = pieces[topic, _BEGIN], len(tree) // 2
    least = pool[begin]
    for node in pool[begin : begin + pieces[topic, _NUMBER]]:
        degree, lowest = tree[leaves + node], tree[leaves + least]
        if degree < lowest or (degree == lowest and node < least):
            least = node
    return int(least)


@compiled(f"void(int64, int64, {_STATE})")
def _move(  # noqa: PLR0913, PLR0917
    topic: int,
    centre: int,
    own: np.ndarray,
    centres: np.ndarray,
    places: np.ndarray,
    pool: np.ndarray,
    pieces: np.ndarray,
    tree: np.ndarray,
) -> None:
    """Take the centre from a topic, if it has one, and give it another; −1 = none."""
    before, centres[topic] = centres[topic], -1
    if before >= 0:
        _toggle_star(topic, before, -1, own, centres, places, pool, pieces, tree)
    if centre >= 0:
        _toggle_star(topic, centre, 1, own, centres, places, pool, pieces, tree)
    centres[topic] = centre


@compiled(f"int64(int64, int64, int64, {_STATE})")
def begin_topic(  # noqa: PLR0913, PLR0917
    node: int,
    topic: int,
    end: int,
    own: np.ndarray,
    centres: np.ndarray,
    places: np.ndarray,
    pool: np.ndarray,
    pieces: np.ndarray,
    tree: np.ndarray,
) -> int:
    """Subscribe, and link to the centre; returns the end of the used part of the pool."""
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
        least = _least(topic, own, centres, places, pool, pieces, tree)
        _move(topic, least, own, centres, places, pool, pieces, tree)
    return end


@compiled(f"void(int64, int64, {_STATE})")
def end_topic(  # noqa: PLR0913, PLR0917
    node: int,
    topic: int,
    own: np.ndarray,
    centres: np.ndarray,
    places: np.ndarray,
    pool: np.ndarray,
    pieces: np.ndarray,
    tree: np.ndarray,
) -> None:
    """End a subscription; a topic that loses its centre gets another."""
    begin, number, centre = pieces[topic, _BEGIN], pieces[topic, _NUMBER] - 1, centres[topic]
    is_lifted = centre == node or number == 1
    if is_lifted:
        _move(topic, -1, own, centres, places, pool, pieces, tree)
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
        least = _least(topic, own, centres, places, pool, pieces, tree)
        _move(topic, least, own, centres, places, pool, pieces, tree)
    elif not is_lifted and centre >= 0 and not _are_linked(centre, node, own, centres):
        _toggle(centre, node, -1, tree)


@compiled(f"boolean(int64, float64, {_STATE})")
def _relieve(  # noqa: PLR0913, PLR0917
    node: int,
    most: float,
    own: np.ndarray,
    centres: np.ndarray,
    places: np.ndarray,
    pool: np.ndarray,
    pieces: np.ndarray,
    tree: np.ndarray,
) -> bool:
    """Move topics away from the node, as `Stars.relieve` does; returns whether any was moved."""
    leaves, is_moved = len(tree) // 2, False
    for topic in np.sort(own[node]):
        if topic < 0 or centres[topic] != node:
            continue
        if tree[leaves + node] <= most:
            break
        least = _least(topic, own, centres, places, pool, pieces, tree)
        degree, begin = tree[leaves + least], pieces[topic, _BEGIN]
        for subscriber in pool[begin : begin + pieces[topic, _NUMBER]]:
            if degree >= tree[leaves + node]:
                break
            if subscriber != least and not _are_linked(least, subscriber, own, centres):
                degree += 1
        if least != node and degree < tree[leaves + node]:
            _move(topic, least, own, centres, places, pool, pieces, tree)
            is_moved = True
    return is_moved


@compiled(f"void(float64, {_STATE})")
def relieve_highest(  # noqa: PLR0913, PLR0917
    most: float,
    own: np.ndarray,
    centres: np.ndarray,
    places: np.ndarray,
    pool: np.ndarray,
    pieces: np.ndarray,
    tree: np.ndarray,
) -> None:
    """Relieve the node of the highest degree, of several the first, again and again."""
    for _ in range(len(own)):
        at = 1
        while at < len(tree) // 2:
            at = 2 * at + (tree[2 * at] < tree[at])
        node = at - len(tree) // 2
        if not _relieve(node, most, own, centres, places, pool, pieces, tree):
            break


class FlatUpkeep:
    """An overlay that is repaired. It begins as the algorithm constructs it for the first nodes;
    there is room for `nodes` that have come by the end, with as many topics each as the first have
    at most, and for `topics`.
    """

    def __init__(self, design: Design, first: FlatInterests, nodes: int, topics: int) -> None:
        """Raises: KeyError for an algorithm that is not compiled."""
        counts = np.diff(first.begins)
        self.own = np.full((nodes, counts.max()), -1, np.int32)
        self.centres = np.full(topics, -1, np.int32)
        self._places = np.zeros_like(self.own)
        self._pool = np.empty(self.own.size + _LEAST_ROOM * topics, np.int32)
        self._end = 0
        self._pieces = np.zeros((topics, 3), np.int64)
        self._tree = np.zeros(2 << (nodes - 1).bit_length(), np.int32)
        for node, own in enumerate(np.split(first.topics, first.begins[1:-1])):
            for topic in own:
                self._begin(node, topic)
        centres = centres_of(first, design.algorithm.removesuffix("-ref"), refined=design.refines)
        self.centres[: len(centres)] = centres
        self._set_degrees(np.bincount(edges_of(first, centres).ravel(), minlength=nodes))
        self._up = int((counts > 0).sum())
        self._share = 0.0 if design.refines else self.degrees.max() / max(self._up, 1)

    def _set_degrees(self, degrees: np.ndarray) -> None:
        leaves = len(self._tree) // 2
        self._tree[leaves : leaves + len(degrees)] = degrees
        while leaves > 1:
            pairs = self._tree[leaves : 2 * leaves].reshape(-1, 2)
            leaves //= 2
            self._tree[leaves : 2 * leaves] = pairs.max(axis=1)

    @property
    def _state(self) -> tuple[np.ndarray, ...]:
        return self.own, self.centres, self._places, self._pool, self._pieces, self._tree

    @property
    def degrees(self) -> np.ndarray:
        """The degree of each node."""
        leaves = len(self._tree) // 2
        return self._tree[leaves : leaves + len(self.own)]

    @property
    def bytes(self) -> int:
        """Memory of the arrays."""
        return sum(array.nbytes for array in self._state)

    def subscribers(self, topic: int) -> np.ndarray:
        """Those of a topic, in no order."""
        begin, number, _ = self._pieces[topic]
        return self._pool[begin : begin + number].copy()

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
        self._tree[0] = 0
        for topic in sorted(old.difference(topics)):
            end_topic(node, topic, *self._state)
        for topic in sorted(set(topics) - old):
            self._begin(node, topic)
        self._up += bool(topics) - bool(old)
        relieve_highest(self._share * self._up, *self._state)
        return int(self._tree[0])

    def _begin(self, node: int, topic: int) -> None:
        _, number, room = self._pieces[topic].tolist()
        if number == room and self._end + 2 * number + _LEAST_ROOM > len(self._pool):
            self._pool = np.concatenate([self._pool, np.empty_like(self._pool)])
        self._end = begin_topic(node, topic, self._end, *self._state)
