"""Steps that are texts (vizpub.analytics.steps), done by tasks of Spark: each does blocks of
intervals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics import steps
from vizpub.analytics.steps import Given, Step
from vizpub.model.columns import Table
from vizpub.runstore.integrity import OTHER_PAGE
from vizpub.runstore.store import is_broken

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_BLOCK_ROWS = 250_000
"""Peers × intervals in the memory of a task."""


class Later(NamedTuple):
    """A table that an earlier fold of a chain makes."""

    name: str
    schema: pa.Schema


class Taken(NamedTuple):
    """Rows that steps take: of those, all for which the condition holds (null = all)."""

    rows: pa.Table | ds.Dataset | Later
    where: pc.Expression | None = None

    def after(self, made: Mapping[str, Sequence[pa.RecordBatch]]) -> Taken:
        """The same, where earlier folds of a chain made these tables."""
        if not isinstance(self.rows, Later):
            return self
        name, schema = self.rows
        batches = (rows.cast(schema) for rows in made.get(name, ()))
        return self._replace(rows=pa.Table.from_batches(batches, schema))

    @property
    def kept(self) -> pa.Table | ds.Dataset:
        """The rows for which it holds."""
        assert not isinstance(self.rows, Later)
        return self.rows if self.where is None else self.rows.filter(self.where)

    @property
    def nothing(self) -> Taken:
        """None of the rows."""
        return Taken(self.rows.schema.empty_table())


class Block(NamedTuple):
    """What a task does: its constants, and the tables that only it takes."""

    given: Given
    tables: Mapping[str, Sequence[Taken]] = {}


@dataclass(frozen=True)
class StepFold:
    """A fold (vizpub.ingest.tasks.sink.Fold): numbers of blocks → the tables that steps make."""

    steps: Sequence[Step]
    tables: Mapping[str, Sequence[Taken]]
    """What all blocks take; a table of a block goes first."""
    makes: Sequence[Table]
    blocks: Sequence[Block]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of `makes`; the number of a block is in the first column."""
        taken = steps.inputs(self.steps)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                given, own = self.blocks[number]
                both = {**self.tables, **own}
                with naming_broken_files(chain.from_iterable(both.values())):
                    tables = {name: [one.kept for one in both[name]] for name in taken}
                    yield from steps.compute(self.steps, tables, self.makes, given)

    @property
    def takes_later(self) -> set[str]:
        """The tables that earlier folds of a chain are to make."""
        tables = (self.tables, *(block.tables for block in self.blocks))
        parts = (one for of in tables for parts in of.values() for one in parts)
        return {one.rows.name for one in parts if isinstance(one.rows, Later)}

    def after(self, made: Mapping[str, Sequence[pa.RecordBatch]]) -> StepFold:
        """The fold with the tables that earlier ones made."""

        def found(tables: Mapping[str, Sequence[Taken]]) -> dict[str, list[Taken]]:
            return {name: [one.after(made) for one in parts] for name, parts in tables.items()}

        blocks = [Block(block.given, found(block.tables)) for block in self.blocks]
        return replace(self, tables=found(self.tables), blocks=blocks)

    def summary(self) -> str | None:
        """The summary of the fold among the steps."""
        return next((one.fold.summary() for one in self.steps if one.fold), None)


@dataclass(frozen=True)
class Chain:
    """Several folds of one block each, one after the other, in one task
    (vizpub.ingest.tasks.sink.Fold)."""

    folds: Sequence[StepFold]
    stored: frozenset[str]
    """The tables to write; others are only taken by later folds."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of the tables."""
        block, taken = [*batches], {name for fold in self.folds for name in fold.takes_later}
        made: dict[str, list[pa.RecordBatch]] = {name: [] for name in taken}
        for fold in self.folds:
            for name, rows in fold.after(made)(block):
                if name in taken:
                    made[name].append(rows)
                if name in self.stored:
                    yield name, rows

    def summary(self) -> str:
        """The summaries of the folds, in order, as JSON."""
        return json.dumps([fold.summary() for fold in self.folds])


@contextmanager
def naming_broken_files(taken: Iterable[Taken]) -> Iterator[None]:
    """Where a file of these rows that cannot be read is the cause of an error, name it."""
    try:
        yield
    except Exception as error:  # any: what cannot be read is the cause
        files = (path for one in taken for path in getattr(one.rows, "files", ()))
        if path := next((path for path in files if is_broken(Path(path))), None):
            raise OSError(f"{OTHER_PAGE}, reading file {path}") from error
        raise


def blocks(whole: Given, peers: int, tasks: int) -> list[Given]:
    """The intervals cut into blocks of about equal length, for so many tasks at once."""
    intervals = whole.last + 1 - whole.first
    count = min(intervals, max(tasks, -(-peers * intervals // _BLOCK_ROWS)))
    begins = [whole.first + intervals * number // count for number in range(count + 1)]
    return [replace(whole, first=first, last=after - 1) for first, after in pairwise(begins)]
