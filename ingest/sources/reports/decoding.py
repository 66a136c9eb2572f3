"""Lines of reports → rows: a fast decoder, and the contract's own parser where it fails.

`msgspec` decodes valid, plainly spelled lines by types made from the grammar. Any other line goes
to `ingest.reports.files`, which accepts it or gives the reason for refusing it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from ingest.reader import Kind, Row, Split, lines, refused
from ingest.reports.fields import REPORT, Array, Flag, Key, KeyOr, Numbers, Object, OneOf, Whole
from ingest.reports.fields import Kind as Grammar
from ingest.reports.files import parse, strict_json, unknown_fields
from ingest.reports.records import Report, RunHeader
from ingest.sources.reports.facts import Tally

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
    null, and `ingest.reports.files` has to parse it.
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

    def takes(self, run: str | None, tally: Tally) -> bool:
        """Count a report; whether it is read."""
        if run is None:
            tally.nameless += 1
            return self.nameless
        tally.runs[run] += 1
        return self.only is None or run == self.only


@dataclass(frozen=True)
class LineReader:
    """Reads NDJSON of the report contract."""

    chosen: Chosen = Chosen()
    max_line: int | None = None

    def __call__(self, split: Split) -> Iterator[Row]:
        """The rows of a split."""
        tally, run = Tally(), header_of_lines(split.path).get("run")
        for line in lines(split, self.max_line):
            text = line.text
            if line.fault:
                yield refused(split, line.number, line.fault, text)
            elif report := plain_report(text):
                if self.chosen.takes(report.run or run, tally):
                    of_peer = report.peer, report.interval, report.seq
                    yield record_row(*of_peer, split.file, line.number, text)
            elif text and not text.isspace():
                yield from self._judged(text, split, line.number, run, tally)
        yield tally_row(tally)

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


def header_of_lines(path: str) -> dict[str, Any]:
    """The run header in the first line of a file; empty if there is none."""
    first = next(lines(Split(0, path)), None)
    value, wrong = parse(first.text if first else b"")
    return {} if wrong or value["format"] != RunHeader.format else value
