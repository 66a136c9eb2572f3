"""What the stages of one ingest share: tables to read, and how to commit more.

A large run is committed stage by stage, and a stage reads what earlier ones wrote. A small one
is handed from stage to stage in memory, what is to stay of it is written meanwhile, and all of
it is committed in the end: to begin again costs less than to keep what was staged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from analytics.frames import conform
from analytics.measures import ENGINES, Measures
from ingest.account import Account
from ingest.intact import files_of
from ingest.manifest import Boundary, Cut, Manifest, Part, TableEntry
from ingest.scale import SMALL_RUN
from ingest.sink import Fold, Written, write
from ingest.sources import source_named
from ingest.sources.base import InputFile, Source, SourceOptions
from ingest.sources.folded import CARRIED, FoldedSource, rows_by_peer
from ingest.writer import RunWriter
from model.clock import Clock
from model.errors import UnknownName
from model.tables import table

_MADE_ANEW = ("peers", "topics")
"""Small tables that an append writes whole."""
OBSERVED_ONCE = ("publications", "receptions", "rejections", "untold")
"""What was observed of messages: what later input says of them is judged together with it."""
_WRITERS = 4
"""Tables written at once: one is planned while another runs."""
_WRITTEN = {
    "parquet.page.write-checksum.enabled": "true",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",  # run.json marks it
}
_READ = {"parquet.page.verify-checksum.enabled": "true"}

Tables = Mapping[str, DataFrame | None]
"""Frames to write, by table name; null = not known, and not written."""


@dataclass(frozen=True)
class Measuring:
    """What is to be measured, and by what."""

    layers: tuple[str, ...] | None = None
    """Layers that the overlay's metrics count; null = all."""
    engine: str = "auto"
    """One of analytics.measures.ENGINES."""
    measures: Measures = field(default_factory=Measures)

    def __post_init__(self) -> None:
        """Raises: UnknownName for an engine there is not."""
        if self.engine not in ENGINES:
            raise UnknownName("engine", self.engine, ENGINES)

    @property
    def options(self) -> dict[str, Any]:
        """For run.json: what changes the tables; null where it is as ever."""
        usual, asked = Measures(), self.measures
        return {
            "layers": None if self.layers is None else sorted(self.layers),
            "engine": None if self.engine == Measuring.engine else self.engine,
            "betweenness": None if asked.betweenness else False,
            "budget": None if asked.budget == usual.budget else asked.budget,
        }


