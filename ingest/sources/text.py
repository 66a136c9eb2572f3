"""Records that are lines of text, decoded in Python tasks: large plain files in pieces, the
others whole.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ingest.compressed import MAX_LINE, Content, LongLine, Readable, lines
from ingest.sources.base import InputFile
from ingest.sources.lines import CUT_OFF, INVALID_UTF8, numbered
from model.sizes import size_told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT = 4096
"""Bytes of a line that are kept for the quarantine, which keeps 1024 characters."""
PIECE = 8 * 2**20
"""Bytes of a plain file that one task reads."""
_PACKED = (".gz", ".zst", ".zstd")
_BLOCK = 1 << 16
_ROWS, _BYTES = 4096, 4 * 2**20
"""How much a batch holds at most, and at least where there is more."""


class Piece(NamedTuple):
    """The lines of a file that begin at these bytes of it."""

    path: str
    start: int = 0
    stop: int | None = None
    """Null = up to the end."""


class Line(NamedTuple):
    """A line of a piece."""

    row: int
    text: bytes
    """Without what ends it."""
    fault: str | None
    """Why it cannot be taken."""


def decoded(
    spark: SparkSession,
    files: Sequence[InputFile],
    decode: Callable[[Line], dict[str, Any]],
    schema: pa.Schema,
    max_line: int | None = None,
) -> DataFrame:
    """A row for each line of the files, with what `decode` makes of it.

    file       its path
    position   struct (block, row) that orders the lines of a file; see `quarantine`
    text       the beginning of the line; its bytes need not be UTF-8
    …          the columns of the schema
    """
    from pyspark.sql import functions as F

    whole = pa.schema([*_PLACE, *schema])
    limit = max_line or MAX_LINE

    def read(piece: Piece) -> Iterator[pa.RecordBatch]:
        rows = ((line, decode(line)) for line in read_piece(piece, limit))
        return _batches(piece, rows, schema)

    found = _of_each(spark, list(chain(*map(_pieces, files))), read, whole)
    position = F.struct("block", "row").alias("position")
    return found.select("file", position, F.col("text").cast("string"), *schema.names)


def quarantine(refused: DataFrame, files: Sequence[InputFile]) -> DataFrame:
    """The quarantine rows of refused lines of the files: file, position, text, reason.

    Of files that are read in pieces the lines are counted, to have their numbers.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    pieces = [piece for piece in chain(*map(_pieces, files)) if piece != Piece(piece.path)]
    before = F.lit(0)
    if pieces:
        counts = _of_each(refused.sparkSession, pieces, _count_lines, _COUNTS)
        earlier = Window.partitionBy("file").orderBy("block")
        sums = F.sum("lines").over(earlier.rowsBetween(Window.unboundedPreceding, -1))
        refused = refused.withColumn("block", F.col("position.block")).join(
            F.broadcast(counts.withColumn("before", sums)), ["file", "block"], "left"
        )
        before = F.coalesce("before", F.lit(0))
    row = F.col("position.row") + before + 1
    return numbered(refused.withColumn("position", F.struct(row.alias("row"))))


