"""Hops along the chains of first receptions, against plain Python that follows one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.arrivals import Row, naive_hops, random_messages
from vizpub.analytics.messages.hops import (
    Arrivals,
    chain_hops,
    first_and_second,
    flag_earliest,
    pairs,
    parents_of,
)


def arrivals(rows: list[Row]) -> Arrivals:
    def column(name: str) -> Any:
        return np.array([-1 if row[name] is None else row[name] for row in rows], np.int64)

    names = ("message", "peer", "previous_hop", "publisher", "hop")
    return Arrivals(np.array([row["first"] for row in rows], np.bool_), *map(column, names))


def hops_of(rows: list[Row]) -> Any:
    told = arrivals(rows)
    return chain_hops(told, parents_of(told))


def chain(*steps: tuple[int, int | None], publisher: int | None = 0, **told: int) -> list[int]:
    """Hops of first arrivals (peer, previous hop) of one message; `told` are those of peers."""
    rows = [
        {"message": 7, "peer": peer, "previous_hop": previous, "first": True}
        | {"publisher": publisher, "hop": told.get(f"peer_{peer}")}
        for peer, previous in steps
    ]
    return [int(hop) for hop in hops_of(rows)]


@pytest.mark.parametrize("seed", range(8))
def test_hops_of_random_messages_equal_plain_python(seed: int) -> None:
    rows = random_messages(seed, 60)
    found = [None if hop < 0 else hop for hop in hops_of(rows).tolist()]
    assert found == naive_hops(rows)
    assert None in found
    assert max(hop for hop in found if hop is not None) > 3


def test_hops_of_no_arrivals_are_empty() -> None:
    assert hops_of([]).size == 0


def test_hops_of_a_chain_are_counted_in_any_order() -> None:
    assert chain((3, 2), (1, 0), (2, 1)) == [3, 1, 2]


def test_hops_of_a_chain_of_500_are_counted() -> None:
    length = 500
    assert chain(*((i + 1, i) for i in range(length))) == list(range(1, length + 1))


def test_circle_and_peers_behind_it_have_no_hops() -> None:
    assert chain((1, 2), (2, 1), (3, 2), (4, 0), (5, 5)) == [-1, -1, -1, 1, -1]


def test_gap_leaves_the_rest_of_a_chain_without_hops() -> None:
    assert chain((1, 9), (2, 1), (3, None), (4, 3)) == [-1, -1, -1, -1]


def test_reception_at_the_publisher_does_not_lengthen_chains() -> None:
    assert chain((1, 0), (0, 1), (2, 0)) == [1, 2, 1]


def test_hops_without_a_publisher_are_unknown() -> None:
    assert chain((1, 0), (2, 1), publisher=None) == [-1, -1]


def test_told_hop_of_zero_stays_and_is_counted_from() -> None:
    """Though its previous hop is at 1; peer 3 is not reached from a publisher."""
    assert chain((1, 0), (2, 1), (3, 9), (4, 2), (5, 3), peer_2=0, peer_3=0) == [1, 0, 0, 1, 1]


def test_hops_of_one_message_do_not_use_another() -> None:
    """The same peers, and neighbouring message numbers."""
    one = {"peer": 1, "previous_hop": 0, "first": True, "publisher": 0, "hop": None}
    rows = [{**one, "message": 1}, {**one, "message": 2, "peer": 2, "previous_hop": 1}]
    assert hops_of(rows).tolist() == [1, -1]


def test_hop_after_the_largest_of_32_bits_is_unknown() -> None:
    largest = 2**31 - 1
    assert chain((1, 9), (2, 1), (3, 2), peer_1=largest - 1) == [largest - 1, largest, -1]


def test_numbers_of_a_pair_are_those_it_was_made_of() -> None:
    known = [(one, other) for one in (0, 5, 2**31 - 1) for other in (0, 1, 6, 2**31 - 1)]
    one, other = np.array(known, np.int64).T
    both = pairs(one, other)
    assert both.tolist() == [first * 2**32 + second for first, second in known]
    first, second = first_and_second(both)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == known


@pytest.mark.parametrize("seed", range(3))
def test_earliest_rows_equal_plain_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 4, 60) for _ in range(4)]
    rows = list(zip(*(column.tolist() for column in columns), range(60), strict=True))
    expected = {min(row for row in rows if row[:2] == one[:2])[4] for one in rows}
    assert set(np.flatnonzero(flag_earliest(*columns))) == expected
    assert 1 < len(expected) < 60
