"""The modes are compared with Neo4j's answers in tests/integration/graph/test_readings.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vizpub.graphstore.ask.periods import ALWAYS, class_ranges, level_ranges
from vizpub.graphstore.load.batches import level
from vizpub.model.clock import OPEN

PERIODS = st.tuples(st.integers(0, 60), st.integers(1, 40), st.booleans()).map(
    lambda drawn: (drawn[0], OPEN if drawn[2] else drawn[0] + drawn[1])
)
RANGES = st.one_of(
    st.tuples(st.integers(0, 100), st.integers(0, 100)),
    st.integers(0, 100).map(lambda low: (low, OPEN)),
    st.just(ALWAYS),
)


def classes(periods: list[tuple[int, int]]) -> tuple[int, ...]:
    """Of the closed ones, as a run has them."""
    return tuple(sorted({level(*period) for period in periods if period[1] != OPEN}))


@given(st.lists(PERIODS, max_size=12), RANGES, RANGES)
def test_class_ranges_find_each_period_that_begins_and_ends_in_them_once(
    periods: list[tuple[int, int]], begins: tuple[int, int], ends: tuple[int, int]
) -> None:
    found = [
        (valid_from, valid_to)
        for of, first, last, least, most in class_ranges(classes(periods), begins, ends)
        for valid_from, valid_to in periods
        if level(valid_from, valid_to) == of
        and first <= valid_from <= last
        and least <= valid_to <= most
    ]
    assert sorted(found) == sorted(
        (valid_from, valid_to)
        for valid_from, valid_to in periods
        if begins[0] <= valid_from <= begins[1] and ends[0] <= valid_to <= ends[1]
    )


def test_class_ranges_of_a_window_do_not_depend_on_what_lies_outside() -> None:
    """Of each class at most the window and one length before it."""
    for of, first, last, *_ in class_ranges(tuple(range(12)), (0, 5_010), (5_000, 5_010)):
        assert last - first <= 10 + 2 ** (of + 1)


@given(st.lists(PERIODS, max_size=12), st.integers(0, 120))
def test_level_ranges_find_each_valid_period_once(periods: list[tuple[int, int]], at: int) -> None:
    found = [
        (valid_from, valid_to)
        for of, after in level_ranges(classes(periods), at)
        for valid_from, valid_to in periods
        if level(valid_from, valid_to) == of and after < valid_from <= at < valid_to
    ]
    assert sorted(found) == sorted(
        (valid_from, valid_to) for valid_from, valid_to in periods if valid_from <= at < valid_to
    )


def test_level_ranges_find_long_periods_beyond_double_precision() -> None:
    for exponent in (48, 49, 53, 61, 62):
        for length in (2**exponent - 1, 2**exponent, 2**exponent + 1):
            (_, (of, after)) = level_ranges((level(5, 5 + length),), 5 + length - 1)
            assert of == length.bit_length() - 1
            assert after < 5
