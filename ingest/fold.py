"""Helps a fold to make tables: rows are added one by one and handed out in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ingest.reader import TEXT_LIMIT

_FULL = 1 << 16
_MOST_NAMES = 1000
"""Names of unknown fields and the like, and reasons, that are told apart."""
_OTHERS = "(others)"
_SHOWN = 3

Rows = dict[str, list[tuple[Any, ...]]]
"""Rows by table."""


class Tables:
    """Rows of several tables, as tuples, on their way to a sink."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._schemas = schemas
        self.rows: Rows = {name: [] for name in schemas}
        """Add to them."""

    def full(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of tables that have many."""
        return self._taken(_FULL)

    def rest(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """All rows."""
        return self._taken(1)

    def _taken(self, least: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        for name, rows in self.rows.items():
            if len(rows) >= least:
                schema = self._schemas[name]
                columns = zip(*rows, strict=True)
                arrays = [pa.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)]
                rows.clear()
                yield name, pa.record_batch(arrays, schema=schema)


def count(counter: Counter[str], name: str) -> None:
    """Count under the name, or under all others where there are too many."""
    told = name in counter or len(counter) < _MOST_NAMES
    counter[name if told else _OTHERS] += 1


def every_refused(refused: Counter[str]) -> str:
    """That every record was refused, and the reasons that most were refused for, in words."""
    told = [f"{reason} ({n:,})" for reason, n in refused.most_common(_SHOWN)]
    return ": ".join(["every record was refused", *(["; ".join(told)] if told else [])])


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The rows of the batches, as tuples."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def quarantined(file: str, line: int, reason: str, record: bytes) -> tuple[Any, ...]:
    """The row of the table `quarantine` for a refused record, which need not be UTF-8."""
    return file, line, reason, record.decode("utf-8", "replace")[:TEXT_LIMIT]
