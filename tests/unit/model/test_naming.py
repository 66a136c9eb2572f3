"""Short forms of names, against a search by a plain loop."""

from __future__ import annotations

from random import Random

import pytest

from model.errors import AmbiguousName, UnknownName
from model.naming import place_of

PEERS = [
    "12D3KooWAlpha",
    "12D3KooWBeta",
    "12D3KooWBetb",
    "3",
    "#1",
    "ends…here",
    "news",
    "news/sport",
]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("12D3KooWBeta", "12D3KooWBeta"),
        ("12D3KooWA", "12D3KooWAlpha"),
        ("Alpha", "12D3KooWAlpha"),
        ("12D…pha", "12D3KooWAlpha"),
        ("12D3...etb", "12D3KooWBetb"),
        ("…Beta", "12D3KooWBeta"),
        ("#2", "12D3KooWBetb"),
        ("#1", "#1"),
        ("3", "3"),
        ("ends…here", "ends…here"),
        ("news", "news"),
        ("sport", "news/sport"),
    ],
)
def test_short_form_means_the_one_name_that_has_it(given: str, meant: str) -> None:
    assert PEERS[place_of("peer", given, PEERS)] == meant


@pytest.mark.parametrize("given", ["12D3", "12D…", "12D3KooWBet", "…"])
def test_form_of_several_names_is_refused_with_some_of_them(given: str) -> None:
    with pytest.raises(AmbiguousName, match="more than one peer: ") as caught:
        place_of("peer", given, PEERS, "vizpub runs show monday peers")
    assert str(caught.value).endswith("give more of it (see: vizpub runs show monday peers)")
    assert sum(name in str(caught.value) for name in PEERS) <= 4


@pytest.mark.parametrize(
    "given", ["", "12D3KooWGamma", "#8", "#99999999999999999999", "a…z", "KooW"]
)
def test_form_of_no_name_is_refused(given: str) -> None:
    with pytest.raises(UnknownName):
        place_of("peer", given, PEERS)


def test_ends_that_overlap_are_no_name() -> None:
    with pytest.raises(UnknownName):
        place_of("peer", "abc…cde", ["abcde"])
    assert place_of("peer", "abc…de", ["abcde"]) == 0


def test_unique_beginnings_and_ends_of_random_names_are_found() -> None:
    print("seed 3")
    random = Random(3)
    names = sorted({"".join(random.choices("ab", k=random.randrange(1, 9))) for _ in range(60)})
    for name in names:
        for cut in range(1, len(name)):
            for given in (name[:cut], name[cut:]):
                if given in names:
                    assert names[place_of("peer", given, names)] == given
                    continue
                having = [n for n in names if n[: len(given)] == given or n[-len(given) :] == given]
                if len(having) == 1:
                    assert names[place_of("peer", given, names)] == name
                else:
                    with pytest.raises(AmbiguousName):
                        place_of("peer", given, names)
