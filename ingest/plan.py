"""What an ingest makes: a complete run, or the changes that an append makes to one.

The stages ask the plan wherever the two differ; nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vizpub.analytics.steps import Step
from vizpub.ingest.sources.base import Source, SourceOptions
from vizpub.ingest.tasks.fold import Counted
from vizpub.ingest.tasks.steps import Taken
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import Table
from vizpub.model.run import Boundary
from vizpub.runstore.manifest import Manifest, Part, Since
from vizpub.runstore.writer import RunWriter


class Ingest(Protocol):
    """The part of vizpub.ingest.job.Job that a plan reads."""

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

    def make_of_whole(self, steps: Sequence[Step], makes: Sequence[Table]) -> None:
        """Make tables of the whole input, by steps in one task."""

    def flush(self) -> None:
        """Make what is held."""


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

    def find_boundary(self) -> Boundary | None:
        """Where new rows begin; null where all rows are new."""
        return None

    def late_messages(self) -> int:
        """How many messages the input names that no append changes any more."""
        return 0

    @property
    def variables(self) -> dict[str, int | str]:
        """The variables of ingest.sql that an append sets."""
        return {
            "unsettled": -OPEN,
            "end_before": OPEN,
            "last_before": -OPEN,
            "boundary": -OPEN,
            "first_open": 0,
            "messages_before": 0,
        }

    def before(self, name: str) -> list[Taken]:
        """The rows of a table of the run that an append joins to new ones, or numbers after."""
        del name
        return []

    def carried(self, name: str) -> list[Taken]:
        """The rows of a folded table, from earlier ingests, of the messages that are evaluated."""
        del name
        return []

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
