"""RINGS' operations: the nearest peers on both sides, topic by topic."""

from __future__ import annotations

import numpy as np
from numba.core.types import int64, uint64

from vizpub.machine.compiled import compiled, population
from vizpub.model.arrays import Int32s, Words
from vizpub.simulators.protocols.poldercast.views import AGE, NUMBERS, PEER, VIEW, VIEWS, bytes_of
from vizpub.simulators.protocols.poldercast.views_overlay import (
    PACKED,
    OverlayState,
    forget_in_ring,
    known_entries,
)

_PROFILE = uint64[::1]


@compiled(NUMBERS, int64, int64)
def distance(position: Int32s, begin: int, end: int) -> int:
    """Number of positions from `begin` to `end`; positions wrap."""
    steps: int = position[end] - position[begin]
    return steps if steps >= 0 else steps + position.size


@compiled(VIEWS, int64, NUMBERS, int64, int64, int64)
def offer(rings: Int32s, row: int, position: Int32s, owner: int, other: int, age: int) -> None:
    """Insert another peer into both sides of the owner's ring in that row, if it is nearer than
    the peers there.
    """
    side = rings.shape[2] // 2
    for begin in (0, side):
        # Before the owner, distances are from the neighbour to the owner.
        apart = distance(position, other, owner) if begin else distance(position, owner, other)
        place = begin + side
        while place > begin:
            held = rings[row, PEER, place - 1]
            if held >= 0:
                near, far = (held, owner) if begin else (owner, held)
                if distance(position, near, far) < apart:
                    break
            place -= 1
        if place == begin + side:
            continue
        if rings[row, PEER, place] == other:
            rings[row, AGE, place] = min(rings[row, AGE, place], age)
            continue
        for behind in range(begin + side - 1, place, -1):
            rings[row, PEER, behind] = rings[row, PEER, behind - 1]
            rings[row, AGE, behind] = rings[row, AGE, behind - 1]
        rings[row, PEER, place], rings[row, AGE, place] = other, age


