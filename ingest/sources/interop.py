"""The source: logs of the gossipsub interoperability tester.

They report what traces of go-libp2p-pubsub report, and are folded alike; what they lack is unknown.
The tester's other files give the run's parameters, attributes of its nodes and sizes of messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    InputLine,
    InputRow,
    InputSplit,
    RecordRefused,
    RowKind,
    SplitReader,
    lines,
    parse_object,
    refusal_row,
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
from vizpub.ingest.sources.libp2p.events import REQUESTS, EventType, TraceEvent
from vizpub.ingest.sources.libp2p.facts import TraceJudge, TraceTally
from vizpub.ingest.sources.libp2p.fold import MESH, OF_ATTRIBUTES, AttributedFold
from vizpub.ingest.sources.libp2p.interop import NodeLog, is_line
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.libp2p.tester import (
    HOSTS,
    NETWORK,
    PARAMETERS,
    attributes_of,
    encoding_of,
    parameters_of,
    sizes_of,
)
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.model.tables import COPY_FLAGS

_PARTIAL = "logs of received messages only, without sent messages and links"
_UNCOUNTED = ("dropped", "rpcs_sent", "rpcs_received")
_OF_WHOLE_LOGS = (
    "control_messages_sent",
    "control_messages_received",
    "publication_messages_sent",
)
_WHOLE_LOGS = f"""(
    SELECT peer FROM folded.traffic GROUP BY peer HAVING sum({" + ".join(_OF_WHOLE_LOGS)}) > 0
)"""
"""Peers whose logs tell more than received messages, in SQL."""


class Interop(Libp2p):
    """The source `interop`: a Libp2p whose reader takes logs, and the files that the tester writes
    beside them.
    """

    name = "interop"
    fold = AttributedFold
    tables = {**AttributedFold.tables}  # noqa: RUF012 - as that of Libp2p
    companions = frozenset({PARAMETERS, HOSTS, NETWORK})
    every_layer = frozenset({MESH})
    unknown = (
        "traffic in bytes (the logs have no sizes)",
        "connections between peers (the logs have only the mesh)",
        "rejected messages, and sends dropped because a queue was full",
        "RPCs (a line is one entry of an RPC)",
    )

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'log' by the content alone, and the encodings of the tester's other files."""
        return "log" if most_are(first_lines(head), is_line) else encoding_of(path, head)

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return a split for each log, as its first line names its peer, and for parameters."""
        read = ("log", PARAMETERS)
        return [InputSplit(n, file.path) for n, file in enumerate(files) if file.encoding in read]

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of logs."""
        others = tuple(file for file in source_input.files if file.encoding != "log")
        return _LogReader(TraceJudge.of(source_input), others, source_input.options.max_line)

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe the run like Libp2p, with the tester's parameters, and note logs that report
        received messages alone.
        """
        tally, description = TraceTally.of(counted), super().describe(counted, options)
        parameters, partial = description.parameters | (tally.parameters or {}), tally.partial_logs
        if tally.implementations:
            parameters["implementations"] = "+".join(sorted(tally.implementations))
        description = replace(description, parameters=parameters)
        if _are_all_partial(tally):
            return replace(description, unknown=("links", "topics", "traffic", *self.unknown))
        return replace(
            description,
            notes={**description.notes, _PARTIAL: partial} if partial else description.notes,
        )

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables of Libp2p without dropped sends and RPCs, which logs do not show, and
        without what logs of received messages alone do not.
        """
        observed, tally = super().observe(run, options), TraceTally.of(run.totals)
        assert observed.traffic is not None
        observed = replace(observed, sizes="FROM folded.sizes")
        if tally.attributed:
            observed = replace(observed, attributes="FROM folded.attributes")
        if _are_all_partial(tally):
            return replace(observed, links=None, subscriptions=None, traffic=None, control=None)
        return replace(
            observed,
            traffic=f"""
                SELECT * EXCLUDE ({", ".join(_UNCOUNTED)})
                    REPLACE ({_of_whole_logs(_OF_WHOLE_LOGS)})
                FROM ({observed.traffic})
            """,
            receptions=f"""
                SELECT * REPLACE ({_of_whole_logs(flag.name for flag in COPY_FLAGS)})
                FROM ({observed.receptions})
            """,
            control=f"SELECT * EXCLUDE (messages_dropped, ids_dropped) FROM ({observed.control})",
        )

    def requests_told(self, tally: TraceTally) -> Collection[str]:
        """Return all kinds, unless logs tell of received messages alone."""
        return () if _are_all_partial(tally) else REQUESTS


def _of_whole_logs(columns: Iterable[str]) -> str:
    """Return columns in SQL that are unknown of peers whose logs do not tell them."""
    return ", ".join(
        f"CASE WHEN peer IN {_WHOLE_LOGS} THEN {name} END AS {name}" for name in columns
    )


def _are_all_partial(tally: TraceTally) -> bool:
    return 0 < tally.logs == tally.partial_logs


@dataclass(frozen=True)
class _LogReader:
    """Reads logs into events like those of vizpub.ingest.sources.libp2p.reader."""

    judge: TraceJudge
    others: tuple[InputFile, ...] = ()
    """The files that the tester writes beside logs."""
    max_line: int | None = None

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a file."""
        tally = self.judge.tally()
        is_parameters = any(
            file.path == split.path and file.encoding == PARAMETERS for file in self.others
        )
        yield from self._parameters(split, tally) if is_parameters else self._log(split, tally)
        yield tally_row(tally.plain)

    def _parameters(self, split: InputSplit, tally: TraceTally) -> Iterator[InputRow]:
        """Yield a refusal if the parameters cannot be read."""
        text = b"\n".join(line.text for line in lines(split, self.max_line))
        try:
            tally.parameters = parameters_of(parse_object(text))
        except (RecordRefused, RecursionError) as reason:
            yield refusal_row(split, 1, str(reason), text)

    def _log(self, split: InputSplit, tally: TraceTally) -> Iterator[InputRow]:
        log, sizes = NodeLog(), sizes_of(split.path, self.others)

        def rows_of(line: InputLine) -> list[InputRow]:
            is_named = log.peer is not None
            events = list(log.events(line.text))
            for event in events:
                event.bytes = sizes.get(event.message or "")
                self.judge.count(event, tally, split, line.number)
            rows = [_event_row(event, split.file, line.number) for event in events]
            if log.peer and not is_named and (facts := attributes_of(split.path, self.others)):
                tally.attributed = 1
                tally.implementations.update(filter(None, [facts.get("implementation")]))
                attributes = msgspec.json.encode(facts)
                rows.append(rows[0]._replace(rank=OF_ATTRIBUTES, record=attributes))
            return rows

        yield from rows_of_lines(split, self.max_line, rows_of)
        tally.unknown.update(log.unknown)
        tally.logs, tally.partial_logs = 1, int(log.is_partial)


def _event_row(event: TraceEvent, file: int, line: int) -> InputRow:
    """Return the row of an event, for the fold of its peer; a subscription is the other peer's."""
    record, is_heard = msgspec.msgpack.encode(event), event.type == EventType.JOIN
    peer = event.other if is_heard else event.peer
    return InputRow(RowKind.RECORD, peer, event.time, int(is_heard), file, line, None, record)
