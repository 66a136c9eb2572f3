"""The source: traces of go-libp2p-pubsub.

Streams opened and closed are links of layer `streams`, GRAFT and PRUNE links of layer
`mesh`; JOIN and LEAVE are subscriptions. All keep the time they happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import Kind, Read, Split, line_splits
from vizpub.ingest.sources.base import (
    Description,
    Observed,
    Source,
    SourceOptions,
    Tallies,
    first_lines,
    most_are,
)
from vizpub.ingest.sources.libp2p import json_events, protobuf
from vizpub.ingest.sources.libp2p.facts import INTERVAL_US, Judge, Tally, describe, epoch_us
from vizpub.ingest.sources.libp2p.fold import MESH, STREAMS, TABLES, EventFold
from vizpub.ingest.sources.libp2p.observed import observe
from vizpub.ingest.sources.libp2p.reader import EventReader
from vizpub.ingest.tasks.fold import Counted
from vizpub.ingest.tasks.sink import Fold

_BINARY = "protobuf"


def _first_records(head: bytes) -> Iterator[bytes]:
    """The records in the head of a protobuf stream; the last may be cut."""
    with suppress(protobuf.StreamBroken):
        yield from protobuf.records([head])


class Libp2p(Source):
    """See vizpub.ingest.sources.base.Source.

    The open state of a peer that fails lasts beyond its presence, as only other peers log when it
    was gone. So the observed periods are not settled.
    """

    name = "libp2p"
    options = frozenset({"interval_us", "reporters_only", "max_line"})
    tables = TABLES
    unknown: tuple[str, ...] | None = None
    """What no input of the source reports; null = what its events show to be missing."""

    def recognises(self, path: str, head: bytes) -> str | None:
        """'json' or 'protobuf', by content alone."""
        if most_are(first_lines(head), json_events.is_event):
            return "json"
        return _BINARY if most_are(_first_records(head), protobuf.is_event) else None

    def layers(self, files: Sequence[InputFile]) -> frozenset[str]:
        """Streams and the mesh."""
        del files
        return frozenset({STREAMS, MESH})

    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """Ranges of lines; protobuf files as a whole, as a stream of length-prefixed records
        cannot be read from its middle.
        """
        numbered = enumerate(files)
        binary = [Split(n, file.path) for n, file in numbered if file.encoding == _BINARY]
        return line_splits(files, leave_out={_BINARY}) + binary

    def reader(
        self,
        files: Sequence[InputFile],
        options: SourceOptions,
        tallies: Callable[[Read], Tallies] | None = None,
        counted: Counted | None = None,
    ) -> Read:
        """Reads files of either encoding."""
        del tallies
        judge = Judge.of(options.interval_us or INTERVAL_US, counted)
        numbers = (n for n, file in enumerate(files) if file.encoding == _BINARY)
        return EventReader(frozenset(numbers), judge, options.max_line)

    def fold(
        self, files: Sequence[InputFile], options: SourceOptions, counted: Counted | None
    ) -> EventFold:
        """Without earlier counts, assumes that the first event of some file is the first of all."""
        interval_us = options.interval_us or INTERVAL_US
        first = (
            Judge.of(interval_us, counted).outliers.first
            if counted
            else self._first(files, options)
        )
        epoch = epoch_us(first or 0, interval_us)
        return EventFold([file.path for file in files], epoch, interval_us)

    def _first(self, files: Sequence[InputFile], options: SourceOptions) -> int | None:
        """The earliest of the files' first events; null if they have none."""
        read = self.reader(files, options)
        each = (read(split) for split in self.splits(files) if split.start == 0)
        firsts = (next((r.time for r in rows if r.kind == Kind.RECORD), None) for rows in each)
        return min((time for time in firsts if time is not None), default=None)

    def is_refuted(self, fold: Fold, counted: Counted, options: SourceOptions) -> bool:
        """Whether an event elsewhere belongs to an earlier interval, or there are outliers."""
        assert isinstance(fold, EventFold)
        first, interval_us = counted["first"], options.interval_us or INTERVAL_US
        is_earlier = first is not None and epoch_us(first, interval_us) != fold.epoch_us
        return is_earlier or bool(Judge.of(interval_us, counted).outliers)

    def tallied(self, tallies: Tallies) -> Counted:
        """The sum of the tallies."""
        return Tally.together(tallies).plain

    def describe(
        self, counted: Counted, before: Counted | None, options: SourceOptions
    ) -> Description:
        """The clock is Unix time in µs from the first event's interval on.

        Raises: InputError where there is no event, or where a peer's events stand in two files.
        """
        del before
        found = describe(Tally.of(counted), options.interval_us or INTERVAL_US)
        return found if self.unknown is None else replace(found, unknown=self.unknown)

    def observe(self, run: Description, options: SourceOptions) -> Observed:
        """Traffic has a row for each interval in which a reporter was present."""
        return observe(run, options)
