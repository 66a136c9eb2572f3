"""The state of all peers of an overlay: their profiles and the views of three layers.

Compiled operations take it as one argument, `overlay.packed`. In plain Python (see
`compiled.IS_PLAIN`) that is the overlay itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import int64
from numba.experimental import structref

from vizpub.machine.compiled import IS_PLAIN, compiled
from vizpub.model.arrays import Int32s, Int64s, Words
from vizpub.simulators.protocols.poldercast.views import (
    AGE,
    DRAWS,
    ENTRY_BYTES,
    NUMBERS,
    PEER,
    PROFILE_BYTES,
    PROFILE_TOPIC_BYTES,
    VIEW,
    VIEWS,
    WORDS,
    drop,
    empty_views,
    entry_count,
    place_of,
    seed_state,
)

_FIELDS: dict[str, Any] = {
    "cyclon": VIEWS,
    "vicinity": VIEWS,
    "rings": VIEWS,
    "first": NUMBERS,
    "held": NUMBERS,
    "awaited": NUMBERS,
    "position": NUMBERS,
    "profiles": WORDS,
    "entry_bytes": NUMBERS,
    "place": NUMBERS,
    "draws": DRAWS,
}
"""The fields of an OverlayState that compiled operations use."""


@structref.register
class _PackedType(types.StructRef):
    """The type of `_Packed`."""


PACKED: Any = _PackedType(list(_FIELDS.items()))  # type: ignore[no-untyped-call]


class _Packed(structref.StructRefProxy):
    """The arrays of an OverlayState as one argument."""


_new: Any = structref.new
structref.define_boxing(_PackedType, _Packed)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Capacities:
    """Capacities of the layers in entries; 0 = no such layer."""

    cyclon: int = 0
    vicinity: int = 0
    ring: int = 0
    """Successors in a ring, and as many predecessors."""


class OverlayState:
    """The state of all peers.

    A peer's rings are the rows `first[peer]` to `first[peer] + held[peer] − 1` of `rings`, in
    the order of its topics. A ring is a view of 2·side entries: its successors, the nearest
    first, then its predecessors, the nearest first; each side ends with -1 if it has fewer. If a
    topic has few subscribers, a peer may be on both sides.

    The profile of an entry's peer (its topics, and which of its rings lack neighbours) is looked
    up, not copied: a holder always has the latest profile. A peer that is down keeps its profile
    until it joins again, so the profile does not show that it is down.
    """

    def __init__(self, peers: int, topics: int, capacities: Capacities, random: Random) -> None:
        self.cyclon = empty_views(peers, capacities.cyclon)
        self.vicinity = empty_views(peers, capacities.vicinity)
        self.rings = empty_views(peers, 2 * capacities.ring)
        self.first = np.zeros(peers, np.int32)
        self.held = np.zeros(peers, np.int32)
        self.awaited = np.full(peers, -1, np.int32)
        """The peer that was asked last in RINGS."""
        self.position: Int32s = np.array(random.sample(range(peers), peers), np.int32)
        """Position of each peer in the order of the rings: random, as by a hash of its name. A
        peer's number may depend on when it joins or on its friends; its position must not."""
        self.profiles: Words = np.zeros((peers, max(1, (topics + 63) // 64)), np.uint64)
        """Bit t % 64 of word t // 64 is set if the peer subscribes to topic t."""
        self.entry_bytes = np.full(peers, ENTRY_BYTES + PROFILE_BYTES, np.int32)
        self.place = np.full(peers, -1, np.int32)
        """Work area of operations; -1 before and after each."""
        self.draws: Int64s = seed_state(random)
        self.topics: list[list[int]] = [[] for _ in range(peers)]
        """The topics of each peer, in ascending order."""
        self._room = [0] * peers
        self._rows = 0
        self.packed: Any = self._pack()

    def order_by_number(self) -> None:
        """Use the peers' numbers as positions in the rings, as in the papers' figures."""
        self.position[:] = np.arange(self.position.size)

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Reset the peer: with these topics (ascending, distinct) and empty views."""
        self.cyclon[peer] = self.vicinity[peer] = self.awaited[peer] = -1
        self._make_room(peer, len(topics))
        self.topics[peer] = list(topics)
        self.rings[self.first[peer] : self.first[peer] + len(topics)] = -1
        self._describe(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """Add a topic, with an empty ring."""
        topics = self.topics[peer]
        place = bisect_left(topics, topic)
        if place < len(topics) and topics[place] == topic:
            return
        rings = self.rings_of(peer).copy()
        self._make_room(peer, len(topics) + 1)
        topics.insert(place, topic)
        self._describe(peer)
        self.rings_of(peer)[:] = np.insert(rings, place, -1, axis=0)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Remove a topic with its ring."""
        topics = self.topics[peer]
        if topic not in topics:
            return
        place = topics.index(topic)
        rings = self.rings_of(peer).copy()
        del topics[place]
        self._describe(peer)  # from here on, rings_of has one row less
        self.rings_of(peer)[:] = np.delete(rings, place, axis=0)

    def forget(self, peer: int, other: int) -> None:
        """Remove another peer from all views of a peer."""
        forget(self.packed, peer, other)

    def rings_of(self, peer: int) -> Int32s:
        """int32[topics, 2, 2·side]: the rings of a peer, not copied."""
        return self.rings[self.first[peer] : self.first[peer] + self.held[peer]]

    def _make_room(self, peer: int, rows: int) -> None:
        """Reserve rows for a peer's rings; new rows are empty. Rows double, so there are never more
        abandoned than used ones.
        """
        if rows <= self._room[peer]:
            return
        self._room[peer] = rows if not self._room[peer] else 2 * rows
        self.first[peer] = self._rows
        self._rows += self._room[peer]
        if self._rows > len(self.rings):
            more = empty_views(max(self._rows, len(self.rings)), self.rings.shape[2])
            self.rings = np.concatenate([self.rings, more])
            self.packed = self._pack()

    def _describe(self, peer: int) -> None:
        """Update a peer's profile from its topics."""
        topics = self.topics[peer]
        self.held[peer] = len(topics)
        self.profiles[peer] = 0
        for topic in topics:
            self.profiles[peer, topic // 64] |= np.uint64(1) << np.uint64(topic % 64)
        profile = PROFILE_BYTES + PROFILE_TOPIC_BYTES * len(topics)
        self.entry_bytes[peer] = ENTRY_BYTES + profile

    def _pack(self) -> Any:
        return self if IS_PLAIN else _pack(tuple(getattr(self, name) for name in _FIELDS))


@compiled(types.Tuple(list(_FIELDS.values())))  # type: ignore[no-untyped-call]
def _pack(arrays: tuple[Any, ...]) -> Any:
    packed = _new(PACKED)
    (
        packed.cyclon,
        packed.vicinity,
        packed.rings,
        packed.first,
        packed.held,
        packed.awaited,
        packed.position,
        packed.profiles,
        packed.entry_bytes,
        packed.place,
        packed.draws,
    ) = arrays
    return packed


@compiled(VIEW, int64)
def forget_in_ring(ring: Int32s, other: int) -> None:
    """Remove a peer from both sides of a ring; the peers after it move up."""
    side = ring.shape[1] // 2
    for begin in (0, side):
        end = begin
        for place in range(begin, begin + side):
            if ring[PEER, place] != other:
                ring[PEER, end], ring[AGE, end] = ring[PEER, place], ring[AGE, place]
                end += 1
        ring[PEER, end : begin + side] = -1


@compiled(PACKED, int64, int64)
def forget(overlay: OverlayState, peer: int, other: int) -> None:
    """Remove another peer from all views of a peer."""
    for view in (overlay.cyclon[peer], overlay.vicinity[peer]):
        place = place_of(view, other)
        if place >= 0:
            drop(view, place)
    for row in range(overlay.first[peer], overlay.first[peer] + overlay.held[peer]):
        forget_in_ring(overlay.rings[row], other)


@compiled(VIEW, int64, NUMBERS, VIEW, int64)
def _gather(view: Int32s, width: int, place: Int32s, entries: Int32s, count: int) -> int:
    """Add the entries of a view to those found, the youngest of each peer."""
    for k in range(width):
        candidate = view[PEER, k]
        if candidate < 0:
            continue
        if place[candidate] < 0:
            place[candidate] = count
            entries[PEER, count], entries[AGE, count] = candidate, view[AGE, k]
            count += 1
        elif view[AGE, k] < entries[AGE, place[candidate]]:
            entries[AGE, place[candidate]] = view[AGE, k]
    return count


@compiled(PACKED, int64, VIEW)
def known_entries(overlay: OverlayState, peer: int, received: Int32s) -> Int32s:
    """All peers that a peer knows from its views and a message: int32[2, entries], the youngest
    entry of each.
    """
    cyclon, vicinity = overlay.cyclon[peer], overlay.vicinity[peer]
    first, held = overlay.first[peer], overlay.held[peer]
    rings, place = overlay.rings, overlay.place
    room = received.shape[1] + cyclon.shape[1] + vicinity.shape[1] + held * rings.shape[2]
    entries, count = np.empty((2, room), np.int32), 0
    count = _gather(received, received.shape[1], place, entries, count)
    count = _gather(vicinity, entry_count(vicinity), place, entries, count)
    count = _gather(cyclon, entry_count(cyclon), place, entries, count)
    for row in range(first, first + held):
        count = _gather(rings[row], rings.shape[2], place, entries, count)
    others = 0
    for k in range(count):
        other = entries[PEER, k]
        place[other] = -1
        if other != peer:
            entries[PEER, others], entries[AGE, others] = other, entries[AGE, k]
            others += 1
    return entries[:, :others].copy()