@dataclass(frozen=True)
class Job:
    """One ingest under way."""

    spark: SparkSession
    writer: RunWriter
    files: tuple[InputFile, ...]
    options: SourceOptions
    measuring: Measuring
    small: bool = False
    """See ingest.scale; the session is tuned for it."""
    account: Account = field(default_factory=Account)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    """What this ingest has made of each table, as far as it was asked for."""
    _writes: dict[str, Future[TableEntry]] = field(init=False, default_factory=dict)
    _listed: dict[str, TableEntry] = field(init=False, default_factory=dict)
    """Tables of a small run that were written at once."""
    _pool: ThreadPoolExecutor = field(
        init=False, default_factory=lambda: ThreadPoolExecutor(_WRITERS)
    )

    @property
    def manifest(self) -> Manifest:
        """The run as far as it is made."""
        assert self.writer.manifest is not None
        return self.writer.manifest

    @property
    def clock(self) -> Clock:
        """The run's clock, known once the input is parsed."""
        assert self.manifest.clock is not None
        return self.manifest.clock

    @property
    def source(self) -> Source:
        """The source of the run."""
        return source_named(self.manifest.source)

    @property
    def parallelism(self) -> int:
        """Into how many parts Spark cuts what it shuffles."""
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)

    @property
    def base(self) -> Manifest | None:
        """The run that is appended to; null where one is made from all of its input."""
        return self.writer.base

    @property
    def since(self) -> int:
        """The first interval whose state is not settled before this ingest.

        A missing report that is bridged tells of intervals in which nobody knew of it yet.
        """
        if self.base is None or self.base.clock is None:
            return self.clock.first
        return self.base.clock.last + 1 - self.options.gap_tolerance

    @property
    def settled(self) -> bool:
        """What was observed needs no joining of spans, nor clipping to the presence of whoever
        told it; what a run had before goes on, and does.
        """
        source = self.source
        return isinstance(source, FoldedSource) and source.settled and self.base is None

    @property
    def boundary(self) -> Boundary:
        """Where what this ingest makes begins."""
        return self.manifest.boundary or Boundary(self.since, self.since, 0)

    @property
    def outgrown(self) -> bool:
        """A small input has turned out to tell of a large run."""
        if not self.small or self.manifest.clock is None:
            return False
        peers = self._writes.get("peers")
        known = peers.result().rows if peers and peers.done() else 1
        return known * self.clock.intervals > SMALL_RUN

    def has(self, name: str) -> bool:
        """Whether there is anything of the table."""
        return name in self.frames or name in self.manifest.tables

    def rows(self, name: str) -> int:
        """How many rows a table has that is there to stay."""
        if name in self._writes:
            return self._writes[name].result().rows
        return self.listed(name).rows

    def table(self, name: str) -> DataFrame | None:
        """A table, with what was there before; null if it is not known."""
        if (made := self.made(name)) is None:
            return None
        older = [self._read(name, part, None) for part in self._older(name)]
        return self._union([*older, made])

    def known(self, name: str) -> DataFrame:
        """A table that is there in any case."""
        frame = self.table(name)
        assert frame is not None, name
        return frame

    def made(self, name: str) -> DataFrame | None:
        """What this ingest made of a table: all of it from the boundary on."""
        if name not in self.frames and (entry := self.manifest.tables.get(name)):
            self.frames[name] = self._read(name, entry.newest, entry.schema)
        return self.frames.get(name)

    def before(self, name: str) -> DataFrame | None:
        """A table of the run that is appended to, or what that carries; null if there is none."""
        if self.base is None:
            return None
        entry = {**self.base.tables, **self.base.carry}.get(name)
        if entry is None:
            return None
        return self._union([self._read(name, part, entry.schema) for part in entry.parts])

    def staged(self, prefix: str) -> dict[str, DataFrame]:
        """The tables `staged/<prefix>.<name>`, by name."""
        start = f"staged/{prefix}."
        names = [n for n in {**self.manifest.tables, **self.frames} if n.startswith(start)]
        return {name.removeprefix(start): self.known(name) for name in names}

    def commit(
        self,
        stage: str,
        tables: Tables,
        written: Mapping[str, TableEntry] | None = None,
        **changes: Any,
    ) -> None:
        """The stage is done: its tables come into being together, once they are written; some of
        them may be `written` already.

        Those of a small run are there for the next stages at once, and on disk in the end.
        """
        known = {name: _shaped(name, frame) for name, frame in tables.items() if frame is not None}
        entries = dict(written or {})
        if self.small:
            for name, entry in entries.items():
                self._listed[name] = entry
                self.frames[name] = self._read(name, entry.newest, entry.schema)
            for name, frame in known.items():
                whole = frame.coalesce(1)
                self.frames[name] = here = whole.localCheckpoint(eager=False)
                self.account.planned(whole)
                if self._stays(name):
                    self._writes[name] = self._pool.submit(self._write, name, here)
            self.writer.manifest = self.manifest.with_stage(stage, {}, **changes)
        else:
            entries |= zip(known, self._pool.map(self._write, known, known.values()), strict=True)
            self.writer.commit(self.manifest.with_stage(stage, entries, **changes))

    def listed(self, name: str) -> TableEntry:
        """Where a table lies that was written at once."""
        return self._listed.get(name) or self.manifest.tables[name]

    def fold(self, stage: str, source: FoldedSource) -> None:
        """Read and fold the input: the tables of the source come into being together."""
        rows = rows_by_peer(
            self.spark, source, self.files, self.options, self._carried_in(), self.small
        )
        before = self.base.totals if self.base else None
        fold = source.fold(self.files, self.options, before)
        directories, written, told = self._folded(source, fold, rows)
        counted = source.tallied(told)
        if before is None and source.is_refuted(fold, counted, self.options):
            fold = source.fold(self.files, self.options, counted)
            directories, written, told = self._folded(source, fold, rows)
        entries = {}
        for name, schema in source.tables.items():
            files = tuple(one.file for one in written if one.table == name)
            stored, columns = _stored_as(name), from_arrow_schema(schema).json()
            entries[stored] = self.writer.listed(
                directories[name], files, self._older(stored), None if stored == name else columns
            )
        self.commit(stage, {}, entries, totals=counted)

    def _folded(
        self, source: FoldedSource, fold: Fold, rows: DataFrame
    ) -> tuple[dict[str, Path], list[Written], list[str]]:
        directories = {n: self.writer.fresh_directory(_stored_as(n)) for n in source.tables}
        self.spark.sparkContext.setJobDescription("read and fold the input")
        whole = {name: str(path.absolute()) for name, path in directories.items()}
        written, told = write(rows, fold, whole)
        return directories, written, told

    def _carried_in(self) -> DataFrame | None:
        """What the run that is appended to left behind for records that come later."""
        return self.before(CARRIED.removeprefix("carry."))

    def share(self, frames: Mapping[str, DataFrame]) -> None:
        """Tables that are made of others as they are read, and never written."""
        self.frames.update(frames)

    def settle(self) -> None:
        """Wait for what is being written."""
        entries = {name: entry for name, entry in self._listed.items() if self._stays(name)}
        entries |= {name: writing.result() for name, writing in self._writes.items()}
        self.writer.manifest = replace(self.manifest, tables={**self.manifest.tables, **entries})

    def close(self) -> None:
        """End what is under way, and let go of what is kept in memory."""
        self._pool.shutdown(cancel_futures=True)
        self.spark.catalog.clearCache()

    def release(self) -> None:
        """A stage needs no more what it kept in memory, unless others were promised it."""
        if not self.small:
            self.spark.catalog.clearCache()

    def carried(self) -> dict[str, TableEntry]:
        """What a later append is to find: the tables `staged/carry.…`, and observed messages."""
        found = {}
        for name, entry in self.manifest.tables.items():
            kind, _, short = name.partition(".")
            if kind == "staged/carry":
                found[short] = entry
            elif kind == "staged/observed" and short in OBSERVED_ONCE:
                older = self.base.carry.get(f"observed.{short}") if self.base else None
                parts = older.parts if older else ()
                rows = entry.rows + sum(part.rows for part in parts)
                found[f"observed.{short}"] = replace(entry, rows=rows, older=parts)
        return found

    def _stays(self, name: str) -> bool:
        """Whether a table is of the finished run, or of what a later append is to find."""
        if not name.startswith("staged/"):
            return True
        of_messages = name.removeprefix("staged/observed.") in OBSERVED_ONCE
        appendable = self.source.appendable and not self.manifest.ended
        return appendable and (of_messages or name.startswith("staged/carry."))

    def _write(self, name: str, frame: DataFrame) -> TableEntry:
        directory = self.writer.fresh_directory(name)
        self.spark.sparkContext.setJobDescription(f"write {name}")
        frame.write.options(**_WRITTEN).parquet(f"file://{directory.absolute()}")
        schema = frame.schema.json() if name.startswith("staged/") else None
        return self.writer.entry(directory, self._older(name), schema=schema)

    def _older(self, name: str) -> tuple[Part, ...]:
        """What stays of a table of the run that is appended to."""
        if self.base is None or name in _MADE_ANEW or name not in self.base.tables:
            return ()
        return self.writer.cut(self.base.tables[name].parts, self._cut(name))

    def _cut(self, name: str) -> Cut | None:
        """How far what is there of a table stays; null = all of it."""
        columns = table(name).names
        if "vt" in columns:
            return Cut("vt", self.boundary.version)
        if "message" in columns:
            return Cut("message", self.boundary.message)
        return Cut("interval", self.boundary.interval) if name.startswith("metrics/") else None

    def _read(self, name: str, part: Part, schema: str | None) -> DataFrame:
        paths = [_uri(path) for path in files_of(self.writer.directory, part, name)]
        if not paths:
            return self.spark.createDataFrame([], _schema(name, schema))
        rows = self.spark.read.schema(_schema(name, schema)).options(**_READ).parquet(*paths)
        rows = rows.coalesce(1) if self.small else rows
        return rows.where(F.col(part.cut.column) < part.cut.below) if part.cut else rows

    def _union(self, parts: Sequence[DataFrame]) -> DataFrame:
        rows = reduce(DataFrame.unionByName, parts)
        return rows.coalesce(1) if self.small and len(parts) > 1 else rows


def _stored_as(name: str) -> str:
    """Where the run keeps a table that a source folded."""
    if name == "quarantine":
        return name
    return f"staged/{name}" if name == CARRIED else f"staged/parsed.{name}"


def _uri(path: Path) -> str:
    """A file as Spark's readers take it: they see patterns in some names."""
    # Hadoop's configuration may say that a path without a scheme is elsewhere.
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path.absolute()))


def _shaped(name: str, frame: DataFrame) -> DataFrame:
    if name.startswith("staged/"):
        return frame
    meant = table(name)
    return conform(frame, meant).sortWithinPartitions(*meant.key)


def _schema(name: str, told: str | None) -> StructType:
    if told is None:
        return from_arrow_schema(table(name).arrow)
    return StructType.fromJson(json.loads(told))
