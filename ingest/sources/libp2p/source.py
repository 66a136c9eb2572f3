"""The source: traces of go-libp2p-pubsub.

Streams opened and closed are links of layer `streams`, GRAFT and PRUNE links of layer
`mesh`; JOIN and LEAVE are subscriptions. All keep the time they happened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from vizpub.analytics.steps import Step
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import InputSplit, RowKind, SplitReader, line_splits
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    Source,
    SourceInput,
    SourceOptions,
    Tallies,
    first_lines,
    most_are,
)
from vizpub.ingest.sources.folded import NAMES_OF_REPORTERS
from vizpub.ingest.sources.libp2p import json_events, protobuf
from vizpub.ingest.sources.libp2p.events import REQUESTS
from vizpub.ingest.sources.libp2p.facts import (
    INTERVAL_US,
    TraceJudge,
    TraceTally,
    describe_trace,
    epoch_us,
    find_outliers,
)
from vizpub.ingest.sources.libp2p.fold import COUNTED, MESH, STREAMS, TABLES, EventFold
from vizpub.ingest.sources.libp2p.presence import find_stays
from vizpub.ingest.sources.libp2p.reader import EventReader
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.ingest.tasks.sink import Fold
from vizpub.model.clock import Clock

_BINARY = "protobuf"
_STAYS = Step(
    "ingest/sources/libp2p/presence.py",
    "",
    "observed/stays",
    whole=("whole/peers",),
    function=lambda peers, _: find_stays(peers),
)
_NAMED = """
    UNION ALL
    -- A peer that does not report is present while a present reporter holds a stream to it.
    SELECT n.peer, greatest(n.valid_from, s.valid_from), least(n.valid_to, s.valid_to)
    FROM folded.named n
    JOIN observed.stays s
        ON s.peer = n.src AND s.valid_from < n.valid_to AND n.valid_from < s.valid_to
    WHERE n.peer NOT IN (SELECT peer FROM observed.stays)
"""
_MARKED = """
    SELECT r.*{marks}
    FROM folded.receptions r
    LEFT JOIN (
        SELECT peer, message, min(arrivals) AS refused
        FROM folded.requests WHERE other IS NULL GROUP BY ALL
    ) USING (peer, message)
    LEFT JOIN (
        SELECT peer, message, other AS previous_hop, min(arrivals) AS requested
        FROM folded.requests WHERE other IS NOT NULL GROUP BY ALL
    ) USING (peer, message, previous_hop)
