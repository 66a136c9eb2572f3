"""Ids on Chord's ring: hashes of names that contain the run's seed, so that anybody can recompute
them, and with them the owner of each key.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from vizpub.model.errors import UseError
from vizpub.simulators.engine.costs import Costs

_SHA1_BITS = 160
_PLACE_S, _KEY_S = 4e-6, 7e-7
_PLACE_BYTES, _KEY_BYTES = 150, 60
"""Of a place on the ring and of a key, measured with 1,000 to a million places and 1,000 to
2 million keys.
"""


@dataclass(frozen=True)
class ChordRing:
    """The circle of ids of `bits` bits, with the id of each peer: `ids[peer]`."""

    bits: int
    seed: int
    ids: Sequence[int] = ()

    @classmethod
    def of(cls, peers: int, bits: int, seed: int) -> ChordRing:
        """The ring with the ids of the peers 0 … peers − 1. Raises: UseError if two are equal."""
        empty = cls(bits, seed)
        ids = [empty.key(f"peer/{peer}") for peer in range(peers)]
        if len(set(ids)) < peers:
            raise UseError(
                f"two of {peers} peers have the same id of {bits} bits; give more --bits"
            )
        return cls(bits, seed, ids)

    @property
    def hash(self) -> str:
        """The hash function, by hashlib's name."""
        return "sha1" if self.bits <= _SHA1_BITS else "sha256"

    @property
    def salt(self) -> str:
        """The beginning of all names that are hashed."""
        return f"{self.seed}/"

    @property
    def size(self) -> int:
        """Number of ids."""
        return 1 << self.bits

    def key(self, name: str) -> int:
        """The first bits of the hash of a name with the salt: its position on the ring."""
        digest = hashlib.new(self.hash, (self.salt + name).encode(), usedforsecurity=False)
        return int.from_bytes(digest.digest(), "big") >> (8 * digest.digest_size - self.bits)

    def draw_keys(self, count: int) -> list[int]:
        """Random keys, ascending; the same for the same seed."""
        random = Random(f"{self.salt}keys")
        return sorted(random.getrandbits(self.bits) for _ in range(count))

    def count_owned(self, keys: Sequence[int], virtual: int = 1) -> list[int]:
        """The number of the ascending `keys` that each peer owns if it is on the ring `virtual`
        times, under its own name and `peer/17/1` and so on.
        """
        points = [(id_, peer) for peer, id_ in enumerate(self.ids)]
        points += [
            (self.key(f"peer/{peer}/{copy}"), peer)
            for peer in range(len(self.ids))
            for copy in range(1, virtual)
        ]
        points.sort()
        owned = [0] * len(self.ids)
        for at, (id_, peer) in enumerate(points):
            owned[peer] += count_between(keys, points[at - 1][0], id_)
        return owned


def ring_costs(places: int, keys: int, rings: int) -> Costs:
    """Estimate the costs of counting the keys of rings, one after the other."""
    seconds = rings * (places * _PLACE_S + keys * _KEY_S)
    return Costs(seconds, places * _PLACE_BYTES + keys * _KEY_BYTES)


def count_between(keys: Sequence[int], begin: int, end: int) -> int:
    """The number of the ascending `keys` on the ring after `begin`, up to `end`; all if the two are
    equal.
    """
    count = bisect_right(keys, end) - bisect_right(keys, begin)
    return count if begin < end else len(keys) + count
