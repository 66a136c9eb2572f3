"""What an ingest makes: a complete run, or the changes that an append makes to one.

The stages ask the plan wherever the two differ; nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.structure import restored
from ingest import indexing
from ingest.periods import close_at
from ingest.sources.base import Description, Observed, Source, SourceOptions
from ingest.stage import Made, tables_of, with_tables
from model.clock import OPEN, Clock
from model.errors import UseError
from model.run import Boundary
from model.tables import table
from runstore.manifest import MOST_BOUNDARIES, Change, Cut, Manifest, Part
from runstore.writer import RunWriter

_MADE_ANEW = ("peers", "topics")
"""Small tables that an append writes again in full."""
_OF_MESSAGES = ("publications", "receptions", "rejections", "unreported")
"""Observed tables of messages: an append evaluates them together with what came before."""


class Ingest(Protocol):
    """The part of ingest.job.Job that a plan reads."""

    writer: RunWriter
    options: SourceOptions

    @property
    def manifest(self) -> Manifest:
        """The manifest of the run so far."""

    @property
    def clock(self) -> Clock:
        """The run's clock."""

    @property
    def source(self) -> Source:
        """The source of the run."""

    @property
    def described(self) -> Description:
        """The source's description of the run."""

    def folded(self) -> dict[str, DataFrame]:
        """The tables that the source folded, by name."""

    def carried(self, name: str) -> DataFrame | None:
        """A folded table of the run that is appended to; null if it has none."""

    def read(self, name: str, part: Part, schema: str | None = None) -> DataFrame:
        """The rows of a part of a table, up to its cut."""

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """The rows of all parts of a table."""


class Plan:
    """A run is made from all of its input."""

    def __init__(self, job: Ingest) -> None:
        self._job = job

    @property
    def since(self) -> int:
        """The first interval whose state is not settled before this ingest."""
        return self._job.clock.first

    @property
    def boundary(self) -> Boundary:
        """Where what this ingest makes begins."""
        return Boundary(self.since, self.since, 0)

    @property
    def settled(self) -> bool:
        """Whether observed periods are maximal already, and within the presence of their
        reporter.
        """
        return self._job.source.settled

    def check(self, unknown: Sequence[str]) -> None:
        """Raises: UseError where the input reports other things than the run."""

    def find_boundary(self, observed: Observed) -> Boundary | None:
        """Where new rows begin; null where all rows are new."""
        del observed
        return None

    def known(self, name: str, *columns: str) -> indexing.Known | None:
        """The indices that a table of the run has already, as `columns`: name (and key), index."""
        del name, columns
        return None

    def unsettled(self, observed: Observed) -> Observed:
        """Leave out periods that ended before, and add the peers that reported before."""
        return observed

    def of_messages(self, observed: Observed, messages: DataFrame | None) -> Observed:
        """Add all earlier observations of the messages that are evaluated now: those in the
        index `messages`.
        """
        del messages
        return observed

    def going_on(self, periods: DataFrame, *tables: str) -> DataFrame:
        """Add the periods of the tables that may still change, up to the last observation."""
        del tables
        return periods

    def unheard(self, traffic: DataFrame) -> DataFrame:
        """The traffic of intervals that the run does not have yet."""
        return traffic

    def whole(self, made: Made) -> Made:
        """Add the rows that stay of the tables that a stage makes."""
        return made

    def alive(self, periods: DataFrame | None) -> DataFrame | None:
        """The periods that hold at some tick from the boundary on."""
        return periods

    def recent(self, rows: DataFrame | None) -> DataFrame | None:
        """The rows of the intervals from the boundary on."""
        return rows

    def structure(self, measured: DataFrame | None) -> DataFrame | None:
        """The structure from the boundary on, of what was measured from `since` on."""
        return measured

    def older(self, name: str) -> tuple[Part, ...]:
        """The parts of a table that stay beside what this ingest writes."""
        del name
        return ()

    def next_generation(self, made: Manifest) -> Manifest:
        """The manifest, with its generation and what the last ones changed."""
        return made


