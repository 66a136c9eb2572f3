"""Lines of reports → rows, by three judges of one grammar, each slower than the one before.

Nearly all lines match a regular expression (vizpub.ingest.sources.reports.plain). `msgspec`
decodes others by types made from the grammar. The rest goes to `vizpub.reports.files`, which
accepts it or gives the reason for refusing it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.ingest.inputs.reader import ROWS, Kind, Line, Row, Rows, Split, lines, refused
from vizpub.ingest.sources.reports.facts import Tally
from vizpub.ingest.sources.reports.plain import plain_reports
from vizpub.model.arrays import Integers
from vizpub.reports.fields import (
    REPORT,
    Array,
    Flag,
    Key,
    KeyOr,
    Numbers,
    Object,
    OneOf,
    Whole,
)
from vizpub.reports.fields import Kind as Grammar
from vizpub.reports.files import parse, strict_json, unknown_fields
from vizpub.reports.records import Report, RunHeader

_MOST_LINES, _MOST_BYTES = 1 << 13, 8 * 2**20
_encode = msgspec.json.Encoder().encode


def _typed(kind: Grammar) -> Any:
    """The msgspec type for what the grammar allows. It refuses unknown fields; `plain_report`
    checks names for control characters.
    """
    found: Any
    match kind:
        case Array(item):
            found = list[_typed(item)]  # type: ignore[misc]
        case KeyOr(more):
            found = _typed(Key()) | _typed(more)
        case Object(fields, required):
            found = _struct(fields, required)
        case Whole(most, least):
            found = Annotated[int, msgspec.Meta(ge=least, le=most)]
        case Flag():
            found = bool
        case Numbers(pattern, most):
            names = Annotated[str, msgspec.Meta(pattern=pattern)]
            found = Annotated[dict[names, float], msgspec.Meta(max_length=most)]
        case OneOf(words):
            found = Literal[words]
        case _:
            found = Annotated[str, msgspec.Meta(min_length=1)]
    return found


def _struct(fields: Mapping[str, Grammar], required: tuple[str, ...]) -> type:
    members: list[Any] = []
    for name, kind in fields.items():
        inner = _typed(kind)
        members.append((name, inner) if name in required else (name, inner | None, None))
    return msgspec.defstruct(
        "Fields", members, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True
    )


@cache
def report_decoder() -> msgspec.json.Decoder[Any]:
    """Decodes plainly spelled reports; attributes are the fields of the contract."""
    return msgspec.json.Decoder(_typed(REPORT))


def plain_report(line: bytes) -> Any:
    """The report, if the line is valid, plainly spelled and without unknown fields; otherwise
    null, and `vizpub.reports.files` has to parse it.
    """
    # A control character in a name needs an escape, DEL, or the first byte of a C1 character.
    if b"\\" in line or b"\x7f" in line or b"\xc2" in line:
        return None
    try:
        found = report_decoder().decode(line)
        _check_keys(line, found)
        return found
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _check_keys(line: bytes, report: Any) -> None:
    """Raises: ValueError where an object has a key twice, of which msgspec keeps the last value.
    Encoded again, such a report has fewer keys; so has one with nulls. The line has no escapes.
    """
    encoded = _encode(report)
    if line == encoded:
        return
    # Each key is followed by its colon, unless a space may stand between them.
    is_spread = b'" ' in line or b'"\t' in line or b'"\r' in line
    if is_spread or line.count(b'":') != encoded.count(b'":'):
        strict_json(line)


@dataclass(frozen=True)
class Chosen:
    """Which reports are read."""

    only: str | None = None
    """Reports of this run; null = of all."""
    nameless: bool = True
    """Whether reports without a run are read."""

    def takes(self, run: str | None, tally: Tally, reports: int = 1) -> bool:
        """Count reports of a run; whether they are read."""
        if run is None:
            tally.nameless += reports
            return self.nameless
        tally.runs[run] += reports
        return self.only is None or run == self.only


@dataclass(frozen=True)
class LineReader:
    """Reads NDJSON of the report contract."""

    chosen: Chosen = Chosen()
    max_line: int | None = None

    def __call__(self, split: Split) -> Iterator[Rows]:
        """The rows of a split."""
        tally, run = Tally(), header_of_lines(split.path).get("run")
        for some in _together(lines(split, self.max_line)):
            texts = pa.array((b"" if line.fault else line.text for line in some), pa.string())
            is_plain, facts = plain_reports(texts)
            if is_plain.any():
                numbers = np.array([line.number for line in some])[is_plain]
                records = texts.filter(pa.array(is_plain))
                yield from self._records(facts, records, split.file, numbers, run, tally)
            for place in np.flatnonzero(~is_plain).tolist():
                yield from self._row(some[place], split, run, tally)
        yield tally_row(tally)

    def _records(
        self,
        facts: pa.Table,
        records: pa.StringArray,
        file: int,
        numbers: Integers,
        run: str | None,
        tally: Tally,
    ) -> list[pa.RecordBatch]:
        """The rows of plain reports."""
        named = facts["run"].fill_null(run) if run else facts["run"]
        runs = [
            of["values"]
            for of in named.value_counts().to_pylist()
            if self.chosen.takes(of["values"], tally, of["counts"])
        ]
        columns = {
            "kind": pa.repeat(pa.scalar(int(Kind.RECORD), pa.int8()), len(facts)),
            "peer": facts["peer"],
            "time": facts["interval"],
            "rank": pc.subtract(-1, facts["seq"]).fill_null(0),
            "file": pa.repeat(pa.scalar(file, pa.int32()), len(facts)),
            "line": numbers,
            "reason": pa.nulls(len(facts), pa.string()),
            "record": records.cast(pa.binary()),
        }
        taken = pa.table(columns, ROWS).filter(pc.is_in(named, pa.array(runs, pa.string())))
        batches: list[pa.RecordBatch] = taken.combine_chunks().to_batches()
        return batches

    def _row(self, line: Line, split: Split, run: str | None, tally: Tally) -> Iterator[Row]:
        """The row of any line."""
        text = line.text
        if line.fault:
            yield refused(split, line.number, line.fault, text)
        elif report := plain_report(text):
            if self.chosen.takes(report.run or run, tally):
                of_peer = report.peer, report.interval, report.seq
                yield record_row(*of_peer, split.file, line.number, text)
        elif text and not text.isspace():
            yield from self._judged(text, split, line.number, run, tally)

    def _judged(
        self, text: bytes, split: Split, number: int, run: str | None, tally: Tally
    ) -> Iterator[Row]:
        """The row of a line that the fast decoder refused; none for headers and ends."""
        value, wrong = parse(text)
        if wrong:
            tally.lost_headers += RunHeader.format.encode() in text
            yield refused(split, number, "; ".join(wrong), text)
            return
        tally.unknown(unknown_fields(value))
        if value["format"] != Report.format:
            tally.header({**value, "run": value.get("run") or run})
        elif self.chosen.takes(value.get("run") or run, tally):
            of_peer = value["peer"], value["interval"], value.get("seq")
            # Encoded again, as two JSON decoders may disagree on unusual spellings.
            known = msgspec.json.encode(Report.from_json(value).to_json())
            yield record_row(*of_peer, split.file, number, known)


def record_row(peer: str, interval: int, seq: int | None, file: int, line: int, text: bytes) -> Row:
    """The row of a report; within an interval, the greatest `seq` sorts first."""
    rank = 0 if seq is None else -1 - seq
    return Row(Kind.RECORD, peer, interval, rank, file, line, None, text)


def tally_row(tally: Tally) -> Row:
    """The row with the counts of a split."""
    return Row(Kind.TALLY, record=json.dumps(tally.plain).encode())


def _together(each: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines, some thousand at a time."""
    held, size = list[Line](), 0
    for line in each:
        held.append(line)
        size += len(line.text)
        if len(held) == _MOST_LINES or size >= _MOST_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def header_of_lines(path: str) -> dict[str, Any]:
    """The run header in the first line of a file; empty if there is none."""
    first = next(lines(Split(0, path)), None)
    value, wrong = parse(first.text if first else b"")
    return {} if wrong or value["format"] != RunHeader.format else value
