"""Running of steps (vizpub.analytics.steps) in Spark tasks, which do blocks of intervals."""

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
from vizpub.analytics.steps import Step, TaskContext
from vizpub.model.columns import Table
from vizpub.model.errors import ServiceError, StoreBroken
from vizpub.runstore.integrity import OTHER_PAGE, dataset, files_of
from vizpub.runstore.manifest import Part, Since
from vizpub.runstore.store import StoredTable, is_broken
from vizpub.runstore.stores.place import RunPlace

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_BLOCK_ROWS = 250_000
"""Peers × intervals in the memory of a task."""


class LaterTable(NamedTuple):
    """A table that an earlier fold of a chain makes."""

    name: str
    schema: pa.Schema


class StoredRows(NamedTuple):
    """A part of a table in a store, which each task opens on its own machine."""

    place: RunPlace
    name: str
    part: Part
    schema: pa.Schema

    def open(self) -> ds.Dataset:
        """Return the rows. Raises: StoreBroken, ServiceError."""
        return dataset(files_of(self.place.here(), self.part, self.name), self.schema)

    @property
    def files(self) -> list[str]:
        """The files on this machine."""
        directory = self.place.here() / self.part.directory
        return [str(directory / file.name) for file in self.part.files or ()]


class StepInput(NamedTuple):
    """Rows that a step takes: those for which the condition holds (null = all)."""

    rows: pa.Table | ds.Dataset | StoredRows | LaterTable
    where: pc.Expression | None = None

    def resolve_later(self, tables: Mapping[str, Sequence[pa.RecordBatch]]) -> StepInput:
        """Return the input with a table that an earlier fold of the chain has made."""
        if not isinstance(self.rows, LaterTable):
            return self
        name, schema = self.rows
        batches = (rows.cast(schema) for rows in tables.get(name, ()))
        return self._replace(rows=pa.Table.from_batches(batches, schema))

    @property
    def selected_rows(self) -> pa.Table | ds.Dataset:
        """Rows for which the condition holds."""
        assert not isinstance(self.rows, LaterTable)
        rows = self.rows.open() if isinstance(self.rows, StoredRows) else self.rows
        return rows if self.where is None else rows.filter(self.where)

    @property
    def without_rows(self) -> StepInput:
        """Input without rows, of the same schema."""
        return StepInput(self.rows.schema.empty_table())


def inputs_of(stored: StoredTable, place: RunPlace, since: Since | None) -> list[StepInput]:
    """Return the rows of a table of a run, or those that `since` selects, for tasks."""
    if place.store:
        rows = [
            StepInput(StoredRows(place, stored.name, part, stored.schema), where)
            for part, where in stored.reaching(since)
        ]
    else:
        rows = [StepInput(*pair) for pair in stored.datasets(since)]
    return rows or [StepInput(stored.schema.empty_table())]


class TaskBlock(NamedTuple):
    """The work of a task: its context, and the tables that only it takes."""

    context: TaskContext
    tables: Mapping[str, Sequence[StepInput]] = {}


@dataclass(frozen=True)
class BlockFold:
    """A fold (vizpub.ingest.tasks.sink.Fold): numbers of blocks → the tables that steps make."""

    steps: Sequence[Step]
    tables: Mapping[str, Sequence[StepInput]]
    """Tables that all blocks take, unless a block has its own of that name."""
    makes: Sequence[Table]
    blocks: Sequence[TaskBlock]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield rows of `makes`; the first column of the batches has the numbers of blocks."""
        input_names = steps.input_names(self.steps)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                constants, own_tables = self.blocks[number]
                both = {**self.tables, **own_tables}
                with name_broken_files(chain.from_iterable(both.values())):
                    tables = {
                        name: [one.selected_rows for one in both[name]] for name in input_names
                    }
                    yield from steps.compute_tables(self.steps, tables, self.makes, constants)

    @property
    def later_names(self) -> set[str]:
        """Names of the tables that earlier folds of a chain make."""
        tables = (self.tables, *(block.tables for block in self.blocks))
        parts = (one for of in tables for parts in of.values() for one in parts)
        return {one.rows.name for one in parts if isinstance(one.rows, LaterTable)}

    def resolve_later(self, earlier: Mapping[str, Sequence[pa.RecordBatch]]) -> BlockFold:
        """Return the fold with the tables that earlier folds made."""

        def resolve(tables: Mapping[str, Sequence[StepInput]]) -> dict[str, list[StepInput]]:
            return {
                name: [step_input.resolve_later(earlier) for step_input in parts]
                for name, parts in tables.items()
            }

        blocks = [TaskBlock(block.context, resolve(block.tables)) for block in self.blocks]
        return replace(self, tables=resolve(self.tables), blocks=blocks)

    def summary(self) -> str | None:
        """Return the summary of the fold among the steps; null if there is none."""
        return next((one.fold.summary() for one in self.steps if one.fold), None)


@dataclass(frozen=True)
class FoldChain:
    """Several folds of one block each, one after the other, in one task
    (vizpub.ingest.tasks.sink.Fold)."""

    folds: Sequence[BlockFold]
    stored: frozenset[str]
    """The tables to write; others are only taken by later folds."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (table name, rows) pairs."""
        block, later_names = [*batches], {name for fold in self.folds for name in fold.later_names}
        made_tables: dict[str, list[pa.RecordBatch]] = {name: [] for name in later_names}
        for fold in self.folds:
            for name, rows in fold.resolve_later(made_tables)(block):
                if name in later_names:
                    made_tables[name].append(rows)
                if name in self.stored:
                    yield name, rows

    def summary(self) -> str:
        """Return the summaries of the folds, in order, as JSON."""
        return json.dumps([fold.summary() for fold in self.folds])


@contextmanager
def name_broken_files(inputs: Iterable[StepInput]) -> Iterator[None]:
    """Name the unreadable file if one of these inputs' files causes an error. Raises: OSError."""
    try:
        yield
    except (StoreBroken, ServiceError):  # which names it
        raise
    except Exception as error:  # any: what cannot be read is the cause
        files = (path for one in inputs for path in getattr(one.rows, "files", ()))
        if path := next((path for path in files if is_broken(Path(path))), None):
            raise OSError(f"{OTHER_PAGE}, reading file {path}") from error
        raise


def cut_blocks(constants: TaskContext, peers: int, tasks: int) -> list[TaskContext]:
    """Cut the intervals into blocks of about equal length, for that many tasks at once."""
    intervals = constants.last + 1 - constants.first
    count = min(intervals, max(tasks, -(-peers * intervals // _BLOCK_ROWS)))
    begins = [constants.first + intervals * number // count for number in range(count + 1)]
    return [replace(constants, first=first, last=stop - 1) for first, stop in pairwise(begins)]
