"""docs/metrics.md says of every metric what model/tables.py says."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub.model.columns import Column, Table
from vizpub.model.metrics import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def _row(column: Column) -> tuple[str, ...]:
    type_ = f"{column.type} or null" if column.nullable else column.type
    return (column.name, type_, column.unit, column.meaning, column.graph, column.degenerate)


@pytest.mark.parametrize("table", METRICS, ids=lambda table: table.name)
def test_metrics_page_equals_the_definition_of_every_metric(table: Table) -> None:
    section = PAGE.read_text().split(f"## {table.name}\n")[1].split("\n## ")[0]
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split(" | "))
        for line in section.splitlines()
        if line.startswith("| ")
    ]
    assert rows[2:] == [_row(column) for column in table]


def test_graph_metrics_are_nullable_and_tell_the_degenerate_case() -> None:
    measured = [column for table in METRICS for column in table if column.graph]
    assert measured
    for column in measured:
        assert column.degenerate, column.name
        assert column.nullable, column.name
