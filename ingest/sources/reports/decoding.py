"""Lines of reports → rows, by three decoders of one grammar, each slower than the one before.

Nearly all lines match a regular expression (vizpub.ingest.sources.reports.plain). `msgspec`
decodes others by types made from the grammar. The rest goes to `vizpub.reports.files`, which
accepts it or gives the reason for refusing it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.ingest.inputs.reader import (
    ROWS,
    InputLine,
    InputRow,
    InputSplit,
    RowKind,
    RowOrBatch,
    line_blocks,
    lines,
    refusal_row,
    tally_row,
)
from vizpub.ingest.sources.reports.facts import ReportTally
from vizpub.ingest.sources.reports.plain import find_plain_reports
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

_MOST_LINES, _MOST_BYTES = 1 << 15, 16 * 2**20
_encode = msgspec.json.Encoder().encode


def _msgspec_type(kind: Grammar) -> Any:
    """Return the msgspec type of a kind of the grammar. It refuses unknown fields; `decode_plain`
    checks names for control characters.
    """
    result: Any
    match kind:
        case Array(item):
            result = list[_msgspec_type(item)]  # type: ignore[misc]
        case KeyOr(more):
            result = _msgspec_type(Key()) | _msgspec_type(more)
        case Object(fields, required):
            members: list[Any] = []
            for name, of in fields.items():
                inner = _msgspec_type(of)
                members.append((name, inner) if name in required else (name, inner | None, None))
            result = msgspec.defstruct(
                "Fields", members, kw_only=True, gc=False,
                omit_defaults=True, forbid_unknown_fields=True,
            )  # fmt: skip
        case Whole(most, least):
            result = Annotated[int, msgspec.Meta(ge=least, le=most)]
        case Flag():
            result = bool
        case Numbers(pattern, most):
            names = Annotated[str, msgspec.Meta(pattern=pattern)]
            result = Annotated[dict[names, float], msgspec.Meta(max_length=most)]
        case OneOf(words):
            result = Literal[words]
        case _:
            result = Annotated[str, msgspec.Meta(min_length=1)]
    return result


@cache
def report_decoder() -> msgspec.json.Decoder[Any]:
    """Return the decoder of plainly spelled reports, whose attributes are the contract's fields."""
    return msgspec.json.Decoder(_msgspec_type(REPORT))


def decode_plain(line: bytes) -> Any:
    """Decode a report if the line is valid, plainly spelled and without unknown fields; otherwise
    return null, and `vizpub.reports.files` has to parse it.
    """
    # A control character in a name needs an escape, DEL, or the first byte of a C1 character.
    if b"\\" in line or b"\x7f" in line or b"\xc2" in line:
        return None
    try:
        report = report_decoder().decode(line)
        _check_keys(line, report)
        return report
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _check_keys(line: bytes, report: Any) -> None:
    """Check that no object has a key twice, of which msgspec keeps the last value.

    Encoded again, such a report has fewer keys; so has one with nulls. The line has no escapes.
    Raises: ValueError.
    """
    encoded = _encode(report)
    if line == encoded:
        return
    # Each key is followed by its colon, unless a space may stand between them.
    is_spread = b'" ' in line or b'"\t' in line or b'"\r' in line
    if is_spread or line.count(b'":') != encoded.count(b'":'):
        strict_json(line)


@dataclass(frozen=True)
class ReportFilter:
    """Selection of the reports to read, by their run."""

    only: str | None = None
    """Reports of this run; null = of all."""
    nameless: bool = True
    """True if reports without a run are read."""

    def takes(self, run: str | None, tally: ReportTally, reports: int = 1) -> bool:
        """Count reports of a run. Return True if they are read."""
        if run is None:
            tally.nameless += reports
            return self.nameless
        tally.runs[run] += reports
        return self.only is None or run == self.only


