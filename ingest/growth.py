"""What an append changes of a run (see vizpub.ingest.plan)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import pyarrow.compute as pc

from vizpub.ingest.inputs import late
from vizpub.ingest.inputs.late import NAMING
from vizpub.ingest.plan import Ingest, Plan, end_of
from vizpub.ingest.tasks.fold import Counted
from vizpub.ingest.tasks.staged import NAMED_AGAIN, step
from vizpub.ingest.tasks.steps import Taken
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import NeedsSettling
from vizpub.model.run import Boundary
from vizpub.model.tables import table
from vizpub.runstore.manifest import (
    LATE_MESSAGES,
    MOST_BOUNDARIES,
    Change,
    Cut,
    Manifest,
    Part,
    Since,
)
from vizpub.runstore.store import StoredRun, StoredTable

_MADE_ANEW = ("peers", "topics")
"""Small tables that an append writes again in full."""
_OF_MESSAGES = ("publications", "receptions", "unreported")
"""Folded tables of messages: an append evaluates them together with what came before."""
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
                    self._base.name,
                    f"the new input {what} {', '.join(sorted(names))}, unlike the run",
                )

    def find_boundary(self) -> Boundary | None:
        """From the earliest message that is named by new input or was published in an unsettled
        interval; and the earliest interval of it and later messages.
        """
        since = self.since
        if "publications" not in self._base.tables:
            return Boundary(since, since, 0)
        self._job.make_of_whole([step("named_again")], [NAMED_AGAIN])
        self._job.flush()
        taken = self._base.tables["publications"].rows
        least = partial(late.least, self._stored)
        open_yet = least("message", Since("interval", since), "publications")
        first = min(self._named_again[0], taken, open_yet)
        interval = min(since, least("interval", Since("message", first), *NAMING))
        recent = least("message", Since("interval", interval), *NAMING)
        return Boundary(since, interval, first, min(first, recent))

    @cached_property
    def _named_again(self) -> tuple[int, int]:
        """The first message that is named and not final, and how many are final."""
        entry = self._job.manifest.tables[NAMED_AGAIN.name]
        schema, first, late_ones = NAMED_AGAIN.arrow, OPEN, 0
        stored = StoredTable(self._job.writer.directory, NAMED_AGAIN.name, entry.parts, schema)
        for rows in stored.scan(["message"]):
            is_open = pc.greater_equal(rows["message"], self._first_open)
            open_ones = rows["message"].filter(is_open)
            first = min([*open_ones.to_pylist(), first])
            late_ones += len(rows) - len(open_ones)
        return first, late_ones

    @property
    def _stored(self) -> StoredRun:
        return StoredRun(self._job.writer.directory, self._base)

    @cached_property
    def _first_open(self) -> int:
        """All messages before this one are final."""
        return late.first_open(self._stored)

    def late_messages(self) -> int:
        """With those of earlier input."""
        before = self._base.notes.get(LATE_MESSAGES, 0)
        return before + (self._named_again[1] if "publications" in self._base.tables else 0)

    @property
    def variables(self) -> dict[str, int | str]:
        """Periods that ended before `since` are settled. One that was open ends at the end of the
        last observed interval, unless it goes on.
        """
        published = self._base.tables.get("publications")
        return {
            "unsettled": self.since,
            "end_before": end_of(self._clock),
            "last_before": self._clock.last,
            "boundary": self.boundary.interval,
            "first_open": self._first_open,
            "messages_before": published.rows if published else 0,
        }

    def before(self, name: str) -> list[Taken]:
        """Names, messages from the boundary on, and periods that are not settled."""
        if name == "publications":
            numbered = self._job.manifest.boundary
            since = Since("message", numbered.message) if numbered else None
        else:
            since = None if name in _MADE_ANEW else Since("valid_to", self.since)
        names = ("links", "dangling_links") if name == "links" else (name,)
        return [
            Taken(*found)
            for stored in names
            if (entry := self._base.tables.get(stored))
            for found in StoredTable(
                self._job.writer.directory, stored, entry.parts, table(stored).arrow
            ).datasets(since)
        ]

    def carried(self, name: str) -> list[Taken]:
        """What earlier ingests kept of messages, from the boundary on."""
        if name not in _OF_MESSAGES or (entry := self._base.carry.get(name)) is None:
            return []
        schema, at = self._job.source.tables[name], self.boundary.interval
        recent = Since("interval", at) if "interval" in schema.names else Since("valid_to", at + 1)
        stored = StoredTable(self._job.writer.directory, name, entry.parts, schema)
        return [Taken(*found) for found in stored.datasets(recent)]

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