"""
_MARKS = {
    "idontwant": """
        coalesce(arrival > refused, false) AS after_idontwant,
        coalesce(arrival <= refused, false) AS before_idontwant""",
    "iwant": """
        CASE WHEN previous_hop IS NOT NULL THEN coalesce(arrival > requested, false) END
            AS by_iwant""",
}
"""What the requests of a peer say of the copies that it receives, by their kind."""


def _first_records(head: bytes) -> Iterator[bytes]:
    """Yield the records in the head of a protobuf stream; the last may be cut."""
    with suppress(protobuf.StreamBroken):
        yield from protobuf.split_records([head])


class Libp2p(Source):
    """The source `libp2p`.

    The open state of a peer that fails lasts beyond its presence, as only other peers log when it
    was gone. So the observed periods are not settled.
    """

    name = "libp2p"
    fold: ClassVar[type[EventFold]] = EventFold
    """What a source that is read into the same events folds them with."""
    every_layer = frozenset({STREAMS, MESH})
    options = frozenset({"interval_us", "reporters_only", "max_line"})
    tables = TABLES
    unknown: tuple[str, ...] | None = None
    """Facts that no input of the source reports; null = those that its events lack."""

    names_messages: ClassVar[bool] = True
    """Its control entries name messages."""
    files_overlap: ClassVar[bool] = False
    """A peer has several files that overlap in time, so none is a copy."""

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'json' or 'protobuf' by the content alone."""
        if most_are(first_lines(head), json_events.is_event):
            return "json"
        return _BINARY if most_are(_first_records(head), protobuf.is_event) else None

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return ranges of lines, and protobuf files as a whole: a stream of length-prefixed
        records cannot be read from its middle.
        """
        numbered = enumerate(files)
        binary = [InputSplit(n, file.path) for n, file in numbered if file.encoding == _BINARY]
        return line_splits(files, leave_out={_BINARY}) + binary

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of files of either encoding."""
        numbers = (n for n, file in enumerate(source_input.files) if file.encoding == _BINARY)
        judge, limit = TraceJudge.of(source_input), source_input.options.max_line
        return EventReader(frozenset(numbers), judge, limit)

    def make_fold(self, source_input: SourceInput) -> EventFold:
        """Create the fold. Without earlier counts, assume that some file's first event is the
        first.
        """
        judge = TraceJudge.of(source_input)
        first = judge.outliers.first if source_input.counted else self._first_time(source_input)
        epoch = epoch_us(first or 0, judge.interval_us)
        return self.fold(source_input.paths, epoch, judge.interval_us)

    def _first_time(self, source_input: SourceInput) -> int | None:
        """Return the time of the earliest of the files' first events; null if they have none."""
        read_rows = self.reader(source_input)
        each = (read_rows(split) for split in self.splits(source_input.files) if split.start == 0)
        firsts = (next((r.time for r in rows if r.kind >= RowKind.RECORD), None) for rows in each)
        return min((time for time in firsts if time is not None), default=None)

    def is_refuted(self, fold: Fold, counted: RunCounts, options: SourceOptions) -> bool:
        """Return True if another event belongs to an earlier interval, or there are outliers."""
        assert isinstance(fold, EventFold)
        first, interval_us = counted["first"], options.interval_us or INTERVAL_US
        is_earlier = first is not None and epoch_us(first, interval_us) != fold.epoch_us
        return is_earlier or bool(find_outliers(counted, interval_us))

    def combine_tallies(self, tallies: Tallies) -> RunCounts:
        """Return the sum of the tallies."""
        counts = TraceTally.together(tallies).plain
        return {**counts, "copies": None} if self.files_overlap else counts

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe a run whose clock is Unix time in µs from the first event's interval on.

        Raises: InputError if there is no event, or if a peer's events stand in two files.
        """
        description = describe_trace(TraceTally.of(counted), options.interval_us or INTERVAL_US)
        return description if self.unknown is None else replace(description, unknown=self.unknown)

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables; traffic has a row for each interval in which a reporter was
        present.
        """
        links, names = "FROM folded.links", "FROM folded.names"
        presence = "SELECT peer, valid_from, valid_to FROM observed.stays"
        if options.reporters_only:
            links += " WHERE dst IN (SELECT peer FROM whole.peers)"
            names = NAMES_OF_REPORTERS.format(reporter="peer")
        elif TraceTally.of(run.totals).named:
            presence += _NAMED
        return ObservedTables(
            peers="SELECT peer AS name FROM whole.peers",
            names=names,
            presence=presence,
            links=links,
            subscriptions="FROM folded.subscriptions",
            traffic=_traffic_text(run.clock),
            control="FROM folded.control",
            gauges="FROM folded.gauges" if TraceTally.of(run.totals).writes else None,
            publications="FROM folded.publications",
            receptions=self._receptions_text(run),
            rejections="FROM folded.rejections",
            functions=(_STAYS,),
        )

    def requests_told(self, tally: TraceTally) -> Collection[str]:
        """Return the kinds of REQUESTS whose messages the input names; writers that leave out whom
        deliveries came from leave out IDONTWANT, too.
        """
        return () if tally.deliveries and not tally.with_previous_hop else REQUESTS

    def _receptions_text(self, run: RunDescription) -> str:
        told = self.requests_told(TraceTally.of(run.totals)) if self.names_messages else ()
        marks = "".join(f", {text}" for kind, text in _MARKS.items() if kind in told)
        return _MARKED.format(marks=marks) if marks else "FROM folded.receptions"


def _traffic_text(clock: Clock) -> str:
    """Return the SQL text of traffic: by peer and interval, RPCs and the entries and messages in
    them.

    A trace is complete, so a present peer without events has no traffic: 0. `dropped`
    counts DROP_RPC events, which are not sent. Bytes are in no trace: unknown.
    """
    length = clock.ticks_per_interval
    nothing = ", ".join(f"0 AS {name}" for name in COUNTED)
    return f"""
        SELECT peer, unnest(range(valid_from, valid_to))::INTEGER AS interval, {", ".join(COUNTED)}
        FROM (
            FROM folded.traffic
            UNION ALL BY NAME
            SELECT
                peer, last // {length} + 1 AS valid_from,
                least((valid_to - 1) // {length}, {clock.last}) + 1 AS valid_to,
                {nothing}
            FROM observed.stays
            WHERE peer IN (SELECT peer FROM folded.peers)
        )
    """
