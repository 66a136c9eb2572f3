"""When an import pays."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from graphstore import bulk
from graphstore.bulk import pays


@pytest.mark.parametrize(
    ("rows", "paying"),
    [({}, False), ({"links": 99}, False), ({"links": 60, "receptions": 40}, True)],
)
def test_rows_of_all_tables_count(
    rows: dict[str, int], paying: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "PAYING_ROWS", 100)

    def tables(name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        for part in range(0, rows.get(name, 0), 20):
            count = min(20, rows[name] - part)
            yield str(part), pa.record_batch({"vf": pa.array(range(count))})

    assert pays(tables) == paying
