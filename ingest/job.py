"""What the stages of one ingest share: committed tables to read, and how to commit more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from analytics.frames import conform
from analytics.measures import ENGINES, Measures
from ingest.manifest import Manifest
from ingest.sources import source_named
from ingest.sources.base import InputFile, Source, SourceOptions
from ingest.store import RunWriter
from model.clock import Clock
from model.errors import UnknownName
from model.tables import table

_WRITERS = 4
"""Tables of one stage written at once: one is planned while another runs."""

Tables = dict[str, DataFrame | None]
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

    def table(self, name: str) -> DataFrame | None:
        """A committed table; null if it is not known."""
        if name not in self.manifest.tables:
            return None
        directory = self.writer.directory / self.manifest.tables[name].directory
        return self.spark.read.parquet(_location(directory))

    def known(self, name: str) -> DataFrame:
        """A committed table that is there in any case."""
        frame = self.table(name)
        assert frame is not None, name
        return frame

    def staged(self, prefix: str) -> dict[str, DataFrame]:
        """The tables `staged/<prefix>.<name>`, by name."""
        start = f"staged/{prefix}."
        names = [name for name in self.manifest.tables if name.startswith(start)]
        return {name.removeprefix(start): self.known(name) for name in names}

    def commit(self, stage: str, tables: Tables, **changes: Any) -> None:
        """Write the tables side by side, then name them all at once."""
        known = {name: frame for name, frame in tables.items() if frame is not None}
        with ThreadPoolExecutor(_WRITERS) as pool:
            written = list(pool.map(self._write, known, known.values()))
        entries = {name: self.writer.entry(path) for name, path in zip(known, written, strict=True)}
        self.writer.commit(self.manifest.with_stage(stage, entries, **changes))

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
