"""Files → records, in Spark tasks: lines of bounded length, one decoder per source, and refusals.

A source has one generator that turns a split of a file into rows; a bad record never stops the
other ones. Rows of all kinds go to the same fold (see vizpub.ingest.tasks.fold).
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pyarrow as pa
from pyarrow import fs

from vizpub.model.sizes import format_size
from vizpub.reports import compressed
from vizpub.reports.compressed import MAX_LINE, Content, LongLine, Readable, packing_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from vizpub.ingest.inputs.files import InputFile

SPLIT = 8 * 2**20
"""Bytes of a plain file that one task reads."""
CUT_OFF = "cut off where the file is damaged"
INVALID_UTF8 = "not UTF-8"
TEXT_LIMIT = 1024
"""Characters of a refused record that are kept."""
RECORDS = (
    "kind tinyint, peer string, time bigint, rank bigint, file int, line bigint, reason string, "
    "record binary"
)
"""Columns of Row."""

_BLOCK = 1 << 16
_BATCH_ROWS, _BATCH_BYTES = 4096, 4 * 2**20
_SPLITS = "file int, path string, start bigint, stop bigint, line bigint"
_COUNTED = "file int, start bigint, lines bigint"


class Kind(IntEnum):
    """The kind of a row."""

    TALLY = 0
    """Counts of the reader of a split, as JSON."""
    DAMAGED = 1
    """Why only a part of a file could be read."""
    REFUSED = 2
    BEFORE = 3
    """The state of a peer at the end of the run that is appended to."""
    RECORD = 4


class Row(NamedTuple):
    """A record, or a fact about the input. A fold takes them by time, rank, file, line."""

    kind: Kind
    peer: str | None = None
    """The key by which rows are folded; a message for deliveries."""
    time: int = 0
    rank: int = 0
    file: int = 0
    """Number of the input file."""
    line: int = 0
    """From 1."""
    reason: str | None = None
    """Why it is refused, or damaged."""
    record: bytes = b""


class Split(NamedTuple):
    """Input of one task: a whole file, or the lines that begin in a byte range of a plain one."""

    file: int
    path: str
    start: int = 0
    stop: int | None = None
    """Null = the end of the file."""
    line: int = 1
    """Number of the first line that begins in it; 0 = not counted yet."""


Rows: TypeAlias = "Row | pa.RecordBatch"
"""A row, or many with the columns RECORDS."""
Read = Callable[[Split], Iterator[Rows]]
"""Turns a split into rows."""


class Damage(str):
    """Why the rest of a file cannot be read; not the fault of a record."""


def refused(split: Split, line: int, reason: str, text: bytes = b"") -> Row:
    """The row of a refused record, for the quarantine; for Damage, the row that reports it."""
    if isinstance(reason, Damage):
        return Row(Kind.DAMAGED, file=split.file, reason=reason)
    kept = text[: 4 * TEXT_LIMIT]
    return Row(Kind.REFUSED, file=split.file, line=line, reason=reason, record=kept)


Turn = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task makes of batches."""


def in_tasks(
    spark: SparkSession,
    splits: Sequence[Split],
    read: Read,
    small: bool,
    turn: Turn = iter,
    columns: str = RECORDS,
) -> DataFrame:
    """What `turn` makes of the rows of all splits (RECORDS), unordered and lazy."""
    work = partial(_batches, read=read, turn=turn)
    return _spread(spark, numbered(spark, splits), small).mapInArrow(work, columns)


def _batches(batches: Iterable[pa.RecordBatch], read: Read, turn: Turn) -> Iterator[pa.RecordBatch]:
    return turn(rows_of_splits(_given(batches), read))


def rows_of_splits(splits: Iterable[Split], read: Read) -> Iterator[pa.RecordBatch]:
    """The rows of splits, with the columns RECORDS."""
    return (rows for split in splits for rows in as_batches(read(split)))


def _spread(spark: SparkSession, splits: Sequence[Split], small: bool) -> DataFrame:
    rows = spark.createDataFrame(list(splits), _SPLITS)
    tasks = min(len(splits), 8 * spark.sparkContext.defaultParallelism)
    return rows.coalesce(1) if small else rows.repartition(tasks)


def line_splits(
    files: Sequence[InputFile], leave_out: Collection[str] = (), size: int | None = None
) -> list[Split]:
    """Splits of text files, without the encodings of `leave_out`; plain files by byte ranges."""
    found: list[Split] = []
    size = size or SPLIT
    for number, file in enumerate(files):
        if file.encoding in leave_out:
            continue
        cuts = range(size, file.size, size)
        if not cuts or packing_of(file.path):
            found.append(Split(number, file.path))
        else:
            edges = zip([0, *cuts], [*cuts, None], strict=True)
            found += (Split(number, file.path, start, stop, 0) for start, stop in edges)
    return found


