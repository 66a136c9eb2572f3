"""Amounts in messages."""

from __future__ import annotations

import pytest

from vizpub.model.wording import amount, join_names, was_or_were


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
