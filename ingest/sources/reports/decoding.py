"""Lines of reports → rows: the fast decoder, and the contract's own judgement where it fails.

`msgspec` decodes what is sound and plainly spelled by types made from the grammar. Any other
line is judged by `ingest.reports.files`, which takes it or says why not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from ingest.reader import Kind, Row, Split, lines, refused
from ingest.reports.fields import REPORT, Array, Flag, Key, KeyOr, Object, OneOf, Whole
from ingest.reports.fields import Kind as Grammar
from ingest.reports.files import parse, unknown_fields
from ingest.reports.records import Report, RunHeader
from ingest.sources.reports.facts import Tally


def typed(kind: Grammar) -> Any:
    """The type by which msgspec decodes what the grammar allows. It refuses fields that the
    contract does not know; control characters in names are for `plain_report` to see.
    """
    found: Any
    match kind:
        case Array(item):
            found = list[typed(item)]  # type: ignore[misc]
        case KeyOr(more):
            found = typed(Key()) | typed(more)
        case Object(fields, required):
            found = _struct(fields, required)
        case Whole(most, least):
            found = Annotated[int, msgspec.Meta(ge=least, le=most)]
        case Flag():
            found = bool
        case OneOf(words):
            found = Literal[words]
        case _:
            found = Annotated[str, msgspec.Meta(min_length=1)]
    return found


def _struct(fields: Mapping[str, Grammar], required: tuple[str, ...]) -> type:
    members: list[Any] = []
    for name, kind in fields.items():
        inner = typed(kind)
        members.append((name, inner) if name in required else (name, inner | None, None))
    return msgspec.defstruct(
        "Fields", members, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True
    )


@cache
def report_decoder() -> msgspec.json.Decoder[Any]:
    """Decodes reports in plain spelling: attributes as the contract's fields."""
    return msgspec.json.Decoder(typed(REPORT))


def plain_report(line: bytes) -> Any:
    """The report, where a line is plainly a sound one without unknown fields; else null: then
    `ingest.reports.files` judges it.
    """
    # A name may hold a control character where something is escaped, where there is DEL, and
    # where there is what those of C1 begin with.
    if b"\\" in line or b"\x7f" in line or b"\xc2" in line:
        return None
    try:
        return report_decoder().decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


@dataclass(frozen=True)
class Chosen:
    """Which reports are taken."""

    only: str | None = None
    """Those of this run; null = all."""
    nameless: bool = True
    """Those that name no run, too."""

    def takes(self, run: str | None, tally: Tally) -> bool:
        """Count a report. Whether it is taken."""
        if run is None:
            tally.nameless += 1
            return self.nameless
        tally.runs[run] += 1
        return self.only is None or run == self.only


@dataclass(frozen=True)
class LineReader:
    """What NDJSON of the contract holds, as rows."""

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
        """The row of a line that is not plainly a report, if there is one."""
        value, wrong = parse(text)
        if wrong:
            yield refused(split, number, "; ".join(wrong), text)
            return
        tally.unknown(unknown_fields(value))
        if value["format"] != Report.format:
            tally.header({**value, "run": value.get("run") or run})
        elif self.chosen.takes(value.get("run") or run, tally):
            of_peer = value["peer"], value["interval"], value.get("seq")
            # Spelled anew, as two readers of JSON need not agree on what is oddly spelled.
            known = msgspec.json.encode(Report.from_json(value).to_json())
            yield record_row(*of_peer, split.file, number, known)


def record_row(peer: str, interval: int, seq: int | None, file: int, line: int, text: bytes) -> Row:
    """The row of a report; of those of an interval the one with the greatest `seq` comes first."""
    rank = 0 if seq is None else -1 - seq
    return Row(Kind.RECORD, peer, interval, rank, file, line, None, text)


def tally_row(tally: Tally) -> Row:
    """The row of what the reader of a split has counted."""
    return Row(Kind.TALLY, record=json.dumps(tally.plain).encode())


def header_of_lines(path: str) -> dict[str, Any]:
    """The run header in the first line of a file; empty if there is none."""
    first = next(lines(Split(0, path)), None)
    value, wrong = parse(first.text if first else b"")
    return {} if wrong or value["format"] != RunHeader.format else value
