"""Ids against hashlib's, computed from what the header of the reports says."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.words import naming
from vizpub.model.errors import UseError
from vizpub.simulators.protocols.chord.ring import ChordRing, count_between


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


@pytest.mark.parametrize("virtual", [1, 3])
def test_key_has_one_owner_the_first_place_from_it_on(virtual: int) -> None:
    ring = ChordRing.of(7, 16, seed=2)
    keys = ring.draw_keys(500)
    places = {id_: peer for peer, id_ in enumerate(ring.ids)}
    places |= {ring.key(f"peer/{p}/{v}"): p for p in range(7) for v in range(1, virtual)}
    owned = [0] * 7
    for key in keys:
        owned[places[min(places, key=lambda id_: (id_ - key) % ring.size)]] += 1
    assert ring.count_owned(keys, virtual) == owned


def test_keys_between_equal_places_are_all() -> None:
    assert count_between([1, 5, 9], 5, 5) == 3
    assert ChordRing.of(1, 16, seed=2).count_owned([4, 7]) == [2]


def test_keys_of_a_peer_are_spread_exponentially() -> None:
    """Stoica et al. 2003, Figures 8 and 9: ln 100 times the mean, and 1.6 times with 20 places."""
    ring = ChordRing.of(2000, 160, seed=1)
    keys = ring.draw_keys(100_000)
    ones, twenties = (sorted(ring.count_owned(keys, virtual)) for virtual in (1, 20))
    assert ones[1979] / 50 == pytest.approx(4.6, abs=0.45)
    assert ones[20] / 50 < 0.05
    assert twenties[1979] / 50 == pytest.approx(1.6, abs=0.15)
    assert twenties[20] / 50 == pytest.approx(0.5, abs=0.15)
