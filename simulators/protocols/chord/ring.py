"""Ids on Chord's ring: hashes of names that contain the run's seed, so that anybody can recompute
them, and with them the owner of each key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from vizpub.model.errors import UseError

_SHA1_BITS = 160


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
