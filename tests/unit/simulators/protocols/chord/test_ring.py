"""Ids against hashlib's, computed from what the header of the reports says."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.words import naming
from vizpub.model.errors import UseError
from vizpub.simulators.protocols.chord.ring import ChordRing


def recomputed(header: dict[str, str], bits: int, name: str) -> int:
    digest = hashlib.new(header["id_hash"], (header["id_salt"] + name).encode()).hexdigest()
    return int(bin(int("1" + digest, 16))[3 : 3 + bits], 2)


@pytest.mark.parametrize(
    ("bits", "hash_"), [(12, "sha1"), (160, "sha1"), (161, "sha256"), (256, "sha256")]
)
def test_ids_are_the_first_bits_of_hashes_of_salted_names(bits: int, hash_: str) -> None:
    ring = ChordRing.of(5, bits, seed=7)
    assert ring.hash == hash_
    header = {"id_hash": ring.hash, "id_salt": "7/"}
    assert ring.salt == header["id_salt"]
    assert ring.ids == [recomputed(header, bits, f"peer/{peer}") for peer in range(5)]
    assert ring.key("topic/news") == recomputed(header, bits, "topic/news")


def test_ids_of_other_seeds_are_others() -> None:
    assert not set(ChordRing.of(50, 160, 1).ids) & set(ChordRing.of(50, 160, 2).ids)


def test_equal_ids_are_refused_with_a_way_out() -> None:
    with pytest.raises(UseError, match=naming(300, 8, "--bits")):
        ChordRing.of(300, 8, 1)