@dataclass(frozen=True)
class LineReader:
    """Reads NDJSON of the report contract."""

    chosen: ReportFilter = ReportFilter()
    max_line: int | None = None

    def __call__(self, split: InputSplit) -> Iterator[RowOrBatch]:
        """Yield the rows of a split."""
        tally, run = ReportTally(), header_of_lines(split.path).get("run")
        for texts, numbers, faults in _group_blocks(line_blocks(split, self.max_line)):
            is_plain, facts = find_plain_reports(texts)
            if is_plain.any():
                records = texts if is_plain.all() else texts.filter(pa.array(is_plain))
                of_records = numbers[is_plain]
                yield from self._records(facts, records, split.file, of_records, run, tally)
            others = np.flatnonzero(~is_plain)
            for number, text in zip(numbers[others].tolist(), texts.take(others), strict=True):
                line = faults.get(number) or InputLine(number, text.as_buffer().to_pybytes())
                yield from self._row(line, split, run, tally)
        yield tally_row(tally.plain)

    def _records(
        self,
        facts: pa.Table,
        records: pa.StringArray,
        file: int,
        numbers: Integers,
        run: str | None,
        tally: ReportTally,
    ) -> list[pa.RecordBatch]:
        """Return the rows of plain reports."""
        run_names = facts["run"].fill_null(run) if run else facts["run"]
        counts = run_names.value_counts().to_pylist()
        runs = [o["values"] for o in counts if self.chosen.takes(o["values"], tally, o["counts"])]
        columns = {
            "kind": pa.repeat(pa.scalar(int(RowKind.RECORD), pa.int8()), len(facts)),
            "peer": facts["peer"],
            "time": facts["interval"],
            "rank": pc.subtract(-1, facts["seq"]).fill_null(0),
            "file": pa.repeat(pa.scalar(file, pa.int32()), len(facts)),
            "line": numbers,
            "reason": pa.nulls(len(facts), pa.string()),
            "record": records.cast(pa.binary()),
        }
        rows = pa.table(columns, ROWS)
        if len(runs) < len(counts):
            rows = rows.filter(pc.is_in(run_names, pa.array(runs, pa.string())))
        batches: list[pa.RecordBatch] = rows.combine_chunks().to_batches()
        return batches

    def _row(
        self, line: InputLine, split: InputSplit, run: str | None, tally: ReportTally
    ) -> Iterator[InputRow]:
        """Yield the row of any line."""
        text = line.text
        if line.fault:
            yield refusal_row(split, line.number, line.fault, text)
        elif report := decode_plain(text):
            if self.chosen.takes(report.run or run, tally):
                of_peer = report.peer, report.interval, report.seq
                yield record_row(*of_peer, split.file, line.number, text)
        elif text and not text.isspace():
            yield from self._parse_line(text, split, line.number, run, tally)

    def _parse_line(
        self, text: bytes, split: InputSplit, number: int, run: str | None, tally: ReportTally
    ) -> Iterator[InputRow]:
        """Yield the row of a line that the fast decoder refused; none for headers and ends."""
        value, wrong = parse(text)
        if wrong:
            tally.lost_headers += RunHeader.format.encode() in text
            yield refusal_row(split, number, "; ".join(wrong), text)
            return
        tally.count_unknown(unknown_fields(value))
        if value["format"] != Report.format:
            tally.count_header({**value, "run": value.get("run") or run})
        elif self.chosen.takes(value.get("run") or run, tally):
            of_peer = value["peer"], value["interval"], value.get("seq")
            # Encoded again, as two JSON decoders may disagree on unusual spellings.
            record = msgspec.json.encode(Report.from_json(value).to_json())
            yield record_row(*of_peer, split.file, number, record)


def record_row(
    peer: str, interval: int, seq: int | None, file: int, line: int, text: bytes
) -> InputRow:
    """Return the row of a report; within an interval, the greatest `seq` sorts first."""
    rank = 0 if seq is None else -1 - seq
    return InputRow(RowKind.RECORD, peer, interval, rank, file, line, None, text)


class _Lines(NamedTuple):
    texts: pa.StringArray
    """Empty where there is a fault."""
    numbers: Integers
    faults: dict[int, InputLine]
    """Lines with faults, by number."""


def _group_blocks(blocks: Iterable[InputLine]) -> Iterator[_Lines]:
    """Yield the lines, some thousand at a time."""
    group, lines_of_group, size = list[InputLine](), 0, 0
    for block in blocks:
        group.append(block)
        lines_of_group += 1 + block.text.count(b"\n")
        size += len(block.text)
        if lines_of_group >= _MOST_LINES or size >= _MOST_BYTES:
            yield _lines_of(group)
            group, lines_of_group, size = [], 0, 0
    if group:
        yield _lines_of(group)


def _lines_of(blocks: Sequence[InputLine]) -> _Lines:
    texts = pa.array([b"" if block.fault else block.text for block in blocks], pa.string())
    of_blocks = pc.split_pattern(texts, "\n")
    counts = of_blocks.value_lengths().to_numpy()
    firsts = np.array([block.number for block in blocks])
    before = np.cumsum(counts) - counts
    numbers = np.arange(counts.sum()) + np.repeat(firsts - before, counts)
    return _Lines(of_blocks.flatten(), numbers, {one.number: one for one in blocks if one.fault})


def header_of_lines(path: str) -> dict[str, Any]:
    """Return the run header in the first line of a file; empty if there is none."""
    first = next(lines(InputSplit(0, path)), None)
    value, wrong = parse(first.text if first else b"")
    return {} if wrong or value["format"] != RunHeader.format else value
