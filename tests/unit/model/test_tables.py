"""The tables as Arrow and Parquet see them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.words import unknown
from vizpub.model.columns import TRAFFIC_COLUMNS, Table
from vizpub.model.errors import UnknownName
from vizpub.model.metrics import METRICS
from vizpub.model.tables import TABLES, table

SPANS = {"presence", "links", "dangling_links", "subscriptions", "roles", "attributes"}


@pytest.mark.parametrize("meant", TABLES, ids=lambda meant: meant.name)
class TestTable:
    def test_column_names_are_unique(self, meant: Table) -> None:
        assert len(set(meant.names)) == len(meant.names)

    def test_key_consists_of_columns(self, meant: Table) -> None:
        assert meant.key
        assert set(meant.key) <= set(meant.names)

    def test_schema_of_an_empty_table_survives_parquet(self, meant: Table, tmp_path: Path) -> None:
        pq.write_table(meant.arrow.empty_table(), tmp_path / "t.parquet")
        assert pq.read_schema(tmp_path / "t.parquet").equals(meant.arrow)

    def test_column_types_are_among_the_five(self, meant: Table) -> None:
        five = {pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_()}
        assert set(meant.arrow.types) <= five

    def test_columns_have_a_meaning_and_times_a_unit(self, meant: Table) -> None:
        for column in meant:
            assert column.meaning
            if "_us" in column.name:
                assert column.unit == "µs"
            if column.name in ("valid_from", "valid_to", "tick"):
                assert column.unit == "ticks"

    def test_table_is_found_by_name(self, meant: Table) -> None:
        assert table(meant.name) is meant


def test_unknown_table_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match=unknown("table", "link", "links")):
        table("link")


def test_table_names_are_unique() -> None:
    assert len({meant.name for meant in TABLES}) == len(TABLES)


def test_span_tables_have_both_ends_and_key_by_vf() -> None:
    found = {meant.name for meant in TABLES if {"valid_from", "valid_to"} <= set(meant.names)}
    assert found == SPANS
    for name in SPANS:
        assert table(name).key[-1] == "valid_from"


def test_metrics_say_what_degenerate_graphs_give() -> None:
    for meant in METRICS:
        for column in meant:
            assert bool(column.graph) == bool(column.degenerate)


def test_traffic_columns_are_in_the_traffic_and_peer_tables() -> None:
    assert len(TRAFFIC_COLUMNS) == 8
    assert set(TRAFFIC_COLUMNS) <= set(table("traffic").names)
    assert set(TRAFFIC_COLUMNS) <= set(table("metrics/peers").names)
