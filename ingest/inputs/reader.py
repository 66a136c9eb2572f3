"""Files → records, in Spark tasks: lines of bounded length, one decoder per source, and refusals.

A source has one generator that turns a split of a file into rows; a bad record never stops the
other ones. Rows of all kinds go to the same fold (see vizpub.ingest.tasks.fold).
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa

from vizpub.analytics.step_profile import StepUses, follow
from vizpub.ingest.inputs.files import InputFile, locate
from vizpub.ingest.tasks.items import map_items, share_items
from vizpub.model.sizes import format_size
from vizpub.reports import compressed
from vizpub.reports.compressed import MAX_LINE, Content, LongLine, Readable, packing_of
from vizpub.reports.files import RepeatedKey, strict_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SPLIT = 8 * 2**20
"""Bytes of a plain file that one task reads."""
CUT_OFF = "cut off where the file is damaged"
INVALID_UTF8 = "not UTF-8"
BELOW_HEADER = " below a header"
"""Ends the encoding of a table's part that begins with a header."""
TEXT_LIMIT = 1024
"""Characters of a refused record that the quarantine keeps."""
RECORDS = (
    "kind tinyint, peer string, time bigint, rank bigint, file int, line bigint, reason string, "
    "record binary"
)
"""Columns of InputRow."""

_BLOCK = 1 << 16
_BATCH_ROWS, _BATCH_BYTES = 4096, 4 * 2**20


class RowKind(IntEnum):
    """The kind of a row."""

    TALLY = 0
    """Counts by the reader of a split, as JSON."""
    DAMAGED = 1
    """Reason why only a part of a file could be read."""
    REFUSED = 2
    BEFORE = 3
    """The state of a peer at the end of the run that is appended to."""
    RECORD = 4
    FURTHER = 5
    """Another row of a record, which counts once."""


class InputRow(NamedTuple):
    """A record, or a fact about the input. Folds take rows by time, rank, file and line."""

    kind: RowKind
    peer: str | None = None
    """Key by which rows are folded; a message for deliveries."""
    time: int = 0
    rank: int = 0
    file: int = 0
    """Number of the input file."""
    line: int = 0
    """From 1."""
    reason: str | None = None
    """Reason for the refusal or damage."""
    record: bytes = b""


class InputSplit(NamedTuple):
    """Input of one task: a whole file, or the lines that begin in a byte range of a plain file."""

    file: int
    path: str
    start: int = 0
    stop: int | None = None
    """Null = the end of the file."""
    line: int = 1
    """Number of the first line that begins in the range; 0 = not counted yet."""


RowOrBatch: TypeAlias = "InputRow | pa.RecordBatch"
"""A row, or many with the columns RECORDS."""
SplitReader = Callable[[InputSplit], Iterator[RowOrBatch]]
"""A function from a split to its rows."""


class DamageReason(str):
    """Reason why the rest of a file cannot be read; no record is at fault."""


class RecordRefused(Exception):
    """Reason why a record is not valid; never leaves the reader."""


def refusal_row(split: InputSplit, line: int, reason: str, text: bytes = b"") -> InputRow:
    """Return the row of a refused record, or for a DamageReason the row that reports the damage."""
    if isinstance(reason, DamageReason):
        return InputRow(RowKind.DAMAGED, file=split.file, reason=reason)
    beginning = text[: 4 * TEXT_LIMIT]
    return InputRow(RowKind.REFUSED, file=split.file, line=line, reason=reason, record=beginning)


def as_one_record(rows: Iterable[InputRow]) -> Iterator[InputRow]:
    """Yield the rows of a record, which counts once."""
    for place, row in enumerate(rows):
        yield row._replace(kind=RowKind.FURTHER) if place else row


def tally_row(counts: Mapping[str, Any]) -> InputRow:
    """Return the row with the counts of a split."""
    return InputRow(RowKind.TALLY, record=json.dumps(counts).encode())