@compiled(_PROFILE, int64)
def rank(profile: Words, topic: int) -> int:
    """Number of topics of a profile below that one."""
    below_it = np.uint64(topic % 64)
    last = profile[topic // 64] & ((np.uint64(1) << below_it) - np.uint64(1))
    count = population(last)
    for word in range(topic // 64):
        count += population(profile[word])
    return count


@compiled(PACKED, VIEWS, int64, _PROFILE, int64, int64)
def _offer_by_topic(
    overlay: OverlayState, rings: Int32s, owner: int, topics: Words, other: int, age: int
) -> None:
    """Offer another peer to the owner's rings (one for each of `topics`) that it fits into."""
    profiles, position, row = overlay.profiles, overlay.position, 0
    for word in range(topics.size):
        shared = topics[word] & profiles[other, word]
        while shared != 0:
            rest = shared & (shared - np.uint64(1))
            lower = topics[word] & ((shared ^ rest) - np.uint64(1))
            offer(rings, row + population(lower), position, owner, other, age)
            shared = rest
        row += population(topics[word])


@compiled(PACKED, int64, VIEW)
def learn(overlay: OverlayState, peer: int, entries: Int32s) -> None:
    """Offer peers to the rings of the topics they share; entries end with the first -1."""
    first = overlay.first[peer]
    rings = overlay.rings[first : first + overlay.held[peer]]
    for k in range(entries.shape[1]):
        candidate = entries[PEER, k]
        if candidate < 0:
            return
        if candidate != peer:
            _offer_by_topic(
                overlay, rings, peer, overlay.profiles[peer], candidate, entries[AGE, k]
            )


@compiled(PACKED, int64)
def _oldest(overlay: OverlayState, peer: int) -> int:
    """Age the entries of the rings by a cycle; returns the oldest neighbour, preferring others to
    the one asked last. -1 if there is none.
    """
    target, target_age = -1, -1
    awaited = overlay.awaited[peer]
    for row in range(overlay.first[peer], overlay.first[peer] + overlay.held[peer]):
        ring = overlay.rings[row]
        for place in range(ring.shape[1]):
            neighbour = ring[PEER, place]
            if neighbour < 0:
                continue
            ring[AGE, place] += 1
            if neighbour == awaited:
                if target < 0:
                    target = neighbour
            elif ring[AGE, place] > target_age:
                target, target_age = neighbour, ring[AGE, place]
    return target


@compiled(PACKED, int64)
def _drop_strangers(overlay: OverlayState, peer: int) -> None:
    """Remove peers from each ring that no longer subscribe to its topic."""
    mine, row = overlay.profiles[peer], overlay.first[peer]
    for word in range(mine.size):
        bits = mine[word]
        while bits != 0:
            rest = bits & (bits - np.uint64(1))
            ring = overlay.rings[row]
            for place in range(ring.shape[1]):
                neighbour = ring[PEER, place]
                while neighbour >= 0 and overlay.profiles[neighbour, word] & (bits ^ rest) == 0:
                    forget_in_ring(ring, neighbour)
                    neighbour = ring[PEER, place]
            bits, row = rest, row + 1


@compiled(PACKED, int64, int64)
def _rings_for(overlay: OverlayState, peer: int, target: int) -> Int32s:
    """int32[topics, 2, 2·side]: the target's rings of the topics that it shares with a peer, made
    from that peer and all peers it knows.
    """
    topics = overlay.profiles[peer] & overlay.profiles[target]
    count = 0
    for word in range(topics.size):
        count += population(topics[word])
    rings = np.full((count, 2, overlay.rings.shape[2]), -1, np.int32)
    _offer_by_topic(overlay, rings, target, topics, peer, 0)
    candidates = known_entries(overlay, peer, np.empty((2, 0), np.int32))
    for k in range(candidates.shape[1]):
        candidate = candidates[PEER, k]
        if candidate != target:
            _offer_by_topic(overlay, rings, target, topics, candidate, candidates[AGE, k])
    return rings


@compiled(PACKED, int64, int64)
def _message_for(overlay: OverlayState, peer: int, target: int) -> Int32s:
    """The sender, then for each topic that it shares with the target the peers nearest to the
    target on both sides among those it knows.
    """
    rings = _rings_for(overlay, peer, target)
    message = np.empty((2, 1 + rings.size // 2), np.int32)
    message[PEER, 0], message[AGE, 0] = peer, 0
    place, count = overlay.place, 1
    place[peer] = 0
    for row in range(rings.shape[0]):
        for k in range(rings.shape[2]):
            candidate = rings[row, PEER, k]
            if candidate >= 0 and place[candidate] < 0:
                place[candidate] = count
                message[PEER, count], message[AGE, count] = candidate, rings[row, AGE, k]
                count += 1
    for k in range(count):
        place[message[PEER, k]] = -1
    return message[:, :count].copy()


@compiled(PACKED, int64)
def open_rings(overlay: OverlayState, peer: int) -> tuple[int, Int32s, int]:
    """(peer to exchange with, message, its bytes): the oldest ring neighbour, after peers that
    unsubscribed were removed and peers of the other layers added. -1 if there is none.
    """
    _drop_strangers(overlay, peer)
    learn(overlay, peer, overlay.vicinity[peer])
    learn(overlay, peer, overlay.cyclon[peer])
    target = _oldest(overlay, peer)
    overlay.awaited[peer] = target
    if target < 0:
        return -1, np.empty((2, 0), np.int32), 0
    message = _message_for(overlay, peer, target)
    return int(target), message, bytes_of(overlay.entry_bytes, message)


@compiled(PACKED, int64, VIEW)
def answer_rings(overlay: OverlayState, peer: int, received: Int32s) -> tuple[Int32s, int]:
    """(answer, its bytes) to the sender, from what was known before; then the received entries are
    added.
    """
    answer = _message_for(overlay, peer, received[PEER, 0])
    learn(overlay, peer, received)
    return answer, bytes_of(overlay.entry_bytes, answer)
