"""Files of both encodings → rows for the fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vizpub.ingest.inputs.files import locate
from vizpub.ingest.inputs.reader import (
    DamageReason,
    InputLine,
    InputRow,
    InputSplit,
    RecordRefused,
    refusal_row,
    rows_of_lines,
    tally_row,
    too_long_reason,
)
from vizpub.ingest.sources.libp2p import json_events, protobuf
from vizpub.ingest.sources.libp2p.events import make_event, rows_of_event
from vizpub.ingest.sources.libp2p.facts import TraceJudge, TraceTally
from vizpub.reports.compressed import MAX_LINE, Content, LongLine

_HEX_BYTES = 512
"""Bytes of a refused protobuf record that are kept; the quarantine has two characters for each."""

_Decode = Callable[[bytes], tuple[dict[str, Any], Iterable[str]]]


@dataclass(frozen=True)
class EventReader:
    """Reads the events of a trace.

    An event goes to the fold of the peer that logged it. Events of streams also go to the peer at
    the other end, after its own events of the same time.
    """

    binary: frozenset[int]
    """Numbers of the files in protobuf."""
    judge: TraceJudge
    max_line: int | None = None

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a split; the line of a protobuf row is the record's number."""
        tally = self.judge.tally()
        if split.file in self.binary:
            yield from self._records(split, tally)
        else:

            def rows_of(line: InputLine) -> Iterator[InputRow]:
                return self._rows(line.text, json_events.decode, tally, split, line.number)

            yield from rows_of_lines(split, self.max_line, rows_of)
        yield tally_row(tally.plain)

    def _records(self, split: InputSplit, tally: TraceTally) -> Iterator[InputRow]:
        number, limit = 0, self.max_line or MAX_LINE
        filesystem, inside = locate(split.path)
        with filesystem.open_input_stream(inside, compression=None) as stream:
            content = Content(stream)
            try:
                for number, record in enumerate(protobuf.split_records(content, limit), 1):
                    try:
                        if isinstance(record, LongLine):
                            raise RecordRefused(too_long_reason(limit))
                        rows = [*self._rows(record, protobuf.decode, tally, split, number)]
                    except RecordRefused as reason:
                        rows = [refusal_row(split, number, str(reason), _hex_text(record))]
                    yield from rows
            except protobuf.StreamBroken as broken:
                why = f"{broken} ({content.damage})" if content.damage else str(broken)
                yield refusal_row(split, number + 1, why, _hex_text(broken.rest))
            if content.damage:
                yield refusal_row(split, number, DamageReason(content.damage))

    def _rows(
        self, record: bytes, decode: _Decode, tally: TraceTally, split: InputSplit, number: int
    ) -> Iterator[InputRow]:
        """Decode and count the event of a record, and yield its rows; none if its type is unknown.

        Raises: RecordRefused.
        """
        values, unknown = decode(record)
        event = make_event(values)
        tally.count_unknown(values["type"], unknown)
        if event:
            self.judge.count(event, tally, split, number)
            yield from rows_of_event(event, split.file, number)


def _hex_text(record: bytes) -> bytes:
    return record[:_HEX_BYTES].hex().encode()
