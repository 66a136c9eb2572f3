"""Views, the entries that a peer holds of other peers, and CYCLON's operations on them.

An entry is a peer and its *age*: the number of cycles since that peer created the entry. The views
of a layer are one array int32[peers, 2, capacity]: for each peer a row of peers and a row of ages,
entries first, then -1. A message is int32[2, entries] of the same form, and its first entry is its
sender, of age 0, unless stated otherwise.

Sizes in bytes, for all gossip:

| part | bytes | is |
| --- | --- | --- |
| header | 44 | the transport's (28), kind and flags (2), entries (2), sender (8), checksum (4) |
| entry | 16 | a peer's id (8), address and port (6), age (2) |
| its profile, as a layer | 2 + 5 a topic | of each its id (4), ring neighbours missing (1) |
"""

from __future__ import annotations

from random import Random

import numpy as np
from numba.core.types import int32, int64, uint64

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Int32s, Int64s
from vizpub.simulators.engine.network import HEADER_BYTES

ENTRY_BYTES = 16
PROFILE_BYTES = 2
PROFILE_TOPIC_BYTES = 5

PEER, AGE = 0, 1
"""The two rows of a view and of a message."""

VIEWS, VIEW, NUMBERS = int32[:, :, ::1], int32[:, ::1], int32[::1]
WORDS, DRAWS = uint64[:, ::1], int64[::1]

_LOW = 0xFFFFFFFF


def empty_views(peers: int, capacity: int) -> Int32s:
    """Views without entries."""
    return np.full((peers, 2, capacity), -1, np.int32)


def seed_state(random: Random) -> Int64s:
    """A state for `below`."""
    return np.array([random.randrange(1, 1 << 32) for _ in range(4)], np.int64)


def entries(view: Int32s) -> list[int]:
    """The peers of one view."""
    peers: list[int] = view[PEER].tolist()
    return peers[: peers.index(-1)] if -1 in peers else peers


@compiled(DRAWS, int64)
def below(draws: Int64s, bound: int) -> int:
    """A random number of 0 … bound − 1; `draws` is the state of the generator (bound < 2³¹).

    Marsaglia, Xorshift RNGs, 2003: the one of 128 bits.
    """
    mixed = draws[0] ^ ((draws[0] << 11) & _LOW)
    draws[0], draws[1], draws[2] = draws[1], draws[2], draws[3]
    draws[3] = draws[3] ^ (draws[3] >> 19) ^ mixed ^ (mixed >> 8)
    drawn: int = (draws[3] * bound) >> 32
    return drawn


@compiled(VIEW)
def entry_count(view: Int32s) -> int:
    """Number of entries of a view."""
    count = 0
    while count < view.shape[1] and view[PEER, count] >= 0:
        count += 1
    return count


@compiled(VIEW, int64)
def place_of(view: Int32s, peer: int) -> int:
    """Position of a peer in a view; -1 if it is not there."""
    for place in range(view.shape[1]):
        if view[PEER, place] == peer:
            return place
    return -1


@compiled(VIEW, int64)
def drop(view: Int32s, place: int) -> None:
    """Remove an entry; the last one takes its place."""
    last = entry_count(view) - 1
    view[PEER, place], view[AGE, place] = view[PEER, last], view[AGE, last]
    view[PEER, last] = -1


@compiled(VIEWS, int64, int64)
def insert(views: Int32s, peer: int, other: int) -> None:
    """Add an entry of age 0 to the peer's view, if it is new and there is room."""
    view = views[peer]
    count = entry_count(view)
    if count < view.shape[1] and other != peer and place_of(view, other) < 0:
        view[PEER, count], view[AGE, count] = other, 0


@compiled(VIEW)
def grow_older(view: Int32s) -> int:
    """Age all entries by a cycle; returns the position of the oldest one, -1 if there is none."""
    oldest = -1
    for place in range(entry_count(view)):
        view[AGE, place] += 1
        if oldest < 0 or view[AGE, place] > view[AGE, oldest]:
            oldest = place
    return oldest


@compiled(NUMBERS, VIEW)
def bytes_of(entry_bytes: Int32s, message: Int32s) -> int:
    """Bytes of a message; `entry_bytes` has the bytes of an entry by its peer."""
    size = HEADER_BYTES
    for k in range(message.shape[1]):
        size += int(entry_bytes[message[PEER, k]])
    return size


@compiled(VIEW, DRAWS, int64, int64, VIEW)
def _sample(view: Int32s, draws: Int64s, skipped: int, wanted: int, message: Int32s) -> None:
    """Fill the last `wanted` entries of a message with random ones of a view, but none of its first
    `skipped`. In the view, the drawn ones move to the positions after these.
    """
    count = entry_count(view)
    begin = message.shape[1] - wanted
    for k in range(wanted):
        place = skipped + k
        chosen = place + below(draws, count - place)
        for row in (PEER, AGE):
            value = view[row, chosen]
            view[row, chosen] = view[row, place]
            view[row, place] = value
            message[row, begin + k] = value


@compiled(VIEWS, int64, VIEW, VIEW, int64)
def merge_shuffle(views: Int32s, peer: int, received: Int32s, sent: Int32s, reserved: int) -> None:
    """Insert entries that are new: into free places except for the last `reserved`, then over
    the sent ones.
    """
    view = views[peer]
    count, room, replaced = entry_count(view), views.shape[2] - reserved, 0
    for k in range(received.shape[1]):
        entry = received[PEER, k]
        if entry == peer or place_of(view, entry) >= 0:
            continue
        place = -1
        if count < room:
            place, count = count, count + 1
        while place < 0 and replaced < sent.shape[1]:
            place = place_of(view, sent[PEER, replaced])
            replaced += 1
        if place < 0:
            return
        view[PEER, place], view[AGE, place] = entry, received[AGE, k]


@compiled(VIEWS, NUMBERS, DRAWS, NUMBERS, int64, int64)
def open_shuffle(
    views: Int32s, lent: Int32s, draws: Int64s, entry_bytes: Int32s, peer: int, length: int
) -> tuple[int, Int32s, int]:
    """(peer to shuffle with, message, its bytes): the peer of the oldest entry, which is removed,
    gets the peer itself and length − 1 random entries. -1 if the view is empty.

    The random entries are `lent` until the answer or the next shuffle: they are first in the view.
    """
    view = views[peer]
    oldest = grow_older(view)
    if oldest < 0:
        return -1, np.empty((2, 0), np.int32), 0
    target = view[PEER, oldest]
    drop(view, oldest)
    others = min(length - 1, entry_count(view))
    message = np.empty((2, 1 + others), np.int32)
    message[PEER, 0], message[AGE, 0] = peer, 0
    _sample(view, draws, 0, others, message)
    lent[peer] = others
    return int(target), message, bytes_of(entry_bytes, message)


@compiled(VIEWS, NUMBERS, DRAWS, int64, VIEW, int64)
def answer_shuffle(
    views: Int32s, lent: Int32s, draws: Int64s, peer: int, received: Int32s, length: int
) -> Int32s:
    """The answer: random entries of the view; then the received ones are inserted.

    The answer does not begin with its sender. A peer whose own shuffle is pending sends none
    of its lent entries, and keeps the place of the peer that it asked free.
    """
    view, lent_entries = views[peer], int(lent[peer])
    others = max(0, min(length, entry_count(view) - lent_entries))
    answer = np.empty((2, others), np.int32)
    _sample(view, draws, lent_entries, others, answer)
    merge_shuffle(views, peer, received, answer, min(lent_entries, 1))
    return answer
