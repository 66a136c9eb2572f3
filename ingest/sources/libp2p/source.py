"""The source: traces of go-libp2p-pubsub.

Streams opened and closed are links of layer `streams`, GRAFT and PRUNE links of layer
`mesh`; JOIN and LEAVE are subscriptions. All keep the time they happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

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
from vizpub.ingest.sources.libp2p import json_events, protobuf
from vizpub.ingest.sources.libp2p.facts import (
    INTERVAL_US,
    TraceJudge,
    TraceTally,
    describe_trace,
    epoch_us,
    find_outliers,
)
from vizpub.ingest.sources.libp2p.fold import MESH, STREAMS, TABLES, EventFold
from vizpub.ingest.sources.libp2p.observed import observe_trace
from vizpub.ingest.sources.libp2p.reader import EventReader
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.ingest.tasks.sink import Fold

_BINARY = "protobuf"


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
    every_layer = frozenset({STREAMS, MESH})
    options = frozenset({"interval_us", "reporters_only", "max_line"})
    tables = TABLES
    unknown: tuple[str, ...] | None = None
    """Facts that no input of the source reports; null = those that its events lack."""

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
        return EventFold(source_input.paths, epoch, judge.interval_us)

    def _first_time(self, source_input: SourceInput) -> int | None:
        """Return the time of the earliest of the files' first events; null if they have none."""
        read_rows = self.reader(source_input)
        each = (read_rows(split) for split in self.splits(source_input.files) if split.start == 0)
        firsts = (next((r.time for r in rows if r.kind == RowKind.RECORD), None) for rows in each)
        return min((time for time in firsts if time is not None), default=None)

    def is_refuted(self, fold: Fold, counted: RunCounts, options: SourceOptions) -> bool:
        """Return True if another event belongs to an earlier interval, or there are outliers."""
        assert isinstance(fold, EventFold)
        first, interval_us = counted["first"], options.interval_us or INTERVAL_US
        is_earlier = first is not None and epoch_us(first, interval_us) != fold.epoch_us
        return is_earlier or bool(find_outliers(counted, interval_us))

    def combine_tallies(self, tallies: Tallies) -> RunCounts:
        """Return the sum of the tallies."""
        return TraceTally.together(tallies).plain

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
        return observe_trace(run, options)
