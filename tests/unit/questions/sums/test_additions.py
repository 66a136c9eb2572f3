"""Totals over intervals, beside sums by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from vizpub.model.errors import UseError
from vizpub.model.metrics import COUNTS, METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from vizpub.questions.sums.additions import PER_INTERVAL_ONLY, add_intervals

ROWS = [
    {"interval": 0, "peer": 1, "peer_name": "bob", "receptions": 2, "duplicates": None},
    {"interval": 1, "peer": 0, "peer_name": "alice", "receptions": 0, "duplicates": 0},
    {"interval": 1, "peer": 1, "peer_name": "bob", "receptions": 3, "duplicates": None},
    {"interval": 2, "peer": 0, "peer_name": "alice", "receptions": None, "duplicates": 4},
]
BY_HAND = [
    {"peer": 0, "peer_name": "alice", "intervals": 2, "receptions": 0, "duplicates": 4},
    {"peer": 1, "peer_name": "bob", "intervals": 2, "receptions": 5, "duplicates": None},
]


def test_totals_are_the_sums_of_what_is_known() -> None:
    assert add_intervals(pa.Table.from_pylist(ROWS)).to_pylist() == BY_HAND


def test_total_beyond_64_bits_is_unknown() -> None:
    rows = pa.Table.from_pylist([{"interval": i, "control_bytes_sent": 2**62} for i in range(2)])
    assert add_intervals(rows).to_pylist() == [{"intervals": 2, "control_bytes_sent": None}]


def test_totals_of_the_overlay_are_one_row() -> None:
    rows = pa.Table.from_pylist([{"interval": i, "receptions": i, "diameter": 3} for i in range(5)])
    assert add_intervals(rows).to_pylist() == [{"intervals": 5, "receptions": 10}]


def test_totals_of_no_intervals_are_no_rows() -> None:
    assert add_intervals(pa.Table.from_pylist(ROWS).slice(0, 0)).num_rows == 0


@pytest.mark.parametrize("columns", [["interval", "peer"], ["peer", "receptions"]])
def test_columns_that_cannot_be_added_are_refused(columns: list[str]) -> None:
    with pytest.raises(UseError, match=PER_INTERVAL_ONLY):
        add_intervals(pa.Table.from_pylist(ROWS).select(columns))


def test_counts_are_columns_of_whole_numbers() -> None:
    tables = (METRICS_PEERS, METRICS_TOPICS, METRICS_OVERLAY)
    found = {field.name: field.type for table in tables for field in table.arrow}
    assert {found[name] for name in COUNTS} == {pa.int64()}
