"""What the stages of one ingest share: committed tables to read, and how to commit more."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.frames import conform
from analytics.measures import ENGINES, Measures
from ingest.manifest import Boundary, Cut, Manifest, TableEntry
from ingest.sources import source_named
from ingest.sources.base import BEFORE, InputFile, Source, SourceOptions
from ingest.store import RunWriter
from model.clock import Clock
from model.errors import UnknownName
from model.tables import table

_MADE_ANEW = ("peers", "topics")
"""Small tables that an append writes whole."""
_OBSERVED_ONCE = ("publications", "receptions", "rejections", "untold")
"""What was observed of messages: what later input says of them is judged together with it."""
_WRITERS = 4
"""Tables of one stage written at once: one is planned while another runs."""

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

    @property
    def manifest(self) -> Manifest:
        """The run as committed so far."""
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
    def boundary(self) -> Boundary:
        """Where what this ingest makes begins."""
        return self.manifest.boundary or Boundary(self.since, self.since, 0)

    def table(self, name: str) -> DataFrame | None:
        """A committed table, with what was there before; null if it is not known."""
        entry = self.manifest.tables.get(name)
        return None if entry is None else self._read(entry)

    def known(self, name: str) -> DataFrame:
        """A committed table that is there in any case."""
        frame = self.table(name)
        assert frame is not None, name
        return frame

    def made(self, name: str) -> DataFrame | None:
        """What this ingest wrote of a table: all of it from the boundary on."""
        entry = self.manifest.tables.get(name)
        return None if entry is None else self._read(TableEntry(entry.directory, entry.rows))

    def before(self, name: str) -> DataFrame | None:
        """A table of the run that is appended to, or what that carries; null if there is none."""
        if self.base is None:
            return None
        entry = {**self.base.tables, **self.base.carry}.get(name)
        return None if entry is None else self._read(entry)

    def _read(self, entry: TableEntry) -> DataFrame:
        parts = []
        for part in entry.parts:
            rows = self.spark.read.parquet(_location(self.writer.directory / part.directory))
            parts.append(rows.where(F.col(part.cut.column) < part.cut.below) if part.cut else rows)
        return reduce(DataFrame.unionByName, parts)

    def staged(self, prefix: str) -> dict[str, DataFrame]:
        """The tables `staged/<prefix>.<name>`, by name."""
        start = f"staged/{prefix}."
        names = [name for name in self.manifest.tables if name.startswith(start)]
        return {name.removeprefix(start): self.known(name) for name in names}

    def parsed(self) -> dict[str, DataFrame]:
        """What the source parsed, and what the run that is appended to carries for it."""
        tables = self.staged("parsed")
        if self.base is not None:
            carried = (name for name in self.base.carry if not name.startswith("observed."))
            tables |= {f"{BEFORE}{name}": self._read(self.base.carry[name]) for name in carried}
            totals = self.spark.createDataFrame([self.base.totals])
            tables[f"{BEFORE}totals"] = totals
        return tables

    def commit(self, stage: str, tables: Tables, **changes: Any) -> None:
        """Write the tables side by side, then name them all at once."""
        known = {name: frame for name, frame in tables.items() if frame is not None}
        with ThreadPoolExecutor(_WRITERS) as pool:
            written = list(pool.map(self._write, known, known.values()))
        entries = {name: self._entry(name, path) for name, path in zip(known, written, strict=True)}
        self.writer.commit(self.manifest.with_stage(stage, entries, **changes))

    def _entry(self, name: str, path: Path) -> TableEntry:
        older = None
        if self.base is not None and name not in _MADE_ANEW:
            older = self.base.tables.get(name)
        return self.writer.entry(path, older, self._cut(name) if older else None)

    def _cut(self, name: str) -> Cut | None:
        """How far what is there of a table stays; null = all of it."""
        columns = table(name).names
        if "vt" in columns:
            return Cut("vt", self.boundary.version)
        if "message" in columns:
            return Cut("message", self.boundary.message)
        return Cut("interval", self.boundary.interval) if name.startswith("metrics/") else None

    def carried(self) -> dict[str, TableEntry]:
        """What a later append is to find: the tables `staged/carry.…`, and observed messages."""
        found = {}
        for name, entry in self.manifest.tables.items():
            kind, _, short = name.partition(".")
            if kind == "staged/carry":
                found[short] = entry
            elif kind == "staged/observed" and short in _OBSERVED_ONCE:
                older = self.base.carry.get(f"observed.{short}") if self.base else None
                path = self.writer.directory / entry.directory
                found[f"observed.{short}"] = self.writer.entry(path, older)
        return found

    def _write(self, name: str, frame: DataFrame) -> Path:
        directory = self.writer.fresh_directory(name)
        if not name.startswith("staged/"):
            meant = table(name)
            frame = conform(frame, meant).sortWithinPartitions(*meant.key)
        frame.write.parquet(_location(directory))
        return directory


def _location(directory: Path) -> str:
    # Hadoop's configuration may say that a path without a scheme is elsewhere.
    return f"file://{directory.absolute()}"
