"""Short forms of names, against a search by a plain loop."""

from __future__ import annotations

from random import Random

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.support.words import naming
from vizpub.model.errors import AmbiguousName, UnknownName
from vizpub.model.naming import beginnings, captions, place_of

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
    with pytest.raises(AmbiguousName, match=naming(f"'{given}'")) as caught:
        place_of("peer", given, PEERS, "vizpub sql monday 'FROM peers'")
    assert str(caught.value).endswith("give more of it (see: vizpub sql monday 'FROM peers')")
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


def test_caption_is_as_much_of_a_long_name_as_tells_it_from_the_others() -> None:
    assert captions(["12D3KooWAlpha", "12D3KooWBeta1", "news"]) == ["…lpha", "…eta1", "news"]
    assert captions(["12D3KooWAlpha1", "12D3KooWBeta1a1"]) == ["…pha1", "…a1a1"]
    assert captions(["12D3KooW-a-1", "12D3KooW-a-12", "12D3KooW-b-12"]) == [
        "12D3KooW-a-1", "…a-12", "…b-12",
    ]  # fmt: skip
    hosts = ["node7.example.org", "node8.example.org"]
    assert captions(hosts) == ["node7…", "node8…"]
    alike = ["same-beginning-1-same-ending", "same-beginning-2-same-ending"]
    assert captions(alike) == ["same…-ending"] * 2


@hypothesis.given(st.lists(st.text("ab/.é", max_size=30), max_size=8, unique=True))
def test_caption_fits_and_one_that_no_other_has_means_its_name(names: list[str]) -> None:
    shown = captions(names)
    assert all(len(caption) <= 12 for caption in shown)
    for name, caption in zip(names, shown, strict=True):
        if caption.startswith("…") and shown.count(caption) == 1:
            assert names[place_of("peer", caption, names)] == name


def test_beginning_is_as_much_of_a_long_name_as_means_it_alone() -> None:
    ids = [f"12D3KooW{peer}{'x' * 30}" for peer in ("Alpha", "Alphb", "Beta1")]
    forms = ["12D3KooWAlpha", "12D3KooWAlphb", "12D3KooWBeta"]
    assert beginnings([*ids, "news", ids[0][:9]]) == [*forms, "news", "12D3KooWA"]


@hypothesis.given(st.lists(st.text("ab", max_size=40), max_size=12, unique=True))
def test_beginning_means_the_name_that_it_begins(names: list[str]) -> None:
    for name, form in zip(names, beginnings(names), strict=True):
        assert name.startswith(form)
        assert names[place_of("peer", form, names)] == name
