"""The source: logs of the gossipsub interoperability tester.

They report what traces of go-libp2p-pubsub report, and are folded alike; what they lack is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    InputLine,
    InputRow,
    InputSplit,
    RowKind,
    SplitReader,
    rows_of_lines,
    tally_row,
)
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    SourceInput,
    SourceOptions,
    first_lines,
    most_are,
)
from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent
from vizpub.ingest.sources.libp2p.facts import TraceJudge, TraceTally
from vizpub.ingest.sources.libp2p.fold import MESH
from vizpub.ingest.sources.libp2p.interop import NodeLog, is_line
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.tasks.fold import RunCounts

_PARTIAL = "logs of received messages only, without sent messages and links"
_UNCOUNTED = frozenset({"dropped", "rpcs_sent", "rpcs_received"})


class Interop(Libp2p):
    """The source `interop`: a Libp2p whose reader takes logs."""

    name = "interop"
    every_layer = frozenset({MESH})
    unknown = (
        "traffic in bytes (the logs have no sizes)",
        "connections between peers (the logs have only the mesh)",
        "rejected messages, and sends dropped because a queue was full",
        "RPCs (a line is one entry of an RPC)",
    )

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'log' by the content alone."""
        return "log" if most_are(first_lines(head), is_line) else None

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return a split for each file, as its first line names its peer."""
        return [InputSplit(number, file.path) for number, file in enumerate(files)]

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of logs."""
        return _LogReader(TraceJudge.of(source_input), source_input.options.max_line)

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe the run like Libp2p, and note logs that report received messages alone."""
        description, partial = super().describe(counted, options), counted["partial_logs"]
        if _are_logs_partial(counted):
            return replace(description, unknown=("links", "topics", "traffic", *self.unknown))
        return replace(
            description,
            notes={**description.notes, _PARTIAL: partial} if partial else description.notes,
        )

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables of Libp2p without dropped sends and RPCs, which logs do not show."""
        observed = super().observe(run, options)
        assert observed.traffic is not None
        if _are_logs_partial(run.totals):
            return replace(observed, links=None, subscriptions=None, traffic=None, control=None)
        uncounted = ", ".join(_UNCOUNTED)
        return replace(
            observed,
            traffic=f"SELECT * EXCLUDE ({uncounted}) FROM ({observed.traffic})",
            control=f"SELECT * EXCLUDE (messages_dropped, ids_dropped) FROM ({observed.control})",
        )


def _are_logs_partial(counted: RunCounts) -> bool:
    tally = TraceTally.of(counted)
    return 0 < tally.logs == tally.partial_logs


@dataclass(frozen=True)
class _LogReader:
    """Reads logs into events like those of vizpub.ingest.sources.libp2p.reader."""

    judge: TraceJudge
    max_line: int | None = None

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a file."""
        tally, log = self.judge.tally(), NodeLog()

        def rows_of(line: InputLine) -> list[InputRow]:
            events = list(log.events(line.text))
            for event in events:
                self.judge.count(event, tally, split, line.number)
            return [_event_row(event, split.file, line.number) for event in events]

        yield from rows_of_lines(split, self.max_line, rows_of)
        tally.unknown.update(log.unknown)
        tally.logs, tally.partial_logs = 1, int(log.is_partial)
        yield tally_row(tally.plain)


def _event_row(event: TraceEvent, file: int, line: int) -> InputRow:
    """Return the row of an event, for the fold of its peer; a subscription is the other peer's."""
    record, is_heard = msgspec.msgpack.encode(event), event.type == EventType.JOIN
    peer = event.other if is_heard else event.peer
    return InputRow(RowKind.RECORD, peer, event.time, int(is_heard), file, line, None, record)
