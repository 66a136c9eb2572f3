"""Hops that are filled into tables, against plain Python that follows one at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from analytics.dissemination import fill_hops
from tests.support.arrivals import naive_hops, random_messages

LARGEST = 2**31 - 1
"""Of an int32, which both peers and messages come in."""


@pytest.mark.parametrize("turn", [lambda number: number, lambda number: LARGEST - number])
def test_hops_are_filled_into_a_table_of_the_smallest_and_largest_numbers(turn: Any) -> None:
    numbers = ("message", "peer", "previous_hop", "publisher")
    rows = random_messages(9, 60)
    for row in rows:
        row.update({name: None if row[name] is None else turn(row[name]) for name in numbers})
    schema = pa.schema([*((name, pa.int32()) for name in (*numbers, "hop")), ("first", pa.bool_())])
    filled = fill_hops(pa.Table.from_pylist(rows, schema))
    assert filled.schema == schema
    expected = [{**row, "hop": hop} for row, hop in zip(rows, naive_hops(rows), strict=True)]
    assert filled.to_pylist() == [{name: row[name] for name in schema.names} for row in expected]
