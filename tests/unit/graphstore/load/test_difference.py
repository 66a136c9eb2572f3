"""What tables and copy differ in, compared with plain counting."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import Batches
from vizpub.graphstore.load.difference import RowsByMessage, changed_nodes, difference
from vizpub.graphstore.load.reading import TableReader
from vizpub.model.clock import Clock

ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", None])), max_size=12)
SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=12)


@given(ROWS, ROWS)
def test_difference_makes_what_is_there_what_is_expected(
    expected: list[tuple[int, str | None]], there: list[tuple[int, str | None]]
) -> None:
    held = [(str(number), list(row)) for number, row in enumerate(there)]
    found = difference(map(list, expected), held)
    left = Counter(there) - Counter(tuple(row) for _, row in found.surplus)
    assert left + Counter(map(tuple, found.missing)) == Counter(expected)
    assert not Counter(map(tuple, found.missing)) & Counter(tuple(r) for _, r in found.surplus)
    assert len({*found.ids}) == len(found.surplus)
    assert bool(found) == (Counter(expected) != Counter(there))


def test_number_of_another_type_is_a_change() -> None:
    expected = {"a": {"n": 1, "none": None}, "b": {"n": 1.0}, "c": {"n": True}, "d": {"n": 1}}
    held = {"a": {"n": 1}, "b": {"n": 1}, "c": {"n": 1}}
    assert changed_nodes(expected, held) == [{"n": 1.0}, {"n": True}]


@given(SIZES, st.integers(1, 20), st.integers(0, 3))
def test_chunks_have_each_message_once_and_few_rows(
    sizes: list[int], limit: int, first: int
) -> None:
    numbered = dict(enumerate(sizes))
    rows = [{"message": m, "peer": p} for m, size in numbered.items() for p in range(size)]
    tables = Batches({"receptions": rows, "publications": [{"message": m} for m in numbered]}, 5)
    messages = RowsByMessage(TableReader(tables, Clock()), first)
    chunks = list(messages.chunks(first, len(sizes), limit))
    assert [m for low, high in chunks for m in range(low, high)] == [*range(first, len(sizes))]
    for low, high in chunks:
        assert len(messages.of("receptions", low, high)) == sum(sizes[low:high])
        assert sum(2 + sizes[m] for m in range(low, high)) <= limit or high == low + 1