class Growth(Plan):
    """New input is added to a run; what is settled stays as it was written."""

    def __init__(self, job: Ingest, base: Manifest, clock: Clock) -> None:
        super().__init__(job)
        self._base, self._clock = base, clock
        """The run that is appended to."""

    @property
    def since(self) -> int:
        """Bridging a missing report changes intervals before the new input."""
        return self._clock.last + 1 - self._job.options.gap_tolerance

    @property
    def boundary(self) -> Boundary:
        """Known in full once the messages are numbered."""
        return self._job.manifest.boundary or super().boundary

    @property
    def settled(self) -> bool:
        """Periods that continue are joined to earlier ones."""
        return False

    def check(self, unknown: Sequence[str]) -> None:
        """Raises: UseError where the input reports what the run has no table or column for."""
        before, now = set(self._base.unknown), set(unknown)
        for names, what in ((before - now, "reports"), (now - before, "lacks")):
            if names:
                raise UseError(
                    f"the new input {what} {', '.join(sorted(names))}, unlike the run; "
                    "ingest all files of the run again with --replace"
                )

    def find_boundary(self, observed: Observed) -> Boundary | None:
        """From the earliest message that is named by new input or was published in an unsettled
        interval; and the earliest interval of it and later messages.
        """
        published, since = self._before("publications"), self.since
        if published is None:
            return Boundary(since, since, 0)
        named = indexing.message_index(observed).select("name")
        touched = published.join(named, "name").select("message")
        open_yet = published.where(F.col("interval") >= since).select("message")
        first = _least(touched.unionAll(open_yet), self._base.tables["publications"].rows)
        of_them = [
            frame.where(F.col("message") >= first).select("interval")
            for name in ("publications", "receptions", "rejections")
            if (frame := self._before(name)) is not None
        ]
        return Boundary(since, _least(reduce(DataFrame.unionAll, of_them), since), first)

    def known(self, name: str, *columns: str) -> indexing.Known | None:
        """Only messages from the boundary on are needed."""
        if (frame := self._before(name)) is None:
            return None
        taken = self._base.tables[name].rows
        if "message" in frame.columns:
            frame = frame.where(F.col("message") >= self.boundary.message)
        return indexing.Known(frame.selectExpr(*columns), taken)

    def unsettled(self, observed: Observed) -> Observed:
        """Periods that end at `since` or later, and what names them."""
        tables = indexing.observed_tables(observed)
        found = {
            name: frame.where(F.coalesce("valid_to", F.lit(OPEN)) >= self.since)
            for name, frame in tables.items()
            if "valid_to" in frame.columns
        }
        if (reported := self._before("peers")) is not None:
            reporters = reported.where("is_reporter").select(
                "name", "is_reporter", F.lit(None).alias("interval")
            )
            found["peers"] = observed.peers.unionByName(reporters).dropDuplicates(["name"])
        return replace(observed, **found)

    def of_messages(self, observed: Observed, messages: DataFrame | None) -> Observed:
        """Rows from the boundary on, of this input and of earlier input."""
        job = self._job
        before = job.source.observe(self._carried(), job.described, job.options)
        found = {}
        for name in _OF_MESSAGES:
            parts = [part for of in (before, observed) if (part := getattr(of, name)) is not None]
            if parts:
                rows = reduce(DataFrame.unionByName, parts)
                rows = rows.where(F.col("interval") >= self.boundary.interval)
                if messages is not None and "message" in rows.columns:
                    named = messages.select(F.col("name").alias("message"))
                    rows = rows.join(named, "message", "left_semi")
                found[name] = rows
        return replace(observed, **found)

    def _carried(self) -> dict[str, DataFrame]:
        """The folded tables that earlier ingests kept for appends; the other tables are empty."""
        folded = self._job.folded()
        kept = {name: self._job.carried(name) for name in self._base.carry}
        return {
            name: frame if (frame := kept.get(name)) is not None else folded[name].limit(0)
            for name in folded
        }

    def going_on(self, periods: DataFrame, *tables: str) -> DataFrame:
        """A period that was open ends at the end of the last observed interval."""
        end = end_of(self._clock)
        parts = [
            close_at(before.where(F.col("valid_to") >= self.since), end)
            for name in tables
            if (before := self._before(name)) is not None
        ]
        return reduce(DataFrame.unionByName, parts, periods)

    def unheard(self, traffic: DataFrame) -> DataFrame:
        """After the last interval of the run."""
        return traffic.where(F.col("interval") > self._clock.last)

    def whole(self, made: Made) -> Made:
        """Add the older parts of each table."""
        found = {}
        for name, frame in tables_of(made).items():
            older = [self._job.read(name, part) for part in self.older(name)]
            found[name] = self._job.union([*older, frame])
        return with_tables(type(made), found)

    def alive(self, periods: DataFrame | None) -> DataFrame | None:
        """By the column valid_to."""
        start = self.boundary.interval * self._job.clock.ticks_per_interval
        return periods and periods.where(F.col("valid_to") > start)

    def recent(self, rows: DataFrame | None) -> DataFrame | None:
        """By the column interval."""
        return rows and rows.where(F.col("interval") >= self.boundary.interval)

    def structure(self, measured: DataFrame | None) -> DataFrame | None:
        """Settled intervals are read from the metrics tables."""
        if measured is None or self.boundary.interval >= self.since:
            return measured
        peers, topics, overlay = (
            rows.where(F.col("interval").between(self.boundary.interval, self.since - 1))
            for name in ("peers", "topics", "overlay")
            if (rows := self._before(f"metrics/{name}")) is not None
        )
        return measured.unionByName(restored(peers, topics, overlay))

    def older(self, name: str) -> tuple[Part, ...]:
        """Up to the boundary."""
        if name in _MADE_ANEW or name not in self._base.tables:
            return ()
        return self._job.writer.cut(self._base.tables[name].parts, self._cut(name))

    def next_generation(self, made: Manifest) -> Manifest:
        """One more than the run that is appended to."""
        changes = (*self._base.boundaries, Change(self._base.identity, self.boundary))
        number = self._base.generation + 1
        return replace(made, generation=number, boundaries=changes[-MOST_BOUNDARIES:])

    def _cut(self, name: str) -> Cut | None:
        """Which rows of the existing parts of a table stay; null = all."""
        columns = table(name).names
        if "valid_to" in columns:
            return Cut("valid_to", self.boundary.period)
        if "message" in columns:
            return Cut("message", self.boundary.message)
        return Cut("interval", self.boundary.interval) if name.startswith("metrics/") else None

    def _before(self, name: str) -> DataFrame | None:
        """A table of the run that is appended to; null if it has none."""
        if (entry := self._base.tables.get(name)) is None:
            return None
        return self._job.union([self._job.read(name, part) for part in entry.parts])


def end_of(clock: Clock) -> int:
    """The tick after the last interval."""
    return clock.sampling_tick(clock.last) + 1


def _least(rows: DataFrame, limit: int) -> int:
    """The least value of the only column; not more than a limit."""
    row = rows.agg(F.min(rows.columns[0])).first()
    return limit if row is None or row[0] is None else min(int(row[0]), limit)
