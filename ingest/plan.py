"""What an ingest makes: a complete run, or the changes that an append makes to one.

The stages ask the plan wherever the two differ; nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame

from ingest import indexing
from ingest.fold import Counted
from ingest.sources.base import Description, Observed, Source, SourceOptions
from ingest.stage import Made
from model.clock import Clock
from model.run import Boundary
from runstore.manifest import Manifest, Part, Since
from runstore.writer import RunWriter


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

    @property
    def folded(self) -> dict[str, DataFrame]:
        """The tables that the source folded, by name."""

    @property
    def observed(self) -> Observed:
        """What the source observed in the input."""

    def carried(self, name: str, since: Since | None = None) -> DataFrame | None:
        """A folded table, or such rows of it, of the run that is appended to; null if it has
        none.
        """

    def rows_of(self, name: str, parts: Sequence[Part], since: Since | None = None) -> DataFrame:
        """The rows of parts of a table, or such rows of them, up to their cuts."""


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
    def are_maximal(self) -> bool:
        """Whether observed periods are maximal already."""
        return self._job.source.settled

    @property
    def is_idle(self) -> bool:
        """Whether the input changes no table."""
        return False

    def counts(self, counted: Counted) -> Counted:
        """The counts of all input, with that of the run that is appended to. Raises: NeedsSettling
        where they show that what it has was judged wrongly.
        """
        return counted

    def check(self, unknown: Sequence[str]) -> None:
        """Raises: NeedsSettling where the input reports other things than the run."""

    def find_boundary(self, observed: Observed) -> Boundary | None:
        """Where new rows begin; null where all rows are new."""
        del observed
        return None

    def late_messages(self) -> int:
        """How many messages the input names that no append changes any more."""
        return 0

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

    def unheard(self, rows: DataFrame) -> DataFrame:
        """The traffic or gauges of intervals that the run does not have yet."""
        return rows

    def with_older(self, made: Made, *names: str) -> Made:
        """Add the rows that stay of these tables that a stage makes, as far as the intervals from
        the boundary on need them.
        """
        del names
        return made

    def stays(self, name: str) -> tuple[tuple[Part, ...], Since | None]:
        """The parts of a table that stay beside what this ingest writes, and which of their rows
        the intervals from the boundary on need; null = all.
        """
        return self.older(name), None

    def settled(self, name: str) -> tuple[Part, ...]:
        """The parts of a metrics table with intervals from the boundary on that are settled."""
        del name
        return ()

    def older(self, name: str) -> tuple[Part, ...]:
        """The parts of a table that stay beside what this ingest writes."""
        del name
        return ()

    def next_generation(self, made: Manifest) -> Manifest:
        """The manifest, with its generation and what the last ones changed."""
        return made


def end_of(clock: Clock) -> int:
    """The tick after the last interval."""
    return clock.sampling_tick(clock.last) + 1
