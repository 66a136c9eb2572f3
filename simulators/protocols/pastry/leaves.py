"""Ids on Pastry's ring, and the leaf set: a peer's nearest on either side.

Ids and keys have 64 bits (Pastry: 128): among 10⁵ peers two share one with a probability of
3·10⁻¹⁰, and prefix routing uses about log₁₆ N of their digits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

_ID_BITS = 64


@dataclass(frozen=True)
class PastryRing:
    """The circle of ids, with the id of each peer: `ids[peer]`; digits of `b` bits."""

    b: int
    ids: Sequence[int]
    salt: int

    @classmethod
    def of(cls, peers: int, b: int, salt: int) -> PastryRing:
        """The ids of the peers 0 … peers − 1 are hashes of their numbers and the salt."""
        empty = cls(b, (), salt)
        return cls(b, [empty.key(f"peer/{peer}") for peer in range(peers)], salt)

    @cached_property
    def bits(self) -> int:
        """Bits of an id: as many whole digits as fit."""
        return _ID_BITS // self.b * self.b

    @cached_property
    def size(self) -> int:
        """Number of ids."""
        return 1 << self.bits

    def key(self, name: str) -> int:
        """The hash of a name: its position on the ring."""
        digest = blake2b(name.encode(), digest_size=8, salt=self.salt.to_bytes(16, "big"))
        return int.from_bytes(digest.digest(), "big") >> (_ID_BITS - self.bits)

    def distance(self, a: int, b: int) -> int:
        """Distance of two ids, the shorter way round."""
        offset = (a - b) % self.size
        return min(offset, self.size - offset)

    def shared_digits(self, a: int, b: int) -> int:
        """Number of leading digits that two ids share."""
        return (self.bits - (a ^ b).bit_length()) // self.b


class LeafView(NamedTuple):
    """A leaf set as it is sent to others. It is the same object as long as nothing changes."""

    right: tuple[int, ...]
    """Peers that follow on the ring, nearest first."""
    left: tuple[int, ...]
    """Peers that precede."""
    right_reach: int
    """Distance of the farthest; the whole ring while a side is not full."""
    left_reach: int

    @property
    def members(self) -> tuple[int, ...]:
        """The distinct peers in it."""
        return tuple(dict.fromkeys(self.right + self.left))


class LeafExchange(NamedTuple):
    """The last leaf set received from a leaf."""

    theirs: LeafView
    ours: LeafView
    """This peer's leaf set after that exchange."""
    time_us: int


class LeafSet:
    """The nearest peers on either side of one, at most `half` on each.

    In a small overlay a peer is on both sides: until a side is full, every peer fits.
    """

    __slots__ = (
        *("half", "_ids", "_left_offsets", "_mask", "_own", "_peer", "_right_offsets", "_size"),
        *("_view", "left", "left_reach", "right", "right_reach"),
    )

    def __init__(self, ring: PastryRing, peer: int, half: int) -> None:
        self._ids, self._size, self._mask = ring.ids, ring.size, ring.size - 1
        self._peer, self._own, self.half = peer, ring.ids[peer], half
        self.right: list[int] = []
        self.left: list[int] = []
        self._right_offsets: list[int] = []
        self._left_offsets: list[int] = []
        self.right_reach = self.left_reach = self._size
        """Distance up to which a side is known; the whole ring until it is full."""
        self._view: LeafView | None = None

    def __contains__(self, peer: int) -> bool:
        return peer in self.right or peer in self.left

    @property
    def view(self) -> LeafView:
        """The leaf set as it is sent to others."""
        if self._view is None:
            sides = tuple(self.right), tuple(self.left)
            self._view = LeafView(*sides, self.right_reach, self.left_reach)
        return self._view

    def fits(self, peer: int) -> bool:
        """Return True if the peer belongs to the nearest known ones and is not in the set yet."""
        offset = (self._ids[peer] - self._own) & self._mask
        return offset < self.right_reach or self._size - offset < self.left_reach

    def missing_in(self, view: LeafView, whose: int) -> list[int]:
        """Peers of this leaf set that belong into the leaf set of another peer but are missing."""
        base, missing = self._ids[whose], []
        for peer in self.view.members:
            offset = (self._ids[peer] - base) & self._mask
            is_near = offset < view.right_reach or self._size - offset < view.left_reach
            if is_near and peer != whose and peer not in view.right and peer not in view.left:
                missing.append(peer)
        return missing

    def add(self, peer: int) -> bool:
        """Add the peer if it is nearer than others; returns whether anything changed."""
        offset = (self._ids[peer] - self._own) & self._mask
        if offset >= self.right_reach and self._size - offset >= self.left_reach:
            return False
        is_new = self._insert(self.right, self._right_offsets, peer, offset)
        is_new |= self._insert(self.left, self._left_offsets, peer, self._size - offset)
        return is_new and self._update_reach()

    def remove(self, peer: int) -> list[int]:
        """Remove the peer; returns the farthest remaining peers on its sides."""
        farthest = []
        for side, offsets in (
            (self.right, self._right_offsets),
            (self.left, self._left_offsets),
        ):
            if peer in side:
                place = side.index(peer)
                del side[place], offsets[place]
                farthest += side[-1:]
                self._update_reach()
        return list(dict.fromkeys(farthest))

    def closest(self, offset: int) -> int:
        """The peer nearest to the id `offset` to the right of the peer's id: the peer itself or one
        of the set. The id must be within reach.
        """
        side, offsets = self.right, self._right_offsets
        if offset > self.right_reach:
            side, offsets, offset = self.left, self._left_offsets, self._size - offset
        place = bisect_left(offsets, offset)
        inner = offset - offsets[place - 1] if place else offset
        # Beyond a side that is not full, the ring closes at the peer itself.
        outer = (offsets[place] if place < len(offsets) else self._size) - offset
        if inner <= outer:
            return side[place - 1] if place else self._peer
        return side[place] if place < len(offsets) else self._peer

    def _insert(self, side: list[int], offsets: list[int], peer: int, offset: int) -> bool:
        place = bisect_left(offsets, offset)
        if place == self.half or (place < len(offsets) and offsets[place] == offset):
            return False
        side.insert(place, peer)
        offsets.insert(place, offset)
        del side[self.half :], offsets[self.half :]
        return True

    def _update_reach(self) -> bool:
        is_full = len(self.right) == self.half
        self.right_reach = self._right_offsets[-1] if is_full else self._size
        is_full = len(self.left) == self.half
        self.left_reach = self._left_offsets[-1] if is_full else self._size
        self._view = None
        return True
