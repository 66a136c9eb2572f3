"""Files → records, in tasks: lines of bounded length, one decoder a source, refusals beside them.

A source says by one generator what it makes of a split of a file; what one record holds ends
nothing but that record. Rows of all kinds go the same way to the fold (see ingest.fold).
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import fs

from ingest.compressed import GZIP, ZSTD, Content

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ingest.sources.base import InputFile

MAX_LINE = 64 * 2**20
"""Bytes of a line that is read; of a longer one nothing is held."""
SPLIT = 64 * 2**20
"""Bytes of a plain file that one task reads."""
RECORDS = (
    "kind tinyint, peer string, time bigint, rank bigint, file int, line bigint, reason string, "
    "record binary"
)
"""Columns of Row."""

_BLOCK = 1 << 20
_BATCH_ROWS, _BATCH_BYTES = 4096, 4 * 2**20
_SPLITS = "file int, path string, start bigint, stop bigint, line bigint"
_COUNTED = "file int, start bigint, lines bigint"


class Kind(IntEnum):
    """What a row is."""

    TALLY = 0
    """What the reader of a split has counted, as JSON."""
    HEADER = 1
    REFUSED = 2
    BEFORE = 3
    """What the run that is appended to left behind of a peer."""
    RECORD = 4


class Row(NamedTuple):
    """A record, or what else a reader tells. A peer's rows are folded by time, rank, file, line."""

    kind: Kind
    peer: str | None = None
    time: int = 0
    rank: int = 0
    file: int = 0
    """Number of the input file."""
    line: int = 0
    """From 1."""
    reason: str | None = None
    """Why it is refused."""
    record: bytes = b""


class Split(NamedTuple):
    """What one task reads: a whole file, or the lines that begin in a range of a plain one."""

    file: int
    path: str
    start: int = 0
    stop: int | None = None
    """Null = the end of the file."""
    line: int = 1
    """Number of the first line that begins in it; 0 = not counted yet."""


Read = Callable[[Split], Iterator[Row]]
"""What a source makes of a split."""


def in_tasks(spark: SparkSession, splits: Sequence[Split], read: Read, small: bool) -> DataFrame:
    """The rows of all splits, as RECORDS, in no order; lazily."""
    return _spread(spark, _numbered(spark, splits), small).mapInArrow(
        partial(_rows, source=read), RECORDS
    )


def _spread(spark: SparkSession, splits: Sequence[Split], small: bool) -> DataFrame:
    rows = spark.createDataFrame(list(splits), _SPLITS)
    tasks = min(len(splits), 8 * spark.sparkContext.defaultParallelism)
    return rows.coalesce(1) if small else rows.repartition(tasks)


def line_splits(
    files: Sequence[InputFile], leave_out: Collection[str] = (), size: int = SPLIT
) -> list[Split]:
    """Files of lines, but those of some encodings: a packed one whole, a plain one by ranges."""
    found: list[Split] = []
    for number, file in enumerate(files):
        if file.encoding in leave_out:
            continue
        if file.size <= size or _is_compressed(file.path):
            found.append(Split(number, file.path))
        else:
            found += (
                Split(number, file.path, start, min(start + size, file.size), 0)
                for start in range(0, file.size, size)
            )
    return found


def _is_compressed(path: str) -> bool:
    with _opened(path) as stream:
        head: bytes = stream.read(4)
    return head.startswith((GZIP, ZSTD))


def _opened(path: str) -> pa.NativeFile:
    filesystem, inside = fs.FileSystem.from_uri(path)
    return filesystem.open_input_file(inside)


def _numbered(spark: SparkSession, splits: Sequence[Split]) -> list[Split]:
    """The splits with the numbers of their first lines: line breaks are counted once."""
    ranges = [split for split in splits if split.line == 0]
    if not ranges:
        return list(splits)
    counted = _spread(spark, ranges, small=False).mapInArrow(_count_lines, _COUNTED).collect()
    breaks = {(row.file, row.start): row.lines for row in counted}
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


