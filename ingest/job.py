"""Reading, writing and committing tables, for all stages of an ingest.

A stage reads the files of earlier ones. A large run is committed after each stage, and a small one
once, at the end: starting again costs less.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from vizpub.analytics import steps
from vizpub.analytics.steps import Step, TaskContext
from vizpub.ingest.account import Account
from vizpub.ingest.growth import AppendPlan
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.measures.choice import MeasurementOptions
from vizpub.ingest.plan import IngestPlan, end_tick
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.sources import find_source
from vizpub.ingest.sources.base import ObservedTables, RunDescription, Source, SourceOptions
from vizpub.ingest.sources.folded import CARRIED, OBSERVED
from vizpub.ingest.tasks.sink import Fold, OutputTable, write_tables
from vizpub.ingest.tasks.staged import STAGED, is_staged, macro_text
from vizpub.ingest.tasks.steps import (
    BlockFold,
    FoldChain,
    LaterTable,
    StepInput,
    TaskBlock,
    inputs_of,
)
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import Table
from vizpub.runstore.inputs import shorten_inputs
from vizpub.runstore.manifest import Manifest, Part, Since, StoredFile, TableEntry
from vizpub.runstore.store import StoredTable
from vizpub.runstore.writer import RunWriter

_FOLDED = "staged/folded."

_Watch = Callable[[str], AbstractContextManager[object]]
"""A context manager around the stage of that name."""


class _PendingStep(NamedTuple):
    """Steps that `Job.flush` runs later."""

    fold: BlockFold
    makes: Mapping[str, pa.Schema]
    then: Callable[[Sequence[str]], None]


@dataclass
class Job:
    """A running ingest: its request, its run, and the tables made so far."""

    spark: SparkSession
    writer: RunWriter
    request: IngestRequest
    files: tuple[InputFile, ...]
    """The files to read."""
    small: bool = False
    """See vizpub.ingest.spark.scale."""
    account: Account = field(default_factory=Account)
    watch: _Watch = lambda _: nullcontext()
    note: Callable[[str], None] = lambda _: None
    """Called with notes on the current stage, for the log."""
    records_seen: int = field(init=False, default=0)
    """Records that this ingest has read."""
    _pending: list[_PendingStep] = field(init=False, default_factory=list)
    refusals: Counter[str] = field(init=False, default_factory=Counter)
    """Refused records by reason."""

    @property
    def options(self) -> SourceOptions:
        """Options of the source."""
        return self.request.options

    @property
    def measuring(self) -> MeasurementOptions:
        """Options of the measurements."""
        return self.request.measuring

    @property
    def manifest(self) -> Manifest:
        """Manifest of the run so far."""
        assert self.writer.manifest is not None
        return self.writer.manifest

    @property
    def clock(self) -> Clock:
        """Clock of the run, known once the input is read."""
        assert self.manifest.clock is not None
        return self.manifest.clock

    @property
    def description(self) -> RunDescription:
        """Description of the run by its source."""
        names = (of.name for of in fields(RunDescription))
        return RunDescription(**{name: getattr(self.manifest, name) for name in names})

    def is_known(self, name: str) -> bool:
        """Return True if the source reports the fact or table of that name."""
        return name not in self.manifest.unknown

    @property
    def source(self) -> Source:
        """Source of the run."""
        return find_source(self.manifest.source)

    @property
    def base(self) -> Manifest | None:
        """Run that is appended to; null if the run is made from all of its input."""
        return self.writer.base

    @cached_property
    def plan(self) -> IngestPlan:
        """Plan of this ingest: to make a whole run, or to change one."""
        base = self.base
        return (
            IngestPlan(self)
            if base is None or base.clock is None
            else AppendPlan(self, base, base.clock)
        )

    @property
    def parallelism(self) -> int:
        """Number of tasks that should run at once."""
        partitions = self.spark.conf.get("spark.sql.shuffle.partitions")
        return 1 if self.small else int(partitions or 1)

    def run_stage(self, stage: Stage) -> None:
        """Run the stage unless it is done. Raises: errors of the stage."""
        if stage.name not in self.manifest.stages:
            with self.watch(stage.name):
                stage.work(self)
                new_tables = {
                    name: entry
                    for name, entry in self.manifest.tables.items()
                    if entry.stage is None
                }
                done = self.manifest.with_stage(stage.name, new_tables)
                if self.small:
                    self.writer.manifest = done
                else:
                    self.writer.commit(done)

    def update(self, **changes: Any) -> None:
        """Change fields of the manifest; they are committed with the current stage."""
        self.writer.manifest = replace(self.manifest, **changes)

    def make_from_whole_input(self, chosen: Sequence[Step], makes: Sequence[Table]) -> None:
        """Make tables from the whole input, by steps in one task."""
        self.make_tables(
            chosen, makes, [TaskBlock(self.step_constants("all"), self.folded_tables())]
        )

    def make_tables(
        self,
        chosen: Sequence[Step],
        makes: Sequence[Table],
        blocks: Sequence[TaskBlock],
        more: Sequence[Table] = (),
        then: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """Make tables in one task per block, by those of the steps that they need.

        `more` are the tables that folds among the steps make; `then` is called with the summaries
        of the folds. For a small input, steps with one block wait for `flush`, which runs them in
        one task.
        """
        is_held = self.small and len(blocks) == 1
        if not is_held:
            self.flush()
        chosen = steps.select_needed(chosen, {table.name for table in makes})
        block_tables = {name for block in blocks for name in block.tables}
        tables = {
            name: self._input_of_step(name) for name in steps.input_names(chosen) - block_tables
        }
        fold = BlockFold(chosen, tables, makes, blocks)
        schemas = {table.name: table.arrow for table in (*makes, *more)}
        if is_held:
            self._pending.append(_PendingStep(fold, schemas, then))
            return
        rows = self.spark.range(0, len(blocks), 1, len(blocks))
        then(self.write(rows, fold, schemas))

    def flush(self, *, last: bool = False) -> None:
        """Run all pending steps in one task. If `last`, no staged table is written, as none is
        read.
        """
        held, self._pending = self._pending, []
        if not held:
            return
        made_tables = chain.from_iterable(one.makes.items() for one in held)
        schemas = {name: schema for name, schema in made_tables if not (last and is_staged(name))}
        folds = FoldChain([one.fold for one in held], frozenset(schemas))
        (summary,) = self.write(self.spark.range(0, 1, 1, 1), folds, schemas)
        for one, answer in zip(held, json.loads(summary), strict=True):
            one.then([] if answer is None else [answer])

    @property
    def tables(self) -> frozenset[str]:
        """Names of the tables that this ingest has made, or that are pending."""
        return frozenset(chain.from_iterable(one.makes for one in self._pending)) | {
            *self.manifest.tables
        }

    def step_constants(self, part: str, messages: tuple[int, int] | None = None) -> TaskContext:
        """Return the constants of the package's texts for a `part` of the input: all, some or
        rest.
        """
        clock, end = self.clock, end_tick(self.clock)
        variables = {
            **self.plan.variables,
            "end": end,
            "close_at": end if self.manifest.ended else OPEN,
            "are_maximal": self.plan.are_maximal,
            "part": part,
        }
        span = clock.first, clock.last, clock.ticks_per_interval
        known_tables = self.observed_tables.known_tables
        return TaskContext(
            *span, known_tables, 0, 0, messages=messages, variables=variables, macros=macro_text()
        )

    def _input_of_step(self, name: str) -> list[StepInput]:
        """Return the rows of a table by the name that steps give it, such as `whole/links`."""
        of, _, table = name.rpartition("/")
        if of == "whole":
            return self.written_rows(stored_name(table), self.source.tables[table])
        if of == "before":
            nothing = self.manifest.definition(table).arrow.empty_table()
            return self.plan.earlier_rows(table) or [StepInput(nothing)]
        if of == "observed":  # unknown
            return [StepInput(OBSERVED[table].empty_table())]
        if of == "staged":
            return self.written_rows(name, STAGED[name].arrow)
        return self.needed_rows(name)

    def written_rows(self, name: str, schema: pa.Schema) -> list[StepInput]:
        """Return the rows of a table that this ingest has written; none if it is unknown."""
        if any(name in one.makes for one in self._pending):
            return [StepInput(LaterTable(name, schema))]
        entry = self.manifest.tables.get(name)
        return self.rows_of_parts(name, [entry.newest] if entry else [], schema)

    def needed_rows(self, name: str) -> list[StepInput]:
        """Return the rows of a table that intervals from the boundary on need."""
        parts, since = self.plan.needed_parts(name)
        schema = self.manifest.definition(name).arrow
        older = self.rows_of_parts(name, parts, schema, since) if parts else []
        return [*older, *self.written_rows(name, schema)]

    def rows_of_parts(
        self, name: str, parts: Sequence[Part], schema: pa.Schema, since: Since | None = None
    ) -> list[StepInput]:
        """Return the rows of parts of a table, or those that `since` selects."""
        stored = StoredTable(self.writer.directory, name, tuple(parts), schema)
        return inputs_of(stored, self.writer.place, since)

    def folded_tables(self, file: str | None = None) -> dict[str, list[StepInput]]:
        """Return the folded tables with the rows that appends kept, or their rows in one file."""
        return {
            f"folded/{name}": [
                *self.rows_of_parts(name, [self._part_of_file(name, file)], schema),
                *([] if file else self.plan.carried_rows(name)),
            ]
            for name, schema in self.source.tables.items()
            if name != "quarantine"
        }

    @property
    def parts(self) -> list[str]:
        """Names of the files that the tasks of the fold wrote, the same in all tables."""
        entries = (self.manifest.tables[stored_name(name)] for name in self.source.tables)
        files = (file for entry in entries for file in entry.newest.files or () if file.rows)
        return sorted({file.name for file in files})

    def _part_of_file(self, name: str, file: str | None) -> Part:
        part = self.manifest.tables[stored_name(name)].newest
        if file is None:
            return part
        files = tuple(one for one in part.files or () if one.name == file)
        return Part(part.directory, sum(one.rows for one in files), files)

    def write(
        self,
        rows: DataFrame,
        fold: Fold,
        tables: Mapping[str, pa.Schema],
        name_of: Callable[[str], str] = str,
        purpose: str = "",
    ) -> Sequence[str]:
        """Fold the rows in tasks of one job, and write `tables`; `name_of` maps a table to the name
        under which it is stored. Return the summaries of the folds.
        """
        self.spark.sparkContext.setJobDescription(purpose or f"write {', '.join(tables)}")
        places = {
            name: OutputTable(self.writer.fresh_directory(name_of(name)), schema)
            for name, schema in tables.items()
        }
        result = write_tables(rows, fold, self.writer.place, places, self.account.report)
        entries = {
            name_of(name): self._entry(name_of(name), place, result.files[name])
            for name, place in places.items()
        }
        self.update(tables={**self.manifest.tables, **entries})
        return result.summaries

    def _entry(self, name: str, place: OutputTable, files: tuple[StoredFile, ...]) -> TableEntry:
        schema = from_arrow_schema(place.schema).json() if is_staged(name) else None
        older = self.writer.merge(name, self.plan.older_parts(name))
        return self.writer.entry_of(place.directory, files, older, schema)

    @cached_property
    def observed_tables(self) -> ObservedTables:
        """Observed tables of the source, known once the input is read."""
        return self.source.observe(self.description, self.options)

    @property
    def states(self) -> list[StepInput]:
        """Last states of the peers of the run that is appended to, the newest part last."""
        entry = self.base.carry.get(CARRIED) if self.base else None
        return (
            self.rows_of_parts(CARRIED, entry.parts, self.source.tables[CARRIED]) if entry else []
        )

    def row_count(self, name: str) -> int:
        """Return the number of rows of a table, including parts that stay."""
        return self.manifest.tables[name].rows

    @property
    def most_peers(self) -> int:
        """Number of peers; an upper bound until they are numbered."""
        if "peers" in self.manifest.tables:
            return self.row_count("peers")
        earlier = self.base.tables["peers"].rows if self.base else 0
        return earlier + self.row_count(stored_name("names"))

    def final_manifest(self) -> Manifest:
        """Return the manifest without staged tables, with the tables that later appends need."""
        carry = {}
        if self.source.appendable and not self.manifest.ended:
            carry = {name: self._carried_entry(name) for name in self.source.carried}
        tables = {
            name: entry for name, entry in self.manifest.tables.items() if not is_staged(name)
        }
        return shorten_inputs(
            self.writer, replace(self.manifest, tables=tables, carry=carry), self.base
        )

    def commit_unchanged(self) -> None:
        """Commit the run that is appended to, with the new quarantine, inputs and headers."""
        assert self.base is not None
        now = self.manifest
        tables = {**self.base.tables, "quarantine": now.tables["quarantine"]}
        description = {**vars(self.description), "notes": {**self.base.notes, **now.notes}}
        changed = replace(
            self.base, inputs=now.inputs, skipped=now.skipped, tables=tables, **description
        )
        grown = self.plan.next_generation(changed)
        self.writer.commit(shorten_inputs(self.writer, grown, self.base))

    def _carried_entry(self, name: str) -> TableEntry:
        """Return the entry of a folded table for later appends."""
        entry = self.manifest.tables[stored_name(name)]
        older = self.writer.merge(stored_name(name), *self.plan.carried_parts(name))
        return replace(entry, rows=entry.rows + sum(part.rows for part in older), older=older)


def stored_name(name: str) -> str:
    """Return the name under which the run stores a folded table."""
    return name if name == "quarantine" else _FOLDED + name


@dataclass(frozen=True)
class Stage:
    """A step of an ingest that makes tables, committed completely or not at all."""

    name: str
    work: Callable[[Job], None]
    format: int = 1
    """Raise it when the stage writes something else, or when later stages and appends use it
    differently: tables of another format are made again, and never appended to."""
