"""Files of both encodings → rows for the fold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from pyarrow import fs

from vizpub.ingest.inputs.reader import Damage, Kind, Row, Split, lines, refused, too_long
from vizpub.ingest.sources.libp2p import json_events, protobuf
from vizpub.ingest.sources.libp2p.events import Event, Refused, Type, judged
from vizpub.ingest.sources.libp2p.facts import Judge, Tally
from vizpub.reports.compressed import MAX_LINE, Content, LongLine

_HEX_BYTES = 512
"""Of a refused record of protobuf; the quarantine keeps twice as many characters."""

_Decode = Callable[[bytes], tuple[dict[str, Any], Iterable[str]]]


@dataclass(frozen=True)
class EventReader:
    """Reads the events of a trace. An event goes to the fold of the peer that logged it. Events of
    streams also go to the peer at the other end, after its own events of the same time.
    """

    binary: frozenset[int]
    """Numbers of the files in protobuf."""
    judge: Judge
    max_line: int | None = None

    def __call__(self, split: Split) -> Iterator[Row]:
        """The rows of a split; of protobuf a row's line is the record's number."""
        tally = self.judge.tally()
        read = self._records if split.file in self.binary else self._lines
        yield from read(split, tally)
        yield Row(Kind.TALLY, record=json.dumps(tally.plain).encode())

    def _lines(self, split: Split, tally: Tally) -> Iterator[Row]:
        for line in lines(split, self.max_line):
            if line.fault:
                yield refused(split, line.number, line.fault, line.text)
            elif line.text and not line.text.isspace():
                try:
                    event = self._event(line.text, json_events.decode, tally, split, line.number)
                except Refused as reason:
                    yield refused(split, line.number, str(reason), line.text)
                else:
                    yield from _rows(event, split.file, line.number) if event else ()

    def _records(self, split: Split, tally: Tally) -> Iterator[Row]:
        number, limit = 0, self.max_line or MAX_LINE
        filesystem, inside = fs.FileSystem.from_uri(split.path)
        with filesystem.open_input_stream(inside, compression=None) as stream:
            content = Content(stream)
            try:
                for number, record in enumerate(protobuf.records(content, limit), 1):
                    try:
                        if isinstance(record, LongLine):
                            raise Refused(too_long(limit))
                        event = self._event(record, protobuf.decode, tally, split, number)
                    except Refused as reason:
                        yield refused(split, number, str(reason), _hex(record))
                    else:
                        yield from _rows(event, split.file, number) if event else ()
            except protobuf.StreamBroken as broken:
                why = f"{broken} ({content.damage})" if content.damage else str(broken)
                yield refused(split, number + 1, why, _hex(broken.rest))
            if content.damage:
                yield refused(split, number, Damage(content.damage))

    def _event(
        self, record: bytes, decode: _Decode, tally: Tally, split: Split, number: int
    ) -> Event | None:
        """The event of a record, counted; null if its type is unknown. Raises: Refused."""
        values, unknown = decode(record)
        event = judged(values)
        tally.unknown_in(values["type"], unknown)
        if event:
            self.judge.count(event, tally, split, number)
        return event


def _rows(event: Event, file: int, line: int) -> Iterator[Row]:
    record = msgspec.msgpack.encode(event)
    yield Row(Kind.RECORD, event.peer, event.time, 0, file, line, None, record)
    if event.type in (Type.STREAM_OPENED, Type.STREAM_CLOSED) and event.other != event.peer:
        yield Row(Kind.RECORD, event.other, event.time, 1, file, line, None, record)


def _hex(record: bytes) -> bytes:
    return record[:_HEX_BYTES].hex().encode()