def _count_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for split in _given(batches):
        lines = sum(block.count(b"\n") for block in _blocks(split.path, split.start, split.stop))
        yield pa.RecordBatch.from_pylist(
            [{"file": split.file, "start": split.start, "lines": lines}],
            pa.schema([("file", pa.int32()), ("start", pa.int64()), ("lines", pa.int64())]),
        )


def _given(batches: Iterable[pa.RecordBatch]) -> Iterator[Split]:
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Split(*row)


def _rows(batches: Iterable[pa.RecordBatch], source: Read) -> Iterator[pa.RecordBatch]:
    for split in _given(batches):
        yield from as_batches(source(split))


def as_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows in batches of bounded size, as RECORDS."""
    held: list[Row] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row.record)
        if len(held) == _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _batch(held)
            held, size = [], 0
    if held:
        yield _batch(held)


_TYPES = (
    *(pa.int8(), pa.string(), pa.int64(), pa.int64(), pa.int32(), pa.int64()),
    *(pa.string(), pa.binary()),
)


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _TYPES, strict=True)]
    return pa.record_batch(arrays, names=list(Row._fields))


@dataclass(frozen=True)
class Line:
    """A line without its line break."""

    number: int
    text: bytes | None
    """Null = longer than is read."""
    cut: bool = False
    """The damage of its file cuts it off."""


def lines(split: Split, limit: int = MAX_LINE) -> Iterator[Line]:
    """The lines that begin in the split, empty ones too, without a byte order mark."""
    if split.start == 0 and split.stop is None:
        with _opened(split.path) as stream:
            content = Content(stream)
            for number, (text, ended) in enumerate(bounded(content, limit), 1):
                plain = text.removeprefix(BOM_UTF8) if text and number == 1 else text
                yield Line(number, plain, not ended and content.damage is not None)
        return
    yield from _lines_of_range(split, limit)


def _lines_of_range(split: Split, limit: int) -> Iterator[Line]:
    # What stands before the first line break belongs to the split before; the last line may
    # go on behind the end.
    begin = max(split.start - 1, 0)
    found = bounded(_blocks(split.path, begin), limit, counted := [0])
    if split.start:
        next(found, None)
    number = split.line + (counted[0] > 1)
    while begin + counted[0] < (split.stop or 0):
        is_first = begin + counted[0] == 0
        text, _ = next(found, (None, False))
        yield Line(number, text.removeprefix(BOM_UTF8) if text and is_first else text)
        number += 1


def _blocks(path: str, start: int, stop: int | None = None) -> Iterator[bytes]:
    with _opened(path) as stream:
        stream.seek(start)
        left = stop - start if stop is not None else None
        while block := stream.read(_BLOCK if left is None else min(_BLOCK, left)):
            left = None if left is None else left - len(block)
            yield block


def bounded(
    content: Iterable[bytes], limit: int, read: list[int] | None = None
) -> Iterator[tuple[bytes | None, bool]]:
    r"""Lines without their `\n`, each with whether it had one; null for one beyond the limit.

    `read[0]` is how many bytes the lines given so far and their line breaks have.
    """
    held: list[bytes] = []
    size, done = 0, read if read is not None else [0]
    for chunk in content:
        pieces = chunk.split(b"\n")
        for piece in pieces[:-1]:
            size += len(piece)
            done[0] += size + 1
            if held:
                held.append(piece)
                yield (b"".join(held) if size <= limit else None), True
                held = []
            else:
                yield (piece if size <= limit else None), True
            size = 0
        if pieces[-1]:
            size += len(pieces[-1])
            if size > limit:
                held.clear()  # what is beyond the limit is counted, and not kept
            held.append(pieces[-1] if size <= limit else b"")
    if size:
        done[0] += size
        yield (b"".join(held) if size <= limit else None), False