BatchTransform = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function that tasks apply to the batches of rows."""


def read_in_tasks(
    spark: SparkSession,
    splits: Sequence[InputSplit],
    split_reader: SplitReader,
    transform: BatchTransform = iter,
    columns: str = RECORDS,
    report: Callable[[StepUses], None] | None = None,
) -> DataFrame:
    """Return a lazy frame of the rows of all splits (RECORDS), unordered, after `transform`. Tasks
    `report` what their steps used; null = without a profile.
    """

    def read_share(share: Sequence[InputSplit]) -> Iterator[pa.RecordBatch]:
        return transform(rows_of_splits(share, split_reader))

    return share_items(spark, splits, read_share, columns, report=report)


def rows_of_splits(
    splits: Iterable[InputSplit], split_reader: SplitReader
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of splits, with the columns RECORDS."""
    batches = (rows for split in splits for rows in as_batches(split_reader(split)))
    return iter(follow("ingest/inputs/reader.py", batches))


def line_splits(
    files: Sequence[InputFile], leave_out: Collection[str] = (), size: int | None = None
) -> list[InputSplit]:
    """Return the splits of text files, plain ones by byte ranges; files with an encoding in
    `leave_out` have none.
    """
    splits: list[InputSplit] = []
    size = size or SPLIT
    for number, file in enumerate(files):
        if file.encoding in leave_out:
            continue
        cuts = range(size, file.size, size)
        if not cuts or packing_of(file.path):
            splits.append(InputSplit(number, file.path))
        else:
            edges = zip([0, *cuts], [*cuts, None], strict=True)
            splits += (InputSplit(number, file.path, start, stop, 0) for start, stop in edges)
    return splits


def number_splits(spark: SparkSession, splits: Sequence[InputSplit]) -> list[InputSplit]:
    """Return the splits with their first line numbers; count the line breaks of plain files
    once.
    """
    ranges = [split for split in splits if split.line == 0]
    if not ranges:
        return list(splits)
    counts = map_items(spark, _count_lines, ranges)
    breaks = {(split.file, split.start): n for split, n in zip(ranges, counts, strict=True)}
    numbered = []
    line = 1
    for split in splits:
        if split.line == 0:
            line = 1 if split.start == 0 else line
            numbered.append(split._replace(line=line))
            line += breaks[split.file, split.start]
        else:
            numbered.append(split)
    return numbered


def _count_lines(split: InputSplit) -> int:
    filesystem, inside = locate(split.path)
    with filesystem.open_input_file(inside) as file:
        file.seek(split.start)
        size = inf if split.stop is None else split.stop - split.start
        return sum(block.count(b"\n") for block in _blocks(file, size))


