"""What the stages of an ingest share: reading, writing and committing tables.

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
from vizpub.analytics.steps import Given, Step
from vizpub.ingest.account import Account
from vizpub.ingest.growth import Growth
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.measures.choice import Measuring
from vizpub.ingest.plan import Plan, end_of
from vizpub.ingest.sources import source_named
from vizpub.ingest.sources.base import Description, Observed, Source, SourceOptions
from vizpub.ingest.sources.folded import CARRIED, OBSERVED
from vizpub.ingest.tasks import frames
from vizpub.ingest.tasks.sink import Fold, Place, write
from vizpub.ingest.tasks.staged import STAGED, is_staged, macros
from vizpub.ingest.tasks.steps import Block, Chain, Later, StepFold, Taken
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import Table
from vizpub.runstore.inputs import shortened
from vizpub.runstore.manifest import Manifest, Part, Since, StoredFile, TableEntry
from vizpub.runstore.store import StoredTable
from vizpub.runstore.writer import RunWriter

_FOLDED = "staged/folded."

_Watch = Callable[[str], AbstractContextManager[object]]
"""A context manager around the stage of that name."""


class _Held(NamedTuple):
    """What `Job.flush` is to make."""

    fold: StepFold
    makes: Mapping[str, pa.Schema]
    then: Callable[[Sequence[str]], None]


@dataclass
class Job:
    """A running ingest."""

    spark: SparkSession
    writer: RunWriter
    files: tuple[InputFile, ...]
    options: SourceOptions
    measuring: Measuring
    small: bool = False
    """See vizpub.ingest.spark.scale; the session is tuned for it."""
    account: Account = field(default_factory=Account)
    watch: _Watch = lambda _: nullcontext()
    note: Callable[[str], None] = lambda _: None
    """Called with notes on the current stage, for the log."""
    keep_going: bool = False
    """Continue even if most records are refused."""
    seen: int = field(init=False, default=0)
    """Records that this ingest has read."""
    _held: list[_Held] = field(init=False, default_factory=list)
    refused: Counter[str] = field(init=False, default_factory=Counter)
    """How many of them were refused, by reason."""

    @property
    def manifest(self) -> Manifest:
        """The manifest of the run so far."""
        assert self.writer.manifest is not None
        return self.writer.manifest

    @property
    def clock(self) -> Clock:
        """The run's clock, known once the input is read."""
        assert self.manifest.clock is not None
        return self.manifest.clock

    @property
    def described(self) -> Description:
        """The source's description of the run."""
        names = (of.name for of in fields(Description))
        return Description(**{name: getattr(self.manifest, name) for name in names})

    def is_known(self, name: str) -> bool:
        """Whether the source reports it, as far as its format says."""
        return name not in self.manifest.unknown

    @property
    def source(self) -> Source:
        """The source of the run."""
        return source_named(self.manifest.source)

    @property
    def base(self) -> Manifest | None:
        """The run that is appended to; null where one is made from all of its input."""
        return self.writer.base

    @cached_property
    def plan(self) -> Plan:
        """What this ingest makes: a whole run, or changes to one."""
        base = self.base
        return Plan(self) if base is None or base.clock is None else Growth(self, base, base.clock)

    @property
    def parallelism(self) -> int:
        """How many tasks there are to be at once."""
        partitions = self.spark.conf.get("spark.sql.shuffle.partitions")
        return 1 if self.small else int(partitions or 1)

    def do(self, stage: Stage) -> None:
        """Run the stage unless it is done. Raises: errors of the stage."""
        if stage.name not in self.manifest.stages:
            with self.watch(stage.name):
                stage.work(self)
                self._commit(stage.name)

    def update(self, **changes: Any) -> None:
        """Change fields of the manifest; they are committed with the current stage."""
        self.writer.manifest = replace(self.manifest, **changes)

    def _commit(self, stage: str) -> None:
        """Commit all tables and changes since the last stage together."""
        made = {name: entry for name, entry in self.manifest.tables.items() if entry.stage is None}
        done = self.manifest.with_stage(stage, made)
        if self.small:
            self.writer.manifest = done
        else:
            self.writer.commit(done)

    def make_of_whole(self, chosen: Sequence[Step], makes: Sequence[Table]) -> None:
        """Make tables of the whole input, by steps in one task."""
        self.make(chosen, makes, [Block(self.given("all"), self.folded())])

    def make(
        self,
        chosen: Sequence[Step],
        makes: Sequence[Table],
        blocks: Sequence[Block],
        more: Sequence[Table] = (),
        then: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """Let a task make the tables for each block, by those of the steps that they need. `more`
        are tables that folds among the steps make; `then` gets the folds' summaries.

        Of a small input, all that is made of one block is made by one task, in `flush`.
        """
        is_held = self.small and len(blocks) == 1
        if not is_held:
            self.flush()
        chosen = steps.needed(chosen, {of.name for of in makes})
        own = {name for block in blocks for name in block.tables}
        tables = {name: self._taken(name) for name in steps.inputs(chosen) - own}
        fold = StepFold(chosen, tables, makes, blocks)
        schemas = {of.name: of.arrow for of in (*makes, *more)}
        if is_held:
            self._held.append(_Held(fold, schemas, then))
            return
        rows = self.spark.range(0, len(blocks), 1, len(blocks))
        then(self.write(rows, fold, schemas))

    def flush(self, *, last: bool = False) -> None:
        """Let one task make what is held. After the last, no staged table is taken, or written."""
        held, self._held = self._held, []
        if not held:
            return
        made = chain.from_iterable(one.makes.items() for one in held)
        schemas = {name: schema for name, schema in made if not (last and is_staged(name))}
        folds = Chain([one.fold for one in held], frozenset(schemas))
        (summary,) = self.write(self.spark.range(0, 1, 1, 1), folds, schemas)
        for one, told in zip(held, json.loads(summary), strict=True):
            one.then([] if told is None else [told])

    @property
    def tables(self) -> frozenset[str]:
        """The names of the tables that this ingest has made, or that are held."""
        return frozenset(chain.from_iterable(one.makes for one in self._held)) | {
            *self.manifest.tables
        }

    def given(self, part: str, messages: tuple[int, int] | None = None) -> Given:
        """What the texts of the package ask for. `part` of the input is all, some, or rest."""
        clock, end = self.clock, end_of(self.clock)
        variables = {
            **self.plan.variables,
            "end": end,
            "close_at": end if self.manifest.ended else OPEN,
            "are_maximal": self.plan.are_maximal,
            "part": part,
        }
        span = clock.first, clock.last, clock.ticks_per_interval
        known = self.observed.known
        return Given(*span, known, 0, 0, messages=messages, variables=variables, macros=macros())

    def _taken(self, name: str) -> list[Taken]:
        """The rows of a table that steps take, by the name that they give it."""
        of, _, table = name.rpartition("/")
        if of == "whole":
            return self.stored(folded_as(table), self.source.tables[table])
        if of == "before":
            nothing = self.manifest.definition(table).arrow.empty_table()
            return self.plan.before(table) or [Taken(nothing)]
        if of == "observed":  # unknown
            return [Taken(OBSERVED[table].empty_table())]
        if of == "staged":
            return self.stored(name, STAGED[name].arrow)
        return self.needed(name)

    def stored(self, name: str, schema: pa.Schema) -> list[Taken]:
        """What this ingest has written of a table; nothing where it is unknown."""
        if any(name in one.makes for one in self._held):
            return [Taken(Later(name, schema))]
        entry = self.manifest.tables.get(name)
        return self.taken(name, [entry.newest] if entry else [], schema)

    def needed(self, name: str) -> list[Taken]:
        """The rows of a table of the run that the intervals from the boundary on need."""
        parts, since = self.plan.stays(name)
        schema = self.manifest.definition(name).arrow
        older = self.taken(name, parts, schema, since) if parts else []
        return [*older, *self.stored(name, schema)]

    def taken(
        self, name: str, parts: Sequence[Part], schema: pa.Schema, since: Since | None = None
    ) -> list[Taken]:
        """The rows of parts of a table, or such rows of them."""
        stored = StoredTable(self.writer.directory, name, tuple(parts), schema)
        return [Taken(*found) for found in stored.datasets(since)] or [Taken(schema.empty_table())]

    def folded(self, file: str | None = None) -> dict[str, list[Taken]]:
        """The folded tables, or the part of them in files of a name; and what appends kept."""
        return {
            f"folded/{name}": [
                *self.taken(name, [self._of_file(name, file)], schema),
                *([] if file else self.plan.carried(name)),
            ]
            for name, schema in self.source.tables.items()
            if name != "quarantine"
        }

    @property
    def parts(self) -> list[str]:
        """The names of the files that the tasks of the fold wrote, the same in all tables."""
        entries = (self.manifest.tables[folded_as(name)] for name in self.source.tables)
        files = (file for entry in entries for file in entry.newest.files or () if file.rows)
        return sorted({file.name for file in files})

    def _of_file(self, name: str, file: str | None) -> Part:
        whole = self.manifest.tables[folded_as(name)].newest
        if file is None:
            return whole
        kept = tuple(one for one in whole.files or () if one.name == file)
        return Part(whole.directory, sum(one.rows for one in kept), kept)

    def write(
        self,
        rows: DataFrame,
        fold: Fold,
        tables: Mapping[str, pa.Schema],
        name_of: Callable[[str], str] = str,
        purpose: str = "",
    ) -> Sequence[str]:
        """Let tasks fold the rows and write `tables`, in one job; `name_of` gives the names under
        which they are stored. Returns the summaries of the folds.
        """
        self.spark.sparkContext.setJobDescription(purpose or f"write {', '.join(tables)}")
        places = {
            name: Place(self.writer.fresh_directory(name_of(name)), schema)
            for name, schema in tables.items()
        }
        written = write(rows, fold, places)
        entries = {
            name_of(name): self._entry(name_of(name), place, written.files[name])
            for name, place in places.items()
        }
        self.update(tables={**self.manifest.tables, **entries})
        return written.summaries

    def _entry(self, name: str, place: Place, files: tuple[StoredFile, ...]) -> TableEntry:
        schema = from_arrow_schema(place.schema).json() if is_staged(name) else None
        older = self.writer.merged(name, self.plan.older(name))
        return self.writer.listed(place.directory, files, older, schema)

    @cached_property
    def observed(self) -> Observed:
        """The observed tables of the source, once the input is read."""
        return self.source.observe(self.described, self.options)

    @property
    def states(self) -> list[Taken]:
        """The last state of each peer of the run that is appended to."""
        entry = self.base.carry.get(CARRIED) if self.base else None
        return self.taken(CARRIED, entry.parts, self.source.tables[CARRIED]) if entry else []

    def rows(self, name: str) -> int:
        """The number of rows of a table, including parts that stay."""
        return self.manifest.tables[name].rows

    @property
    def most_peers(self) -> int:
        """The number of peers; while they are not numbered yet, at most so many."""
        if "peers" in self.manifest.tables:
            return self.rows("peers")
        before = self.base.tables["peers"].rows if self.base else 0
        return before + self.rows(folded_as("names"))

    def settle(self) -> Manifest:
        """The manifest without staged tables."""
        carry = {}
        if self.source.appendable and not self.manifest.ended:
            carry = {name: self._carry(name) for name in self.source.carried}
        kept = {name: entry for name, entry in self.manifest.tables.items() if not is_staged(name)}
        return shortened(self.writer, replace(self.manifest, tables=kept, carry=carry), self.base)

    def commit_unchanged(self) -> None:
        """Commit the run that is appended to, with what came late and what headers said."""
        assert self.base is not None
        now = self.manifest
        tables = {**self.base.tables, "quarantine": now.tables["quarantine"]}
        told = {**vars(self.described), "notes": {**self.base.notes, **now.notes}}
        made = replace(self.base, inputs=now.inputs, skipped=now.skipped, tables=tables, **told)
        grown = self.plan.next_generation(made)
        self.writer.commit(shortened(self.writer, grown, self.base))

    def _carry(self, name: str) -> TableEntry:
        """The entry of a folded table for later appends; tables of messages keep earlier parts."""
        entry = self.manifest.tables[folded_as(name)]
        before = self.base.carry.get(name) if self.base and name != CARRIED else None
        parts = before.parts if before else ()
        older = self.writer.merged(folded_as(name), parts)
        return replace(entry, rows=entry.rows + sum(part.rows for part in older), older=older)

    def rows_of(self, name: str, parts: Sequence[Part], since: Since | None = None) -> DataFrame:
        """The rows of the parts, or such rows of them. Opens only files that may have such rows."""
        schema = self.manifest.definition(name).arrow
        stored = StoredTable(self.writer.directory, name, tuple(parts), schema)
        return frames.from_files(self.spark, stored, since)


def folded_as(name: str) -> str:
    """The name under which the run stores a folded table."""
    return name if name == "quarantine" else _FOLDED + name


@dataclass(frozen=True)
class Stage:
    """Makes tables, committed completely or not at all."""

    name: str
    work: Callable[[Job], None]
    format: int = 1
    """Raise it when the stage writes something else, or when later stages and appends use it
    differently: tables of another format are made again, and never appended to."""
