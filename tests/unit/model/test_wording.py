"""Amounts and names in messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vizpub.analytics.figures.labels import shorten as shorten_label
from vizpub.cli.terminal.layout import shorten as shorten_cell
from vizpub.model.errors import UnknownName
from vizpub.model.naming import place_of
from vizpub.model.wording import amount, join_names, shorten, was_or_were

PEERS = [f"12D3KooW{i:0>44}" for i in range(1, 5)]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 intervals"), (1, "1 interval"), (2, "2 intervals"), (1_200, "1,200 intervals")],
)
def test_amount_has_the_number_of_its_noun(count: int, text: str) -> None:
    assert amount(count, "interval") == text


def test_verb_follows_the_count() -> None:
    assert [was_or_were(count) for count in (0, 1, 2)] == ["were", "was", "were"]


def test_names_are_listed_with_commas_and_one_and() -> None:
    assert join_names(["hops"]) == "hops"
    assert join_names(["hops", "times"]) == "hops and times"
    assert join_names(["hops", "times", "links"]) == "hops, times and links"


@given(st.text(), st.integers(3, 60))
def test_short_name_has_both_ends_of_the_name_and_fits(name: str, longest: int) -> None:
    short = shorten(name, longest)
    assert len(short) <= longest
    if len(name) <= longest:
        assert short == name
    else:
        head, tail = short[: min(4, longest // 3)], short[min(4, longest // 3) + 1 :]
        assert len(short) == longest
        assert name.startswith(head)
        assert name.endswith(tail)


@pytest.mark.parametrize("longest", [12, 14, 24, 48])
def test_peer_has_one_form_in_tables_and_figures_which_commands_accept(longest: int) -> None:
    for place, peer in enumerate(PEERS):
        short = shorten(peer, longest)
        assert short == shorten_cell(peer, longest) == shorten_label(peer, longest)
        assert place_of("peer", short, PEERS) == place


def test_peer_in_an_error_has_the_form_of_tables() -> None:
    text = str(UnknownName("peer", PEERS[0][:-1] + "x", PEERS))
    assert any(shorten(peer) in text for peer in PEERS)
