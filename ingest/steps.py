"""Steps that are texts (analytics.steps), done by tasks of Spark: each does blocks of intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from analytics import steps
from analytics.steps import Given, Step
from model.columns import Table
from runstore.intact import OTHER_PAGE
from runstore.store import is_broken

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_BLOCK_ROWS = 250_000
"""Peers × intervals in the memory of a task."""


class Taken(NamedTuple):
    """Rows that steps take: of those, all for which the condition holds (null = all)."""

    rows: pa.Table | ds.Dataset
    where: pc.Expression | None = None

    @property
    def kept(self) -> pa.Table | ds.Dataset:
        """The rows for which it holds."""
        return self.rows if self.where is None else self.rows.filter(self.where)


@dataclass(frozen=True)
class StepFold:
    """Numbers of blocks → the tables that the steps make of them (ingest.sink.Fold)."""

    steps: Sequence[Step]
    tables: Mapping[str, Sequence[Taken]]
    makes: Sequence[Table]
    blocks: Sequence[Given]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of `makes`; the number of a block is in the first column."""
        tables = {name: [one.kept for one in parts] for name, parts in self.tables.items()}
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from steps.compute(self.steps, tables, self.makes, self.blocks[number])
        except Exception as error:  # any: what cannot be read is the cause
            if path := self._broken_file():
                raise OSError(f"{OTHER_PAGE}, reading file {path}") from error
            raise

    def _broken_file(self) -> str | None:
        taken = (one.rows for parts in self.tables.values() for one in parts)
        files = (path for rows in taken for path in getattr(rows, "files", ()))
        return next((path for path in files if is_broken(Path(path))), None)

    def summary(self) -> None:
        """Null: the fold has no result besides its rows."""


def blocks(whole: Given, peers: int, tasks: int) -> list[Given]:
    """The intervals cut into blocks of about equal length, for so many tasks at once."""
    intervals = whole.last + 1 - whole.first
    count = min(intervals, max(tasks, -(-peers * intervals // _BLOCK_ROWS)))
    begins = [whole.first + intervals * number // count for number in range(count + 1)]
    return [replace(whole, first=first, last=after - 1) for first, after in pairwise(begins)]
