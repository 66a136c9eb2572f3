"""What the stages of an ingest share: reading, writing and committing tables.

A large run is committed after each stage, and a stage reads the files of earlier ones. The tables
of a small run are handed on in memory, and the run is committed once at the end: starting again
costs less than storing staged tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, Concatenate, Generic, ParamSpec

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from analytics.frames import conform
from ingest import frames
from ingest.account import Account
from ingest.files import InputFile
from ingest.fold import Counted, KeyFold
from ingest.growth import Growth
from ingest.measuring import Measuring
from ingest.plan import Plan
from ingest.sink import AsTheyAre, Fold, Place, store, write
from ingest.sources import source_named
from ingest.sources.base import Description, Observed, Source, SourceOptions
from ingest.sources.folded import CARRIED, rows_by_peer
from ingest.spark.scale import SMALL_RUN
from ingest.stage import Made, is_staged, names_of, tables_of, with_tables
from model.clock import Clock
from runstore.inputs import shortened
from runstore.manifest import Manifest, Part, Since, StoredFile, TableEntry
from runstore.store import StoredTable
from runstore.writer import RunWriter

_FOLDED = "staged/folded."

P = ParamSpec("P")


class Outgrown(Exception):
    """A small input turned out to describe a large run. Never leaves the pipeline."""


_Watch = Callable[[str], AbstractContextManager[object]]
"""A context manager around the stage of that name."""


@dataclass
class Job:
    """A running ingest."""

    spark: SparkSession
    writer: RunWriter
    files: tuple[InputFile, ...]
    options: SourceOptions
    measuring: Measuring
    small: bool = False
    """See ingest.spark.scale; the session is tuned for it."""
    account: Account = field(default_factory=Account)
    watch: _Watch = lambda _: nullcontext()
    note: Callable[[str], None] = lambda _: None
    """Called with notes on the current stage, for the log."""
    keep_going: bool = False
    """Continue even if most records are refused."""
    seen: int = field(init=False, default=0)
    """Records that this ingest has read."""
    here: dict[str, pa.Table] = field(init=False, default_factory=dict)
    """Tables that this ingest has made, if it has them in memory."""
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
        """The number of shuffle partitions."""
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)

    def do(self, stage: Stage[P, Made], *given: P.args, **more: P.kwargs) -> Made:
        """Run the stage unless it is done, and return its tables.

        Raises: errors of the stage; Outgrown.
        """
        if stage.name in self.manifest.stages:
            names, tables = names_of(stage.makes), self.manifest.tables
            handed = {name: self.stored(name) for name in names if name in tables}
        else:
            with self.watch(stage.name):
                handed = self._hand_on(tables_of(stage.work(self, *given, **more)))
                self._commit(stage.name)
        if self._outgrown:
            raise Outgrown
        return with_tables(stage.makes, handed)

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
            self.spark.catalog.clearCache()  # frames that the stage persisted

    def _hand_on(self, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """The tables of a stage as later stages read them: from their files, or in a small run from
        memory.
        """
        there = {name for name, entry in self.manifest.tables.items() if entry.stage is None}
        new = {name: frame for name, frame in tables.items() if name not in there}
        if self.small:
            kept = self._keep_here(new)
        else:
            self._name(self._write_all({n: self._shaped(n, frame) for n, frame in new.items()}))
            kept = {name: self.stored(name) for name in new}
        return {**tables, **kept}

    def _keep_here(self, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Staged tables are written only if they are too large to be handed on in memory."""
        made = {n: self._in_shape(n, rows) for n, rows in self._collected(tables).items()}
        self.here |= made
        little = {name for name, rows in made.items() if frames.is_little(rows)}
        written = {n: rows for n, rows in made.items() if n not in little or not is_staged(n)}
        places = self._places({name: rows.schema for name, rows in written.items()})
        files = store(written, places)
        self._name({name: self._entry(name, places[name], files[name]) for name in written})
        return {
            name: frames.from_memory(self.spark, rows, from_arrow_schema(rows.schema))
            if name in little
            else self.stored(name)
            for name, rows in made.items()
        }

    def once(self, **given: DataFrame) -> list[DataFrame]:
        """The frames, computed once although they are read several times."""
        made = self._collected(given) if self.small else {}
        little = {name: rows for name, rows in made.items() if frames.is_little(rows)}
        return [
            frames.from_memory(self.spark, little[name], frame.schema)
            if name in little
            else frame.persist()
            for name, frame in given.items()
        ]

    def _collected(self, made: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
        if not made:
            return {}
        self.spark.sparkContext.setJobDescription(f"make {', '.join(made)}")
        whole = frames.as_one([frame.coalesce(1) for frame in made.values()])
        rows = whole.toArrow()
        self.account.planned(whole)
        return dict(zip(made, frames.apart(rows), strict=True))

    def write_rows(
        self, rows: DataFrame, fold: Fold, tables: Mapping[str, pa.Schema]
    ) -> Sequence[str]:
        """Let tasks fold the rows and write `tables` of a stage. Returns the folds' summaries."""
        entries, summaries = self._write([(rows, fold)], tables)
        self._name(entries)
        return summaries

    def _write_all(self, tables: Mapping[str, DataFrame]) -> dict[str, TableEntry]:
        schemas = {name: to_arrow_schema(frame.schema) for name, frame in tables.items()}
        work = [(frame, AsTheyAre(name)) for name, frame in tables.items()]
        return self._write(work, schemas)[0] if work else {}

    def _write(
        self,
        work: Sequence[tuple[DataFrame, Fold]],
        tables: Mapping[str, pa.Schema],
        kept_as: Callable[[str], str] = str,
        purpose: str = "",
    ) -> tuple[dict[str, TableEntry], Sequence[str]]:
        """Fold rows into tables, in one job. Returns the tables' entries by stored name, and the
        summaries of the folds.
        """
        self.spark.sparkContext.setJobDescription(purpose or f"write {', '.join(tables)}")
        places = self._places(tables, kept_as)
        written = write(work, places)
        kept = {kept_as(name): name for name in places}
        entries = {
            name: self._entry(name, places[of], written.files[of]) for name, of in kept.items()
        }
        return entries, written.summaries

    def _places(
        self, tables: Mapping[str, pa.Schema], kept_as: Callable[[str], str] = str
    ) -> dict[str, Place]:
        """Fresh directories for the tables, by their names before `kept_as`."""
        return {
            name: Place(self.writer.fresh_directory(kept_as(name)), schema)
            for name, schema in tables.items()
        }

    def _entry(self, name: str, place: Place, files: tuple[StoredFile, ...]) -> TableEntry:
        schema = from_arrow_schema(place.schema).json() if is_staged(name) else None
        older = self.writer.merged(name, self.plan.older(name))
        return self.writer.listed(place.directory, files, older, schema)

    def _name(self, tables: Mapping[str, TableEntry]) -> None:
        self.update(tables={**self.manifest.tables, **tables})

    def fold(self) -> None:
        """Read and fold the input: writes the source's tables, and sets the manifest's `totals`."""
        before = self.base.totals if self.base else None
        fold, counted = self._fold(before)
        known = self.plan.counts(counted)
        if self.source.is_refuted(fold, known, self.options):
            _, counted = self._fold(known)
        self.update(totals=counted)

    def _fold(self, before: Counted | None) -> tuple[Fold, Counted]:
        """Read and fold the input, given earlier counts. Returns the fold, and counts."""
        source, files, options = self.source, self.files, self.options
        reader = partial(source.reader, files, options, counted=before)
        carried = self.carried(CARRIED)
        rows = rows_by_peer(self.spark, source.splits(files), reader, carried, self.small)
        fold = source.fold(files, options, before)
        if self.base and self.base.clock and isinstance(fold, KeyFold):
            fold.final = self.base.clock.last
        why = "read and fold the input"
        entries, each = self._write([(rows, fold)], source.tables, _folded_as, why)
        self._name(entries)
        summaries = [json.loads(one) for one in each]
        damaged = dict(chain.from_iterable(one["damaged"].items() for one in summaries))
        read = {file.path for file in self.files}
        inputs = [
            {**file, "damage": damaged.get(file["path"])} if file["path"] in read else file
            for file in self.manifest.inputs
        ]
        self.update(inputs=tuple(inputs))
        self.seen = sum(one["seen"] for one in summaries)
        self.refused = sum((Counter(one["refused"]) for one in summaries), Counter[str]())
        return fold, source.tallied([one["counted"] for one in summaries])

    @cached_property
    def folded(self) -> dict[str, DataFrame]:
        """The tables that the source folded, by their names in the source."""
        names = [name for name in self.manifest.tables if name.startswith(_FOLDED)]
        return {name.removeprefix(_FOLDED): self.stored(name) for name in names}

    @cached_property
    def observed(self) -> Observed:
        """What the source observed in the input; lazy."""
        return self.source.observe(self.folded, self.described, self.options).without_loops()

    def carried(self, name: str, since: Since | None = None) -> DataFrame | None:
        """A folded table, or such rows of it, of the run that is appended to; null if it has
        none.
        """
        if self.base is None or (entry := self.base.carry.get(name)) is None:
            return None
        return self.rows_of(name, entry.parts, since, entry.schema)

    def rows(self, name: str) -> int:
        """The number of rows of a table, including parts that stay."""
        return self.manifest.tables[name].rows

    @property
    def _outgrown(self) -> bool:
        if not self.small or self.manifest.clock is None:
            return False
        known = self.rows("peers") if "peers" in self.manifest.tables else 1
        measured = self.clock.last + 1 - max(self.plan.since, self.clock.first)
        return known * measured > SMALL_RUN

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
        entry = self.manifest.tables[_folded_as(name)]
        before = self.base.carry.get(name) if self.base and name != CARRIED else None
        parts = before.parts if before else ()
        older = self.writer.merged(_folded_as(name), parts)
        return replace(entry, rows=entry.rows + sum(part.rows for part in older), older=older)

    def close(self) -> None:
        """Free cached frames."""
        self.spark.catalog.clearCache()

    def rows_of(
        self,
        name: str,
        parts: Sequence[Part],
        since: Since | None = None,
        schema: str | None = None,
    ) -> DataFrame:
        """The rows of the parts, or such rows of them; `schema` (JSON) where
        model.tables lacks the table. Opens only files that may have such rows.
        """
        shape = self._schema(name, schema)
        arrow = to_arrow_schema(shape)
        stored = StoredTable(self.writer.directory, name, tuple(parts), arrow)
        if not self.small:
            return frames.from_files(self.spark, stored, shape, since)
        if (rows := frames.if_little(stored.scan(since=since), arrow)) is not None:
            return frames.from_memory(self.spark, rows, shape)
        return frames.from_files(self.spark, stored, shape, since).coalesce(1)

    def _shaped(self, name: str, frame: DataFrame) -> DataFrame:
        if is_staged(name):
            return frame
        meant = self.manifest.definition(name)
        return conform(frame, meant).sortWithinPartitions(*meant.key)

    def _in_shape(self, name: str, rows: pa.Table) -> pa.Table:
        """As `_shaped`, of rows in memory."""
        return rows if is_staged(name) else frames.conformed(rows, self.manifest.definition(name))

    def _schema(self, name: str, schema: str | None) -> StructType:
        if schema is None:
            return from_arrow_schema(self.manifest.definition(name).arrow)
        return StructType.fromJson(json.loads(schema))

    def stored(self, name: str) -> DataFrame:
        """What this ingest has written of a table."""
        entry = self.manifest.tables[name]
        return self.rows_of(name, [entry.newest], schema=entry.schema)


def _folded_as(name: str) -> str:
    """The name under which the run stores a folded table."""
    return name if name == "quarantine" else _FOLDED + name


@dataclass(frozen=True)
class Stage(Generic[P, Made]):
    """A function from tables to tables, committed completely or not at all."""

    name: str
    work: Callable[Concatenate[Job, P], Made]
    makes: type[Made]
    format: int = 1
    """Raise it when the stage writes something else, or when later stages and appends use it
    differently: tables of another format are made again, and never appended to."""
