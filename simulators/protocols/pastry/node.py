"""The state of one Pastry peer, and the next hop for a key."""

from __future__ import annotations

from typing import Any

from vizpub.simulators.protocols.pastry.leaves import LeafExchange, LeafSet, PastryRing
from vizpub.simulators.protocols.routing import NOBODY


class PastryNode:
    """The state of a peer (Rowstron and Druschel 2001, section 2): leaf set, routing table and
    neighbourhood set, and suspected peers.

    `table` has an entry per (shared digits, next digit), numbered `shared << b | digit`.
    """

    __slots__ = (
        *("asked", "doubted", "failed", "is_placed", "is_ready", "leaves", "near", "peer"),
        *("ring", "room", "table", "exchanges", "waiting"),
        *("_b", "_bits", "_mask", "_own", "_size"),
    )

    def __init__(self, ring: PastryRing, peer: int, leaf_set: int, neighbourhood: int) -> None:
        self.ring, self.peer, self.room = ring, peer, neighbourhood
        self._own, self._b, self._bits = ring.ids[peer], ring.b, ring.bits
        self._size, self._mask = ring.size, ring.size - 1
        self.leaves = LeafSet(ring, peer, leaf_set // 2)
        self.table: dict[int, int] = {}
        self.near: dict[int, int] = {}
        """The neighbourhood set: peers with short round trips, and these in µs."""
        self.asked: dict[int, int] = {}
        """Peers with a pending probe, and its time."""
        self.doubted: set[int] = set()
        """Peers that did not acknowledge a message; not used for routes until they answer."""
        self.failed: dict[int, int] = {}
        """Peers that did not answer, and the time until which they are not probed if named."""
        self.exchanges: dict[int, LeafExchange] = {}
        """The last exchange of leaf sets with each leaf."""
        self.is_placed = False
        """Whether it has received its place on the ring."""
        self.is_ready = False
        """Whether its leaf set is complete, so that it may answer for keys."""
        self.waiting: list[Any] = []
        """Joins of others that arrived before it was ready."""

    @property
    def is_alone(self) -> bool:
        """True if it has no leaves."""
        return not self.leaves.right

    def slot(self, key: int) -> int:
        """Position of the next hop for a key in the routing table; the key is not the peer's id."""
        shared = (self._bits - (key ^ self._own).bit_length()) // self._b
        digit = key >> (self._bits - self._b * (shared + 1))
        return shared << self._b | digit & ((1 << self._b) - 1)

    def next_hop(self, key: int, avoid: int = NOBODY) -> int:
        """The next hop of a message for the key; the peer itself at its destination.

        Within the leaf set's reach the numerically closest peer; otherwise a peer that shares one
        digit more; if there is none, or it is doubted, any closer peer (section 2.3). The closest
        leaf is used even if it is doubted: others would regard themselves as the destination.
        """
        offset = (key - self._own) & self._mask
        leaves = self.leaves
        if offset <= leaves.right_reach or self._size - offset <= leaves.left_reach:
            to = leaves.closest(offset)
            return to if to != avoid else self._closest(key, [self.peer, *leaves.view.members], to)
        to = self.table.get(self.slot(key), NOBODY)
        is_usable = to not in (NOBODY, avoid) and to not in self.doubted
        return to if is_usable else self._detour(key, avoid)

    def _detour(self, key: int, avoid: int) -> int:
        ring, ids = self.ring, self.ring.ids
        shared, own_distance = ring.shared_digits(self._own, key), ring.distance(self._own, key)
        closer = [
            peer
            for peer in self.known_peers()
            if peer not in self.doubted
            and ring.shared_digits(ids[peer], key) >= shared
            and ring.distance(ids[peer], key) < own_distance
        ]
        return self._closest(key, closer, avoid)

    def _closest(self, key: int, peers: list[int], avoid: int) -> int:
        ring, ids = self.ring, self.ring.ids
        able = (peer for peer in peers if peer != avoid)
        return min(able, key=lambda peer: ring.distance(ids[peer], key), default=self.peer)

    def known_peers(self) -> list[int]:
        """The distinct peers in the state."""
        return list(
            dict.fromkeys([*self.leaves.right, *self.leaves.left, *self.table.values(), *self.near])
        )

    def knows(self, peer: int) -> bool:
        """Return True if the peer is in the state."""
        return (
            self.table.get(self.slot(self.ring.ids[peer])) == peer
            or peer in self.leaves
            or peer in self.near
        )

    def row(self, shared: int) -> list[int]:
        """Entries of the routing table that share that many digits with the peer."""
        first = shared << self._b
        slots = range(first, first + (1 << self._b))
        return [self.table[slot] for slot in slots if slot in self.table]

    def add(self, peer: int) -> bool:
        """Add a peer that sent a message, if there is room; returns whether it is a new leaf."""
        is_leaf = self.leaves.add(peer)
        self.table.setdefault(self.slot(self.ring.ids[peer]), peer)
        return is_leaf

    def measure(self, peer: int, round_trip_us: int) -> None:
        """Prefer near peers: the neighbourhood set keeps the nearest measured peers, and the
        routing table prefers them to others.
        """
        near = self.near
        near[peer] = min(near.get(peer, round_trip_us), round_trip_us)
        if len(near) > self.room:
            # Among equally near peers the last one goes, so that a full set is stable.
            del near[max(reversed(near), key=near.__getitem__)]
        slot = self.slot(self.ring.ids[peer])
        present = self.table.get(slot, peer)
        # A peer that is not in a full set is not nearer than its farthest.
        farthest_us = max(near.values(), default=0) if len(near) == self.room else 0
        if peer in near and near.get(present, farthest_us) > near[peer]:
            self.table[slot] = peer

    def remove(self, peer: int) -> list[int]:
        """Forget a peer; returns the last leaves of the sides where it leaves a gap."""
        slot = self.slot(self.ring.ids[peer])
        if self.table.get(slot) == peer:
            del self.table[slot]
        self.near.pop(peer, None)
        self.exchanges.pop(peer, None)
        self.asked.pop(peer, None)
        self.doubted.discard(peer)
        return self.leaves.remove(peer)
