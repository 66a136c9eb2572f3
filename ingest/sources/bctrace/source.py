"""The source: traces of ethp2p's simulator, which netviz plays (bctrace).

A file begins with a header, `{"v": 1, "t0": "2026-03-28T00:00:00Z", "nodes": ["n0", …],
"topology": {"nodes": [{"num": 0, "upload_bw_mbps": 50, …}], …}, "peer_ids": ["12D3…", …]}`, and may
end with a footer, `{"end": true, …}`. Lines between are events, `[µs since t0, node, code, …]`: of
GossipSub, as a tracer of go-libp2p-pubsub reports them, or of ethp2p's own sessions. They are
folded like traces of go-libp2p-pubsub; what they lack is unknown. Parts of messages become gauges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import msgspec

from vizpub.ingest.inputs.reader import (
    InputLine,
    InputRow,
    InputSplit,
    RecordRefused,
    RowKind,
    SplitReader,
    lines,
    rows_of_lines,
    tally_row,
)
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    SourceInput,
    SourceOptions,
    first_lines,
    or_none,
)
from vizpub.ingest.sources.bctrace.events import CONTROL, ETHP2P, PARTS, SENT, Transfer, read_events
from vizpub.ingest.sources.bctrace.fold import HEARD, TRANSFERRED, TraceFold
from vizpub.ingest.sources.bctrace.header import Header
from vizpub.ingest.sources.libp2p.events import REQUESTS, EventType, TraceEvent, rows_of_event
from vizpub.ingest.sources.libp2p.facts import TraceJudge, TraceTally
from vizpub.ingest.sources.libp2p.fold import OF_ATTRIBUTES
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.model.run import DUPLICATES

NO_HEADER = "its file has no header that can be read"

_KEYS = {"v", "nodes", "topology"}
_FIRST_DAY_NS = 86_400 * 10**9
_SENT_TEXT = """
    SELECT
        peer, interval, coalesce(messages, 0) AS publication_messages_sent,
        CASE WHEN messages IS NULL THEN 0 ELSE bytes END AS publication_bytes_sent
    FROM (
        -- A trace is complete, so a node that writes it has sent what it says, or nothing.
        SELECT peer, unnest(range({last} + 1))::INTEGER AS interval
        FROM (SELECT peer FROM folded.peers UNION SELECT peer FROM folded.sent)
    ) LEFT JOIN folded.sent USING (peer, interval)
"""
_CONTROL_TEXT = "SELECT * EXCLUDE (messages_dropped, ids_dropped) FROM folded.control"


class Bctrace(Libp2p):
    """The source `bctrace`: a Libp2p whose reader takes traces of all nodes, with a header."""

    name = "bctrace"
    fold = TraceFold
    tables = TraceFold.tables
    options = frozenset({"interval_us", "max_line"})

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'bctrace' for a file that begins with a header."""
        header = or_none(msgspec.json.decode, first_lines(head)[0])
        return "bctrace" if isinstance(header, dict) and header.keys() >= _KEYS else None

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of traces."""
        return _TraceReader(TraceJudge.of(source_input), source_input.options.max_line)

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe the run like Libp2p, with what the trace lacks; sessions of ethp2p tell neither
        duplicates nor refusals. Traces that do not know when they began give 1970.
        """
        tables = TraceTally.of(counted).tables
        unknown = (
            "traffic, but for messages sent" if tables[SENT] else "traffic",
            "GRAFT, PRUNE and subscriptions among control messages"
            if tables[CONTROL]
            else "control messages",
            *(() if tables[PARTS] else (PARTS,)),
        )
        description = replace(super().describe(counted, options), unknown=unknown)
        if counted["first"] < _FIRST_DAY_NS:
            description = replace(description, epoch=None)
        if ETHP2P not in counted["protocols"]:
            return description
        unknown = (*unknown, DUPLICATES, "rejections")
        return replace(description, protocol=ETHP2P, parameters={}, unknown=unknown)

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables of Libp2p, and of traffic the messages sent, as far as the trace tells
        them; the nodes of the header are present all along.
        """
        tables = TraceTally.of(run.totals).tables
        return replace(
            super().observe(run, options),
            peers="SELECT peer AS name FROM whole.presence",
            presence="FROM folded.presence",
            attributes="FROM folded.attributes",
            traffic=_SENT_TEXT.format(last=run.clock.last) if tables[SENT] else None,
            control=_CONTROL_TEXT if tables[CONTROL] else None,
            gauges="FROM folded.gauges" if tables[PARTS] else None,
            sizes="FROM folded.sizes",
            functions=(),
        )

    def requests_told(self, tally: TraceTally) -> Collection[str]:
        """Return all kinds, if the trace has control messages."""
        return REQUESTS if tally.tables[CONTROL] else ()


@dataclass(frozen=True)
class _TraceReader:
    """Reads traces into events like those of vizpub.ingest.sources.libp2p.reader."""

    judge: TraceJudge
    max_line: int | None = None

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a split; a range of lines is read with the header of its file."""
        tally = self.judge.tally()
        first = next(lines(split._replace(start=0, stop=None, line=1), self.max_line), None)
        header = None if first is None or first.fault else or_none(Header.parse, first.text)

        def rows_of(line: InputLine) -> Iterator[InputRow]:
            if line.number == 1:
                yield from _rows_of_nodes(Header.parse(line.text), split)
                return
            if header is None:
                raise RecordRefused(NO_HEADER)
            for event in read_events(line.text, header, tally):
                self.judge.count(event, tally, split, line.number)
                yield from _rows_of_event(event, split.file, line.number)

        yield from rows_of_lines(split, self.max_line, rows_of)
        yield tally_row(tally.plain)


def _rows_of_nodes(header: Header, split: InputSplit) -> Iterator[InputRow]:
    for name, attributes in zip(header.nodes, header.attributes, strict=True):
        record, place = msgspec.json.encode(attributes), (split.file, 1, None)
        yield InputRow(RowKind.FURTHER, name, header.t0, OF_ATTRIBUTES, *place, record)


def _rows_of_event(event: TraceEvent, file: int, line: int) -> Iterator[InputRow]:
    """Yield the rows of an event; a subscription that names a peer is of that one."""
    place = file, line, None
    if isinstance(event, Transfer):
        record = msgspec.msgpack.encode(event)
        yield InputRow(RowKind.RECORD, event.peer, event.time, TRANSFERRED, *place, record)
    elif event.type in (EventType.JOIN, EventType.LEAVE) and event.other is not None:
        record = msgspec.msgpack.encode(event)
        yield InputRow(RowKind.RECORD, event.other, event.time, HEARD, *place, record)
    else:
        yield from rows_of_event(event, file, line)
