"""The plan of an append: which intervals, rows and files of a run it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.ingest.inputs import late
from vizpub.ingest.inputs.late import NAMING
from vizpub.ingest.plan import IngestPlan, JobView, end_tick
from vizpub.ingest.sources.folded import CARRIED
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.ingest.tasks.staged import NAMED_AGAIN, ingest_step
from vizpub.ingest.tasks.steps import StepInput
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
from vizpub.runstore.rewriting import RowChange
from vizpub.runstore.store import StoredRun, StoredTable

_REWRITTEN = ("peers", "topics", "attributes")
"""Small tables that an append writes again in full."""
_FOLDED_OF_MESSAGES = ("publications", "receptions", "unreported")
"""Folded tables of messages: an append evaluates them together with what came before."""
_MESSAGES = ("publications", "metrics/messages", "missed", "rejections")
"""Tables whose rows are needed with the messages that recent events name."""


class AppendPlan(IngestPlan):
    """Plan of an append: add new input to a run, and leave settled intervals as written."""

    def __init__(self, job: JobView, base: Manifest, clock: Clock) -> None:
        super().__init__(job)
        self._base, self._clock = base, clock
        """The run that is appended to."""
        self._older: dict[str, tuple[Part, ...]] = {}

    @property
    def since(self) -> int:
        """First interval that the append may change.

        Bridging a missing report changes intervals before the new input. Without new input, the
        end of the run closes what is open in its last interval.
        """
        last = self._clock.last
        return min(last + 1 - self._job.options.gap_tolerance, self._job.clock.last)

    @property
    def boundary(self) -> Boundary:
        """Boundary of the append, complete once messages are numbered; the run's end if it is
        idle.
        """
        if self.is_idle:
            messages = self._base_run.rows("publications")
            return Boundary(end_tick(self._clock), self._clock.last + 1, messages, messages)
        return self._job.manifest.boundary or super().boundary

    @property
    def are_maximal(self) -> bool:
        """False: periods that continue are joined to earlier ones."""
        return False

    @property
    def is_idle(self) -> bool:
        """True if all new input is late, and does not end the run."""
        return self._job.clock.last == self._clock.last and not self._job.manifest.ended

    def combine_counts(self, counted: RunCounts) -> RunCounts:
        """Add the counts of new input to those of the run; see IngestPlan."""
        source, earlier = self._job.source, self._base.totals
        if not earlier:  # an earlier version kept none
            return counted
        combined = source.combine_tallies([earlier, counted])
        if why := source.find_reversal(combined, earlier, self._job.options):
            raise NeedsSettling(self._base.name, why)
        return combined

    def check_facts(self, unknown: Sequence[str]) -> None:
        """Check that the input reports the same facts as the run. Raises: NeedsSettling."""
        unknown_before, unknown_now = set(self._base.unknown), set(unknown)
        for names, verb in (
            (unknown_before - unknown_now, "reports"),
            (unknown_now - unknown_before, "lacks"),
        ):
            if names:
                raise NeedsSettling(
                    self._base.name,
                    f"the new input {verb} {', '.join(sorted(names))}, unlike the run",
                )

    def find_boundary(self) -> Boundary | None:
        """Find the first message to evaluate again, and the earliest interval of it and later ones.

        It is the earliest that new input names or that was published in an unsettled interval.
        """
        since = self.since
        if "publications" not in self._base.tables:
            return Boundary(since, since, 0)
        self._job.make_from_whole_input([ingest_step("named_again")], [NAMED_AGAIN])
        self._job.flush()
        message_count = self._base.tables["publications"].rows
        least = partial(late.least_value, self._base_run)
        open_yet = least("message", Since("interval", since), "publications")
        first = min(self._named_messages[0], message_count, open_yet)
        interval = min(since, least("interval", Since("message", first), *NAMING))
        recent = least("message", Since("interval", interval), *NAMING)
        return Boundary(since, interval, first, min(first, recent))

    @cached_property
    def _named_messages(self) -> tuple[int, int]:
        """First open message that new input names, and the number of final ones that it names."""
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
    def _base_run(self) -> StoredRun:
        return StoredRun(self._job.writer.directory, self._base)

    @cached_property
    def _first_open(self) -> int:
        """Number of the first message that is not final."""
        return late.first_open_message(self._base_run)

    def late_messages(self) -> int:
        """Count the final messages that this and earlier input names."""
        earlier = self._base.notes.get(LATE_MESSAGES, 0)
        return earlier + (self._named_messages[1] if "publications" in self._base.tables else 0)

    @property
    def variables(self) -> dict[str, int | str]:
        """Variables of ingest.sql for an append.

        Periods that ended before `since` are settled. One that was open ends at the end of the
        last observed interval, unless it continues.
        """
        published = self._base.tables.get("publications")
        return {
            "unsettled": self.since,
            "end_before": end_tick(self._clock),
            "last_before": self._clock.last,
            "boundary": self.boundary.interval,
            "first_open": self._first_open,
            "messages_before": published.rows if published else 0,
        }

    def earlier_rows(self, name: str) -> list[StepInput]:
        """Return names, messages from the boundary on, and unsettled periods of the run."""
        if name == "publications":
            numbered = self._job.manifest.boundary
            since = Since("message", numbered.message) if numbered else None
        else:
            since = None if name in _REWRITTEN else Since("valid_to", self.since)
        names = ("links", "dangling_links") if name == "links" else (name,)
        return [
            rows
            for stored in names
            if (entry := self._base.tables.get(stored))
            for rows in self._job.rows_of_parts(stored, entry.parts, table(stored).arrow, since)
        ]

    def carried_rows(self, name: str) -> list[StepInput]:
        """Return the message rows that earlier ingests kept, from the boundary on."""
        if name not in _FOLDED_OF_MESSAGES or (entry := self._base.carry.get(name)) is None:
            return []
        schema, at = self._job.source.tables[name], self.boundary.interval
        recent = Since("interval", at) if "interval" in schema.names else Since("valid_to", at + 1)
        return self._job.rows_of_parts(name, entry.parts, schema, recent)

    def carried_parts(self, name: str) -> tuple[Sequence[Part], RowChange | None]:
        """Return the parts of a folded table that later appends need, and the change of rows where
        parts are joined: only the last state of a peer stays, if a report can go on from it.
        """
        parts = self._base.carry[name].parts if name in self._base.carry else ()
        if name != CARRIED:
            return parts, None
        manifest = self._job.manifest
        are_needed = self._job.source.needs_old_states(manifest.totals, self._job.options)
        since = Since("interval", -OPEN if are_needed else manifest.final)
        return [one for one in parts if one.reaching(since).files != ()], _last_states(since)

    def needed_parts(self, name: str) -> tuple[tuple[Part, ...], Since | None]:
        """Return the older parts of a table, and the condition for the rows that are needed of
        them.

        These are periods that hold at some tick from the boundary on, events from it on, and the
        messages that these name.
        """
        parts, boundary = self.older_parts(name), self.boundary
        if not parts:
            return parts, None
        if "valid_to" in table(name).names:
            tick = boundary.interval * self._job.clock.ticks_per_interval
            # Whether a subscription holds at an arrival is unknown in the interval where it ends.
            return parts, Since("valid_to", tick if name == "subscriptions" else tick + 1)
        if name in _MESSAGES:
            return parts, Since("message", boundary.least_message)
        return parts, Since("interval", boundary.interval)

    def settled_parts(self, name: str) -> tuple[Part, ...]:
        """Return parts with settled intervals after the boundary; none if all are measured
        again.
        """
        if self.boundary.interval >= self.since or name not in self._base.tables:
            return ()
        return self._base.tables[name].parts

    def older_parts(self, name: str) -> tuple[Part, ...]:
        """Return the parts of a table up to the boundary."""
        if name in _REWRITTEN or name not in self._base.tables:
            return ()
        if name not in self._older:  # a cut writes files
            parts = self._base.tables[name].parts
            self._older[name] = self._job.writer.cut(name, parts, self._cut(name))
        return self._older[name]

    def next_generation(self, manifest: Manifest) -> Manifest:
        """Return the manifest as the generation after that of the run that is appended to."""
        changes = (*self._base.boundaries, Change(self._base.identity, self.boundary))
        number, boundaries = self._base.generation + 1, changes[-MOST_BOUNDARIES:]
        open_from = late.first_open_interval(StoredRun(self._job.writer.directory, manifest))
        return replace(manifest, generation=number, boundaries=boundaries, open_from=open_from)

    def _cut(self, name: str) -> Cut | None:
        """Return the condition for rows of existing parts that stay; null = all stay."""
        columns = table(name).names
        if "valid_to" in columns:
            return Cut("valid_to", self.boundary.period)
        if "message" in columns:
            return Cut("message", self.boundary.message)
        return Cut("interval", self.boundary.interval) if name.startswith("metrics/") else None


def _last_states(since: Since) -> RowChange:
    """Return a function that leaves the first state that it sees of each peer, if `since` selects
    it.
    """
    seen = set[str]()

    def leave(rows: pa.RecordBatch) -> pa.RecordBatch:
        peers = rows["peer"].to_pylist()
        older = pa.array([peer in seen for peer in peers])
        seen.update(peers)
        return rows.filter(pc.and_not(pc.greater_equal(rows[since.column], since.least), older))

    return leave
