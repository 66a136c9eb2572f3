"""What an append changes of a run (see ingest.plan)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.frames import union
from ingest import indexing, late
from ingest.fold import Counted
from ingest.late import NAMING
from ingest.periods import close_at
from ingest.plan import Ingest, Plan, end_of
from ingest.sources.base import Observed
from ingest.stage import Made, tables_of, with_tables
from model.clock import OPEN, Clock
from model.errors import NeedsSettling
from model.run import Boundary
from model.tables import table
from runstore.manifest import LATE_MESSAGES, MOST_BOUNDARIES, Change, Cut, Manifest, Part, Since
from runstore.store import StoredRun

_MADE_ANEW = ("peers", "topics")
"""Small tables that an append writes again in full."""
_OF_MESSAGES = ("publications", "receptions", "rejections", "unreported")
"""Observed tables of messages: an append evaluates them together with what came before."""
_MESSAGES = ("publications", "metrics/messages", "missed", "rejections")
"""Tables whose rows are needed with the messages that recent events name."""


class Growth(Plan):
    """New input is added to a run; what is settled stays as it was written."""

    def __init__(self, job: Ingest, base: Manifest, clock: Clock) -> None:
        super().__init__(job)
        self._base, self._clock = base, clock
        """The run that is appended to."""
        self._older: dict[str, tuple[Part, ...]] = {}

    @property
    def since(self) -> int:
        """Bridging a missing report changes intervals before the new input; without any, the end of
        the run closes what is open in its last interval.
        """
        last = self._clock.last
        return min(last + 1 - self._job.options.gap_tolerance, self._job.clock.last)

    @property
    def boundary(self) -> Boundary:
        """Known in full once the messages are numbered; behind everything, if all came late."""
        if self.is_idle:
            messages = self._stored.rows("publications")
            return Boundary(end_of(self._clock), self._clock.last + 1, messages, messages)
        return self._job.manifest.boundary or super().boundary

    @property
    def are_maximal(self) -> bool:
        """Periods that continue are joined to earlier ones."""
        return False

    @property
    def is_idle(self) -> bool:
        """All of it came late, and does not end the run."""
        return self._job.clock.last == self._clock.last and not self._job.manifest.ended

    def counts(self, counted: Counted) -> Counted:
        """As Plan.counts."""
        source, before = self._job.source, self._base.totals
        if not before:  # an earlier version kept none
            return counted
        known = source.tallied([before, counted])
        if why := source.reverses(known, before):
            raise NeedsSettling(self._base.name, why)
        return known

    def check(self, unknown: Sequence[str]) -> None:
        """Raises: NeedsSettling where the input reports what the run has no table or column for."""
        before, now = set(self._base.unknown), set(unknown)
        for names, what in ((before - now, "reports"), (now - before, "lacks")):
            if names:
                raise NeedsSettling(
                    self._base.name, f"the new input {what} {', '.join(sorted(names))}, unlike it"
                )

    def find_boundary(self, observed: Observed) -> Boundary | None:
        """From the earliest message that is named by new input or was published in an unsettled
        interval; and the earliest interval of it and later messages.
        """
        since = self.since
        if "publications" not in self._base.tables:
            return Boundary(since, since, 0)
        taken = self._base.tables["publications"].rows
        published = self._before("publications", Since("message", self._first_open))
        assert published is not None
        least = partial(late.least, self._stored)
        open_yet = least("message", Since("interval", since), "publications")
        named = published.join(indexing.message_index(observed), "name").select("message")
        first = _least(named, min(taken, open_yet))
        interval = min(since, least("interval", Since("message", first), *NAMING))
        recent = least("message", Since("interval", interval), *NAMING)
        return Boundary(since, interval, first, min(first, recent))

    @property
    def _stored(self) -> StoredRun:
        return StoredRun(self._job.writer.directory, self._base)

    def known(self, name: str, *columns: str) -> indexing.Known | None:
        """Only messages from the boundary on are needed."""
        since = Since("message", self.boundary.message) if name == "publications" else None
        if (frame := self._before(name, since)) is None:
            return None
        return indexing.Known(frame.selectExpr(*columns), self._base.tables[name].rows)

    @cached_property
    def _late(self) -> list[str]:
        """The final messages that the input names."""
        if not self._first_open:
            return []
        published = self._before("publications")
        assert published is not None
        final = published.where(F.col("message") < self._first_open)
        return late.named_again(self._job.observed, final)

    @cached_property
    def _first_open(self) -> int:
        """All messages before this one are final."""
        return late.first_open(self._stored)

    def late_messages(self) -> int:
        """With those of earlier input."""
        before = self._base.notes.get(LATE_MESSAGES, 0)
        return before + len(self._late)

    def unsettled(self, observed: Observed) -> Observed:
        """Periods that end at `since` or later, and what names them."""
        observed = late.left_out(observed, self._late) if self._late else observed
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
            peers = union([observed.peers, reporters])
            found["peers"] = peers.dropDuplicates(["name"])
        return replace(observed, **found)

    def of_messages(self, observed: Observed, messages: DataFrame | None) -> Observed:
        """Rows from the boundary on, of this input and of earlier input."""
        job = self._job
        before = job.source.observe(self._carried(), job.described, job.options)
        found = {}
        for name in _OF_MESSAGES:
            parts = [part for of in (before, observed) if (part := getattr(of, name)) is not None]
            if parts:
                rows = union(parts).where(F.col("interval") >= self.boundary.interval)
                if messages is not None and "message" in rows.columns:
                    named = messages.select(F.col("name").alias("message"))
                    rows = rows.join(named, "message", "left_semi")
                found[name] = rows
        return replace(observed, **found)

    def _carried(self) -> dict[str, DataFrame]:
        """What earlier ingests kept of messages, from the boundary on; other tables are empty."""
        folded, at = self._job.folded, self.boundary.interval
        recent = {
            name: Since("interval", at)
            if "interval" in self._job.source.tables[name].names
            else Since("valid_to", at + 1)
            for name in self._base.carry.keys() & {*_OF_MESSAGES}
        }
        kept = {name: self._job.carried(name, since) for name, since in recent.items()}
        return {
            name: frame if (frame := kept.get(name)) is not None else folded[name].limit(0)
            for name in folded
        }

    def going_on(self, periods: DataFrame, *tables: str) -> DataFrame:
        """A period that was open ends at the end of the last observed interval."""
        end = end_of(self._clock)
        parts = [
            close_at(before, end)
            for name in tables
            if (before := self._before(name, Since("valid_to", self.since))) is not None
        ]
        return union([periods, *parts])

    def unheard(self, rows: DataFrame) -> DataFrame:
        """After the last interval of the run."""
        return rows.where(F.col("interval") > self._clock.last)

    def with_older(self, made: Made, *names: str) -> Made:
        """The rows of `stays`."""
        found = tables_of(made)
        for name in found.keys() & {*names}:
            parts, needed = self.stays(name)
            if parts:
                rows = self._job.rows_of(name, parts, needed)
                found[name] = union([rows, found[name]])
        return with_tables(type(made), found)

    def _needed(self, name: str) -> Since:
        """The rows of a table that the intervals from the boundary on need."""
        columns, at = table(name).names, self.boundary
        if "valid_to" in columns:
            return Since("valid_to", at.interval * self._job.clock.ticks_per_interval + 1)
        if name in _MESSAGES:
            return Since("message", at.named)
        return Since("interval", at.interval)

    def stays(self, name: str) -> tuple[tuple[Part, ...], Since | None]:
        """Periods that hold at some tick from the boundary on; events from it on, and the messages
        that they name.
        """
        parts = self.older(name)
        return parts, self._needed(name) if parts else None

    def settled(self, name: str) -> tuple[Part, ...]:
        """None where all intervals from the boundary on are measured."""
        if self.boundary.interval >= self.since or name not in self._base.tables:
            return ()
        return self._base.tables[name].parts

    def older(self, name: str) -> tuple[Part, ...]:
        """Up to the boundary."""
        if name in _MADE_ANEW or name not in self._base.tables:
            return ()
        if name not in self._older:  # a cut writes files
            parts = self._base.tables[name].parts
            self._older[name] = self._job.writer.cut(name, parts, self._cut(name))
        return self._older[name]

    def next_generation(self, made: Manifest) -> Manifest:
        """One more than the run that is appended to."""
        changes = (*self._base.boundaries, Change(self._base.identity, self.boundary))
        number, kept = self._base.generation + 1, changes[-MOST_BOUNDARIES:]
        open_from = late.open_from(StoredRun(self._job.writer.directory, made))
        return replace(made, generation=number, boundaries=kept, open_from=open_from)

    def _cut(self, name: str) -> Cut | None:
        """Which rows of the existing parts of a table stay; null = all."""
        columns = table(name).names
        if "valid_to" in columns:
            return Cut("valid_to", self.boundary.period)
        if "message" in columns:
            return Cut("message", self.boundary.message)
        return Cut("interval", self.boundary.interval) if name.startswith("metrics/") else None

    def _before(self, name: str, since: Since | None = None) -> DataFrame | None:
        """A table, or such rows of it, of the run that is appended to; null if it has none."""
        if (entry := self._base.tables.get(name)) is None:
            return None
        return self._job.rows_of(name, entry.parts, since)


def _least(rows: DataFrame, limit: int) -> int:
    """The least value of the only column; not more than a limit."""
    row = rows.agg(F.min(rows.columns[0])).first()
    return limit if row is None or row[0] is None else min(int(row[0]), limit)