def as_batches(rows: Iterable[RowOrBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of bounded size, with the columns RECORDS."""
    buffer: list[InputRow] = []
    size = 0
    for row in rows:
        if isinstance(row, pa.RecordBatch):
            yield row
            continue
        buffer.append(row)
        size += len(row.record)
        if len(buffer) == _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _batch(buffer)
            buffer, size = [], 0
    if buffer:
        yield _batch(buffer)


ROWS = pa.schema(
    [
        *(("kind", pa.int8()), ("peer", pa.string()), ("time", pa.int64()), ("rank", pa.int64())),
        *(("file", pa.int32()), ("line", pa.int64()), ("reason", pa.string())),
        ("record", pa.binary()),
    ]
)
"""The columns RECORDS."""


def _batch(rows: Sequence[InputRow]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, ROWS.types, strict=True)]
    return pa.record_batch(arrays, schema=ROWS)


class InputLine(NamedTuple):
    """A line of a split, or several that follow each other, without the last line break."""

    number: int
    """Of the first line, from 1."""
    text: bytes
    """Only the beginning, if the line is too long."""
    fault: str | None = None
    """Reason for refusing the only line; a DamageReason for the last one of a damaged file."""


def lines(split: InputSplit, limit: int | None = None) -> Iterator[InputLine]:
    """Yield the lines that begin in the split, including empty ones.

    Byte order marks are removed: joined files have some inside. Lines of more than `limit` bytes
    are cut. Raises: OSError.
    """
    for block in line_blocks(split, limit):
        if block.fault:
            yield block
        else:
            texts = block.text.split(b"\n")
            yield from (InputLine(number, text) for number, text in enumerate(texts, block.number))


def line_blocks(split: InputSplit, limit: int | None = None) -> Iterator[InputLine]:
    """Yield the lines that begin in the split, see `lines`; those without faults together."""
    limit = limit or MAX_LINE
    filesystem, inside = locate(split.path)
    if split.start == 0:
        with filesystem.open_input_stream(inside, compression=None) as stream:
            content = Content(stream)
            blocks = compressed.line_blocks(content, limit)
            yield from _check_blocks(split, content, blocks, 0, limit)
        return
    with filesystem.open_input_file(inside) as file:
        file.seek(split.start - 1)
        parts, start = _blocks(file), split.start - 1
        for part in parts:  # skip the rest of a line that begins in an earlier split
            end_of_line, ended, rest = part.partition(b"\n")
            start += len(end_of_line) + len(ended)
            if ended or (split.stop is not None and start >= split.stop):
                break
        else:
            return
        if split.stop is None or start < split.stop:
            blocks = compressed.line_blocks(chain([rest], parts), limit)
            yield from _check_blocks(split, None, blocks, start, limit)


def _check_blocks(
    split: InputSplit,
    content: Content | None,
    blocks: Iterable[tuple[bytes, bool]],
    start: int,
    limit: int,
) -> Iterator[InputLine]:
    """Yield the lines that begin before the end of the split, with their faults; the first begins
    at byte `start`.
    """
    number = split.line + (start > split.start)
    stop = inf if split.stop is None else split.stop
    for block, ended in blocks:
        if ended and len(block) <= limit and start + len(block) < stop and _is_plain(block):
            yield InputLine(number, block)
            start += len(block) + 1
            number += 1 + block.count(b"\n")
            continue
        for text in compressed.split_block(block, limit):
            if start >= stop:
                return
            fault = None
            if isinstance(text, LongLine):
                fault = too_long_reason(limit)
            elif not ended and content is not None and content.damage:
                fault = CUT_OFF
            elif not _is_utf8(text):
                fault = INVALID_UTF8
            yield InputLine(number, text.removeprefix(BOM_UTF8), fault)
            start += (text.size if isinstance(text, LongLine) else len(text)) + 1
            number += 1
    if content is not None and content.damage:
        yield InputLine(number, b"", DamageReason(content.damage))


def rows_of_lines(
    split: InputSplit, limit: int | None, rows_of: Callable[[InputLine], Iterable[InputRow]]
) -> Iterator[InputRow]:
    """Yield the rows of the lines that are not blank, and refusals of those for which `rows_of`
    raises RecordRefused.
    """
    for line in lines(split, limit):
        if line.fault:
            yield refusal_row(split, line.number, line.fault, line.text)
        elif line.text and not line.text.isspace():
            try:
                rows = [*rows_of(line)]
            except RecordRefused as reason:
                rows = [refusal_row(split, line.number, str(reason), line.text)]
            yield from rows


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object in a line. Raises: RecordRefused."""
    try:
        msgspec.json.decode(line)  # takes no halves of surrogate pairs
        value = strict_json(line)
    except RepeatedKey as error:
        raise RecordRefused(str(error)) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RecordRefused("not one JSON object") from error
    if not isinstance(value, dict):
        raise RecordRefused("not one JSON object")
    return value


def too_long_reason(limit: int) -> str:
    """Return the reason for refusing a record of more than `limit` bytes."""
    return f"longer than {format_size(limit)} (--max-line)"


def _is_plain(block: bytes) -> bool:
    """Return True for text without byte order marks."""
    return _is_utf8(block) and (block.isascii() or BOM_UTF8 not in block)


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _blocks(file: Readable, size: float = inf) -> Iterator[bytes]:
    while size > 0 and (block := file.read(int(min(_BLOCK, size)))):
        size -= len(block)
        yield block
