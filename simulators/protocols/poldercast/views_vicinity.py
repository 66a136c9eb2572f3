"""VICINITY's operations: nearness of peers, and the exchange of near ones."""

from __future__ import annotations

import numpy as np
from numba.core.types import int64

from vizpub.machine.compiled import compiled, population
from vizpub.model.arrays import Int32s, Int64s, Words
from vizpub.simulators.protocols.poldercast.views import (
    AGE,
    PEER,
    VIEW,
    WORDS,
    bytes_of,
    drop,
    entry_count,
    grow_older,
)
from vizpub.simulators.protocols.poldercast.views_overlay import PACKED, OverlayState, known_entries

_OVERLAP_UNIT, _PRIORITY_UNIT = 1 << 20, 1 << 40
"""The low 20 bits of a key are 2²⁰ − 1 − age, the next 20 the overlap, the rest the priority."""


@compiled(WORDS, int64[::1])
def _add_short(wishes: Words, lacks: Int64s) -> None:
    k = 0
    for word in range(wishes.shape[1]):
        bits = wishes[0, word]
        while bits != 0:
            rest = bits & (bits - np.uint64(1))
            for row in range(1, 1 + lacks[k]):
                wishes[row, word] |= bits ^ rest
            bits, k = rest, k + 1


@compiled(PACKED, int64)
def _wishes_of(overlay: OverlayState, peer: int) -> Words:
    """uint64[1 + k, words]: bits of all topics of a peer; then, in row i = 1 … k, of topics whose
    ring lacks i or more neighbours, so a topic's bit is set in as many rows as it lacks.
    """
    lacks = np.empty(overlay.held[peer], np.int64)
    most = 0
    rings, first = overlay.rings, overlay.first[peer]
    for k in range(lacks.size):
        lacks[k] = 0
        for place in range(rings.shape[2]):
            lacks[k] += rings[first + k, PEER, place] < 0
        most = max(most, lacks[k])
    profile = overlay.profiles[peer]
    wishes = np.zeros((1 + most, profile.size), np.uint64)
    wishes[0] = profile
    if most > 0:
        _add_short(wishes, lacks)
    return wishes


@compiled(WORDS, WORDS, int64, int64)
def _nearness(profiles: Words, wishes: Words, candidate: int, age: int) -> int:
    """Nearness of another peer to the peer with those wishes: by the missing ring neighbours that
    it could be, then by shared topics, then by its age.
    """
    shared = missing = 0
    for word in range(wishes.shape[1]):
        shared += population(profiles[candidate, word] & wishes[0, word])
    for row in range(1, wishes.shape[0]):
        for word in range(wishes.shape[1]):
            missing += population(profiles[candidate, word] & wishes[row, word])
    youth = max(0, _OVERLAP_UNIT - 1 - int(age))
    return missing * _PRIORITY_UNIT + shared * _OVERLAP_UNIT + youth


@compiled(PACKED, int64, VIEW, VIEW, int64)
def fill_with_nearest(
    overlay: OverlayState, target: int, candidates: Int32s, chosen: Int32s, begin: int
) -> int:
    """Put the candidates nearest to the target, nearest first, into `chosen` from `begin` to its
    end; returns where they end. Among equally near ones the first wins.
    """
    profiles, wishes = overlay.profiles, _wishes_of(overlay, target)
    width = chosen.shape[1]
    keys = np.empty(width, np.int64)
    end = begin
    for k in range(candidates.shape[1]):
        candidate, age = candidates[PEER, k], candidates[AGE, k]
        if candidate == target:
            continue
        key = _nearness(profiles, wishes, candidate, age)
        if end < width:
            end += 1
        elif end == begin or key <= keys[end - 1]:
            continue
        place = end - 1
        while place > begin and keys[place - 1] < key:
            keys[place] = keys[place - 1]
            chosen[PEER, place], chosen[AGE, place] = (
                chosen[PEER, place - 1],
                chosen[AGE, place - 1],
            )
            place -= 1
        keys[place], chosen[PEER, place], chosen[AGE, place] = key, candidate, age
    return end


@compiled(PACKED, int64, int64, int64)
def _message_for(overlay: OverlayState, peer: int, target: int, length: int) -> Int32s:
    """The sender, then the peers nearest to the target that it knows."""
    message = np.empty((2, length), np.int32)
    message[PEER, 0], message[AGE, 0] = peer, 0
    candidates = known_entries(overlay, peer, np.empty((2, 0), np.int32))
    end = fill_with_nearest(overlay, target, candidates, message, 1)
    return message[:, :end].copy()


@compiled(PACKED, int64, VIEW)
def merge_nearest(overlay: OverlayState, peer: int, received: Int32s) -> None:
    """Keep the nearest of all known and received peers."""
    view = overlay.vicinity[peer]
    candidates = known_entries(overlay, peer, received)
    end = fill_with_nearest(overlay, peer, candidates, view, 0)
    view[PEER, end:] = -1


@compiled(PACKED, int64, int64)
def open_nearest(overlay: OverlayState, peer: int, length: int) -> tuple[int, Int32s, int]:
    """(peer to exchange with, message, its bytes): the peer of the oldest entry, which is removed,
    or a peer of CYCLON if there is none. -1 if no peer is known.
    """
    view, random = overlay.vicinity[peer], overlay.cyclon[peer]
    oldest = grow_older(view)
    if oldest >= 0:
        target = view[PEER, oldest]
        drop(view, oldest)
    elif entry_count(random) > 0:
        target = random[PEER, 0]
    else:
        return -1, np.empty((2, 0), np.int32), 0
    message = _message_for(overlay, peer, target, length)
    return int(target), message, bytes_of(overlay.entry_bytes, message)


@compiled(PACKED, int64, VIEW, int64)
def answer_nearest(
    overlay: OverlayState, peer: int, received: Int32s, length: int
) -> tuple[Int32s, int]:
    """(answer, its bytes): the peers nearest to the sender; then the received ones are merged."""
    answer = _message_for(overlay, peer, received[PEER, 0], length)
    merge_nearest(overlay, peer, received)
    return answer, bytes_of(overlay.entry_bytes, answer)
