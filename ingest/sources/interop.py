"""The source: logs of the gossipsub interoperability tester.

They report what traces of go-libp2p-pubsub report, and are folded alike; what they lack is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from ingest.files import InputFile
from ingest.reader import Kind, Read, Row, Split, lines, refused
from ingest.sources.base import (
    Description,
    Observed,
    SourceOptions,
    Tallies,
    first_lines,
    most_are,
)
from ingest.sources.libp2p.events import Event, Refused, Type
from ingest.sources.libp2p.facts import Tally
from ingest.sources.libp2p.fold import MESH
from ingest.sources.libp2p.interop import Log, is_line
from ingest.sources.libp2p.source import Libp2p

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNCOUNTED = frozenset({"dropped", "rpcs_sent", "rpcs_received"})


class Interop(Libp2p):
    """See ingest.sources.base.Source, and for what it shares Libp2p."""

    name = "interop"
    unknown = (
        "traffic in bytes (the logs have no sizes)",
        "connections between peers (the logs have only the mesh)",
        "rejected messages, and sends given up because a queue was full",
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
    ) -> Read:
        """Reads logs."""
        del files, tallies
        return _LogReader(options.max_line)

    def observe(
        self, tables: Mapping[str, DataFrame], run: Description, options: SourceOptions
    ) -> Observed:
        """As Libp2p.observe; it is not known what was dropped, nor which entries were one RPC."""
        found = super().observe(tables, run, options)
        assert found.traffic is not None
        columns = (
            f"CAST(NULL AS BIGINT) AS {name}" if name in _UNCOUNTED else name
            for name in found.traffic.columns
        )
        return replace(found, traffic=found.traffic.selectExpr(*columns))


@dataclass(frozen=True)
class _LogReader:
    """What logs hold: events as ingest.sources.libp2p.reader gives them."""

    max_line: int | None = None

    def __call__(self, split: Split) -> Iterator[Row]:
        """The rows of a file."""
        tally, log = Tally(), Log()
        for line in lines(split, self.max_line):
            if line.fault:
                yield refused(split, line.number, line.fault, line.text)
            elif line.text and not line.text.isspace():
                try:
                    events = list(log.events(line.text))
                except Refused as reason:
                    yield refused(split, line.number, str(reason), line.text)
                    continue
                for event in events:
                    tally.see(event)
                    yield _row(event, split.file, line.number)
        yield Row(Kind.TALLY, record=json.dumps(tally.plain).encode())


def _row(event: Event, file: int, line: int) -> Row:
    """For the peer that it is of: of a subscription, the other one."""
    record, is_heard = msgspec.msgpack.encode(event), event.type == Type.JOIN
    peer = event.other if is_heard else event.peer
    return Row(Kind.RECORD, peer, event.time, int(is_heard), file, line, None, record)