def numbered(spark: SparkSession, splits: Sequence[Split]) -> list[Split]:
    """The splits with their first line numbers; counts the line breaks of plain files once."""
    ranges = [split for split in splits if split.line == 0]
    if not ranges:
        return list(splits)
    counted = _spread(spark, ranges, small=False).mapInArrow(_count_lines, _COUNTED).collect()
    breaks = {(row.file, row.start): row.lines for row in counted}
    found = []
    line = 1
    for split in splits:
        if split.line == 0:
            line = 1 if split.start == 0 else line
            found.append(split._replace(line=line))
            line += breaks[split.file, split.start]
        else:
            found.append(split)
    return found


def _count_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for split in _given(batches):
        filesystem, inside = fs.FileSystem.from_uri(split.path)
        with filesystem.open_input_file(inside) as file:
            file.seek(split.start)
            size = inf if split.stop is None else split.stop - split.start
            lines = sum(block.count(b"\n") for block in _blocks(file, size))
        yield pa.RecordBatch.from_pylist(
            [{"file": split.file, "start": split.start, "lines": lines}],
            pa.schema([("file", pa.int32()), ("start", pa.int64()), ("lines", pa.int64())]),
        )


def _given(batches: Iterable[pa.RecordBatch]) -> Iterator[Split]:
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Split(*row)


def as_batches(rows: Iterable[Rows]) -> Iterator[pa.RecordBatch]:
    """Rows in batches of bounded size, with the columns RECORDS."""
    held: list[Row] = []
    size = 0
    for row in rows:
        if isinstance(row, pa.RecordBatch):
            yield row
            continue
        held.append(row)
        size += len(row.record)
        if len(held) == _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _batch(held)
            held, size = [], 0
    if held:
        yield _batch(held)


ROWS = pa.schema(
    [
        *(("kind", pa.int8()), ("peer", pa.string()), ("time", pa.int64()), ("rank", pa.int64())),
        *(("file", pa.int32()), ("line", pa.int64()), ("reason", pa.string())),
        ("record", pa.binary()),
    ]
)
"""The columns RECORDS."""


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, ROWS.types, strict=True)]
    return pa.record_batch(arrays, schema=ROWS)


class Line(NamedTuple):
    """A line of a split, without its line break."""

    number: int
    """From 1."""
    text: bytes
    """Only the beginning, if the line is too long."""
    fault: str | None
    """Why the line is refused; Damage for the last one if the file is damaged there."""


def lines(split: Split, limit: int | None = None) -> Iterator[Line]:
    """The lines that begin in the split, including empty ones, without byte order marks: files that
    were joined have some inside. Lines of more than `limit` bytes are cut. Raises: OSError.
    """
    limit = limit or MAX_LINE
    filesystem, inside = fs.FileSystem.from_uri(split.path)
    if split.start == 0:
        with filesystem.open_input_stream(inside, compression=None) as stream:
            content = Content(stream)
            yield from _judged(split, content, compressed.lines(content, limit), 0, limit)
        return
    with filesystem.open_input_file(inside) as file:
        file.seek(split.start - 1)
        blocks, start = _blocks(file), split.start - 1
        for block in blocks:  # the rest of a line that begins in a split before
            before, ended, rest = block.partition(b"\n")
            start += len(before) + len(ended)
            if ended or (split.stop is not None and start >= split.stop):
                break
        else:
            return
        if split.stop is None or start < split.stop:
            found = compressed.lines(chain([rest], blocks), limit)
            yield from _judged(split, None, found, start, limit)


def _judged(
    split: Split,
    content: Content | None,
    found: Iterable[tuple[bytes, bool]],
    start: int,
    limit: int,
) -> Iterator[Line]:
    """The lines that begin before the end of the split; the first one begins at byte `start`."""
    number = split.line + (start > split.start)
    for text, ended in found:
        if split.stop is not None and start >= split.stop:
            return
        fault = None
        if isinstance(text, LongLine):
            fault = too_long(limit)
        elif not ended and content is not None and content.damage:
            fault = CUT_OFF
        elif not text.isascii() and not _is_utf8(text):
            fault = INVALID_UTF8
        yield Line(number, text.removeprefix(BOM_UTF8), fault)
        start += (text.size if isinstance(text, LongLine) else len(text)) + 1
        number += 1
    if content is not None and content.damage:
        yield Line(number, b"", Damage(content.damage))


def too_long(limit: int) -> str:
    """The reason for which a record of more than `limit` bytes is refused."""
    return f"longer than {format_size(limit)} (--max-line)"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _blocks(file: Readable, size: float = inf) -> Iterator[bytes]:
    while size > 0 and (block := file.read(int(min(_BLOCK, size)))):
        size -= len(block)
        yield block