def _of_each(
    spark: SparkSession,
    pieces: Sequence[Piece],
    read: Callable[[Piece], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    def read_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            yield from read(pieces[number])

    tasks = min(len(pieces), 8 * spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, len(pieces), 1, tasks)
    return numbers.mapInArrow(read_all, from_arrow_schema(schema))


_PLACE = (
    pa.field("file", pa.string()),
    pa.field("block", pa.int64()),
    pa.field("row", pa.int64()),
    pa.field("text", pa.binary()),
)


_COUNTS = pa.schema([("file", pa.string()), ("block", pa.int64()), ("lines", pa.int64())])


def _pieces(file: InputFile) -> Iterator[Piece]:
    cuts = range(PIECE, file.size, PIECE)
    if file.damage or file.path.partition("?")[0].endswith(_PACKED) or not cuts:
        yield Piece(file.path)
        return
    starts = [0, *cuts]
    for start, stop in zip(starts, [*starts[1:], None], strict=True):
        yield Piece(file.path, start, stop)


def read_piece(piece: Piece, limit: int = MAX_LINE) -> Iterator[Line]:
    """The lines that begin in a piece, each of at most `limit` bytes. Raises: OSError."""
    from pyarrow import fs

    filesystem, inside = fs.FileSystem.from_uri(piece.path)
    if piece.start == 0:
        with filesystem.open_input_stream(inside, compression=None) as stream:
            content = Content(stream)
            yield from _lines(content, lines(content, limit), 0, piece.stop, limit)
        return
    with filesystem.open_input_file(inside) as file:
        file.seek(piece.start - 1)
        blocks, start = _blocks(file), piece.start - 1
        for block in blocks:  # the rest of a line that begins in a piece before
            before, ended, rest = block.partition(b"\n")
            start += len(before) + len(ended)
            if ended or (piece.stop is not None and start >= piece.stop):
                break
        else:
            return
        if piece.stop is None or start < piece.stop:
            found = lines(chain([rest], blocks), limit)
            yield from _lines(None, found, start, piece.stop, limit)


def _blocks(file: Readable, size: float = inf) -> Iterator[bytes]:
    while size > 0 and (block := file.read(int(min(_BLOCK, size)))):
        size -= len(block)
        yield block


def _count_lines(piece: Piece) -> Iterator[pa.RecordBatch]:
    """How many lines begin in a piece."""
    from pyarrow import fs

    filesystem, inside = fs.FileSystem.from_uri(piece.path)
    with filesystem.open_input_file(inside) as file:
        first = max(piece.start - 1, 0)
        file.seek(first)
        size = inf if piece.stop is None else piece.stop - 1 - first
        ends = sum(block.count(b"\n") for block in _blocks(file, size))
    row = {"file": piece.path, "block": piece.start, "lines": ends + (piece.start == 0)}
    yield pa.RecordBatch.from_pylist([row], _COUNTS)


def _size(line: bytes) -> int:
    return line.size if isinstance(line, LongLine) else len(line)


def _lines(
    content: Content | None,
    found: Iterable[tuple[bytes, bool]],
    start: int,
    stop: int | None,
    limit: int,
) -> Iterator[Line]:
    too_long = f"longer than {size_told(limit)} (--max-line)"
    for row, (text, ended) in enumerate(found):
        if stop is not None and start >= stop:
            return
        fault = None
        if isinstance(text, LongLine):
            fault = too_long
        elif not ended and content is not None and content.damage:
            fault = CUT_OFF
        elif not text.isascii() and not _is_utf8(text):
            fault = INVALID_UTF8
        begins = start == row == 0
        start += _size(text) + 1
        yield Line(row, text.removeprefix(BOM_UTF8) if begins else text, fault)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _batches(
    piece: Piece, rows: Iterable[tuple[Line, dict[str, Any]]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    found: list[tuple[int, bytes, dict[str, Any]]] = []
    held = 0
    for line, row in rows:
        found.append((line.row, line.text[:KEPT], row))
        held += len(line.text)
        if len(found) >= _ROWS or held >= _BYTES:
            yield _batch(piece, found, schema)
            found, held = [], 0
    if found:
        yield _batch(piece, found, schema)


def _batch(
    piece: Piece, found: Sequence[tuple[int, bytes, dict[str, Any]]], schema: pa.Schema
) -> pa.RecordBatch:
    numbers, texts, rows = zip(*found, strict=True)
    decoded = pa.RecordBatch.from_pylist(rows, schema)
    place = [pa.repeat(piece.path, len(rows)), pa.repeat(piece.start, len(rows))]
    columns = [*place, pa.array(numbers, pa.int64()), pa.array(texts, pa.binary())]
    return pa.RecordBatch.from_arrays(
        [*columns, *decoded.columns], schema=pa.schema([*_PLACE, *schema])
    )
