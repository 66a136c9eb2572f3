"""The source: logs of the gossipsub interoperability tester.

They report what traces of go-libp2p-pubsub report, and are folded alike; what they lack is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import Kind, Read, Row, Split, lines, refused
from vizpub.ingest.sources.base import (
    Description,
    Observed,
    SourceOptions,
    Tallies,
    first_lines,
    most_are,
)
from vizpub.ingest.sources.libp2p.events import Event, Refused, Type
from vizpub.ingest.sources.libp2p.facts import INTERVAL_US, Judge, Tally
from vizpub.ingest.sources.libp2p.fold import MESH
from vizpub.ingest.sources.libp2p.interop import Log, is_line
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.tasks.fold import Counted

_PARTIAL = "logs of received messages only, without sent messages and links"
_UNCOUNTED = frozenset({"dropped", "rpcs_sent", "rpcs_received"})


class Interop(Libp2p):
    """See vizpub.ingest.sources.base.Source, and for what it shares Libp2p."""

    name = "interop"
    unknown = (
        "traffic in bytes (the logs have no sizes)",
        "connections between peers (the logs have only the mesh)",
        "rejected messages, and sends dropped because a queue was full",
        "RPCs (a line is one entry of an RPC)",
    )

    def recognises(self, path: str, head: bytes) -> str | None:
        """'log', by content alone."""
        return "log" if most_are(first_lines(head), is_line) else None

    def layers(self, files: Sequence[InputFile]) -> frozenset[str]:
        """The mesh."""
        del files
        return frozenset({MESH})

    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """Whole files: their first line says whose they are."""
        return [Split(number, file.path) for number, file in enumerate(files)]

    def reader(
        self,
        files: Sequence[InputFile],
        options: SourceOptions,
        tallies: Callable[[Read], Tallies] | None = None,
        counted: Counted | None = None,
    ) -> Read:
        """Reads logs."""
        del files, tallies
        return _LogReader(Judge.of(options.interval_us or INTERVAL_US, counted), options.max_line)

    def describe(
        self, counted: Counted, before: Counted | None, options: SourceOptions
    ) -> Description:
        """As Libp2p.describe; says where logs report received messages alone."""
        found, partial = super().describe(counted, before, options), counted["partial_logs"]
        if _are_partial(counted):
            return replace(found, unknown=("links", "topics", "traffic", *self.unknown))
        return replace(found, notes={**found.notes, _PARTIAL: partial} if partial else found.notes)

    def observe(self, run: Description, options: SourceOptions) -> Observed:
        """As Libp2p.observe; it is not known what was dropped, nor which entries were one RPC."""
        found = super().observe(run, options)
        assert found.traffic is not None
        if _are_partial(run.totals):
            return replace(found, links=None, subscriptions=None, traffic=None)
        uncounted = ", ".join(_UNCOUNTED)
        return replace(found, traffic=f"SELECT * EXCLUDE ({uncounted}) FROM ({found.traffic})")


def _are_partial(counted: Counted) -> bool:
    tally = Tally.of(counted)
    return 0 < tally.logs == tally.partial_logs


@dataclass(frozen=True)
class _LogReader:
    """What logs hold: events as vizpub.ingest.sources.libp2p.reader gives them."""

    judge: Judge
    max_line: int | None = None

    def __call__(self, split: Split) -> Iterator[Row]:
        """The rows of a file."""
        tally, log = self.judge.tally(), Log()
        for line in lines(split, self.max_line):
            if line.fault:
                yield refused(split, line.number, line.fault, line.text)
            elif line.text and not line.text.isspace():
                try:
                    events = list(log.events(line.text))
                    for event in events:
                        self.judge.count(event, tally, split, line.number)
                except Refused as reason:
                    yield refused(split, line.number, str(reason), line.text)
                    continue
                yield from (_row(event, split.file, line.number) for event in events)
        tally.unknown.update(log.unknown)
        tally.logs, tally.partial_logs = 1, int(log.is_partial)
        yield Row(Kind.TALLY, record=json.dumps(tally.plain).encode())


def _row(event: Event, file: int, line: int) -> Row:
    """For the peer that it is of: of a subscription, the other one."""
    record, is_heard = msgspec.msgpack.encode(event), event.type == Type.JOIN
    peer = event.other if is_heard else event.peer
    return Row(Kind.RECORD, peer, event.time, int(is_heard), file, line, None, record)
