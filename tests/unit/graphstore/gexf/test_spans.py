"""Spans against sets of single steps, run lengths against the rows they came from."""

import itertools
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.words import unknown
from vizpub.graphstore.gexf.spans import (
    common_spans,
    counts_of,
    merge_spans,
    run_lengths,
    sets_over,
    shared_sets,
)
from vizpub.model.errors import UnknownName

spans = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda s: (s[0], s[0] + s[1])), max_size=6
)


def steps(of: list[tuple[int, int]]) -> set[int]:
    return {step for first, last in of for step in range(first, last + 1)}


@given(spans)
def test_merged_spans_are_maximal_and_cover_the_same_steps(given_spans):
    result = merge_spans(given_spans)
    assert steps(result) == steps(given_spans)
    assert all(a[1] + 1 < b[0] for a, b in itertools.pairwise(result))


@given(spans, spans)
def test_common_spans_are_the_intersection(a, b):
    result = common_spans(merge_spans(a), merge_spans(b))
    assert steps(result) == steps(a) & steps(b)
    assert all(x[1] < y[0] for x, y in itertools.pairwise(result))


@given(st.dictionaries(st.integers(0, 3), spans), spans.filter(bool))
def test_sets_over_lives_are_maximal_and_complete(alive, periods):
    periods = merge_spans(periods)
    result = sets_over({key: merge_spans(of) for key, of in alive.items()}, periods)
    for step in steps(periods):
        at = [keys for first, last, keys in result if first <= step <= last]
        assert at == [frozenset(key for key, of in alive.items() if step in steps(of))]
    # Maximal: neighbours differ, and nothing begins or ends where nobody periods.
    assert all(x[2] != y[2] and x[1] < y[0] for x, y in itertools.pairwise(result))
    assert result[0][0] == periods[0][0]
    assert result[-1][1] == periods[-1][1]


@given(
    st.dictionaries(st.integers(0, 3), spans),
    st.dictionaries(st.integers(0, 3), spans),
    spans.filter(bool),
)
def test_shared_sets_are_the_keys_alive_in_both(a, b, periods):
    periods = merge_spans(periods)
    result = shared_sets(
        {key: merge_spans(of) for key, of in a.items()},
        {key: merge_spans(of) for key, of in b.items()},
        periods,
    )
    counts = counts_of(result)
    for step in steps(periods):
        keys = {k for k in a.keys() & b.keys() if step in steps(a[k]) and step in steps(b[k])}
        assert [value for first, last, value in result if first <= step <= last] == [keys]
        assert [value for first, last, value in counts if first <= step <= last] == [len(keys)]
    for rows in (result, counts):
        assert all(x[2] != y[2] for x, y in itertools.pairwise(rows))


values = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.5, math.nan]))


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 9)),
        st.tuples(st.one_of(st.none(), st.integers(0, 2)), values),
    ),
    st.randoms(use_true_random=False),
)
def test_run_lengths_give_back_every_known_value(cells, random):
    rows = [(peer, interval, *both) for (peer, interval), both in cells.items()]
    random.shuffle(rows)
    schema = pa.schema(
        [("peer", pa.int32()), ("interval", pa.int32()), ("n", pa.int64()), ("x", pa.float64())]
    )
    table = pa.table([list(c) for c in zip(*rows, strict=True)] or [[]] * 4, schema=schema)
    result = list(run_lengths(table.to_batches(max_chunksize=3), ["n", "x"]))

    unrolled = {
        (peer, interval, name): value
        for peer, name, first, last, value in result
        for interval in range(first, last + 1)
    }
    expected = {
        (peer, interval, name): value
        for (peer, interval), both in cells.items()
        for name, value in zip(("n", "x"), both, strict=True)
        if value is not None and not math.isnan(value)
    }
    assert unrolled == expected
    assert [row[0] for row in result] == sorted(row[0] for row in result)
    by_series = sorted(result, key=lambda row: (row[0], row[1], row[2]))
    for a, b in itertools.pairwise(by_series):
        assert a[:2] != b[:2] or a[3] + 1 < b[2] or a[4] != b[4]


def test_run_lengths_of_no_batch_are_empty():
    assert list(run_lengths([], ["degree"])) == []


def test_run_lengths_of_an_unknown_column_are_refused():
    batch = pa.record_batch({"peer": [1], "interval": [1], "degree": [2]})
    with pytest.raises(UnknownName, match=unknown("attribute", "degre", "degree")):
        list(run_lengths([batch], ["degre"]))
