"""The plan of an ingest: make a complete run, or change one by an append.

The stages ask the plan wherever the two differ; nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from vizpub.analytics.steps import Step
from vizpub.ingest.sources.base import Source, SourceOptions
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.ingest.tasks.steps import StepInput
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import Table
from vizpub.model.run import Boundary
from vizpub.runstore.manifest import Manifest, Part, Since
from vizpub.runstore.rewriting import RowChange
from vizpub.runstore.writer import RunWriter


class JobView(Protocol):
    """Members of vizpub.ingest.job.Job that a plan uses."""

    writer: RunWriter

    @property
    def options(self) -> SourceOptions:
        """Options of the source."""

    @property
    def manifest(self) -> Manifest:
        """Manifest of the run so far."""

    @property
    def clock(self) -> Clock:
        """Clock of the run."""

    @property
    def source(self) -> Source:
        """The source of the run."""

    def make_from_whole_input(self, steps: Sequence[Step], makes: Sequence[Table]) -> None:
        """Make tables from the whole input, by steps in one task."""

    def flush(self) -> None:
        """Run the steps that are pending."""

    def rows_of_parts(
        self, name: str, parts: Sequence[Part], schema: pa.Schema, since: Since | None = None
    ) -> list[StepInput]:
        """Return the rows of parts of a table, or those that `since` selects."""


class IngestPlan:
    """Plan of a run that is made from all of its input."""

    def __init__(self, job: JobView) -> None:
        self._job = job

    @property
    def since(self) -> int:
        """First interval whose state is not settled before this ingest."""
        return self._job.clock.first

    @property
    def boundary(self) -> Boundary:
        """Interval, tick and message from which this ingest makes rows."""
        return Boundary(self.since, self.since, 0)

    @property
    def are_maximal(self) -> bool:
        """True if observed periods are maximal already."""
        return self._job.source.settled

    @property
    def is_idle(self) -> bool:
        """True if the input changes no table."""
        return False

    def combine_counts(self, counted: RunCounts) -> RunCounts:
        """Return the counts of all input, including that of the run that is appended to.

        Raises: NeedsSettling if they show that records of that run were judged wrongly.
        """
        return counted

    def check_facts(self, unknown: Sequence[str]) -> None:
        """Check that the input reports the same facts as the run. Raises: NeedsSettling."""

    def find_boundary(self) -> Boundary | None:
        """Return the boundary from which rows are new; null if all are."""
        return None

    def late_messages(self) -> int:
        """Count the messages of the input that no append changes any more."""
        return 0

    @property
    def variables(self) -> dict[str, int | str]:
        """Variables of ingest.sql that an append sets."""
        return {
            "unsettled": -OPEN,
            "end_before": OPEN,
            "last_before": -OPEN,
            "boundary": -OPEN,
            "first_open": 0,
            "messages_before": 0,
        }

    def earlier_rows(self, name: str) -> list[StepInput]:
        """Return the rows of a table that an append joins to new ones, or numbers new ones
        after.
        """
        del name
        return []

    def carried_rows(self, name: str) -> list[StepInput]:
        """Return rows of a folded table from earlier ingests, for the messages to evaluate."""
        del name
        return []

    def carried_parts(self, name: str) -> tuple[Sequence[Part], RowChange | None]:
        """Return the parts of a folded table from earlier ingests that later appends need, and the
        change of their rows where parts are joined.
        """
        del name
        return (), None

    def needed_parts(self, name: str) -> tuple[tuple[Part, ...], Since | None]:
        """Return the parts of a table that stay beside what this ingest writes, and the condition
        for the rows that intervals from the boundary on need; null = all.
        """
        return self.older_parts(name), None

    def settled_parts(self, name: str) -> tuple[Part, ...]:
        """Return the parts of a metrics table with settled intervals after the boundary."""
        del name
        return ()

    def older_parts(self, name: str) -> tuple[Part, ...]:
        """Return the parts of a table that stay beside what this ingest writes."""
        del name
        return ()

    def next_generation(self, manifest: Manifest) -> Manifest:
        """Return the manifest with its generation, and the boundaries of the last ones."""
        return manifest


def end_tick(clock: Clock) -> int:
    """Return the tick after the last interval."""
    return clock.sampling_tick(clock.last) + 1
