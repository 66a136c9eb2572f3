"""Records of sources that Spark parses, decoded in Python tasks; and the quarantine's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ingest.reader import TEXT_LIMIT, Line, Split, line_splits, lines, of_lines
from ingest.sources.base import InputFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT = 4096
"""Bytes of a line that are kept for the quarantine, which keeps 1024 characters."""
_ROWS, _BYTES = 4096, 4 * 2**20
"""How much a batch holds at most, and at least where there is more."""


def decoded(
    spark: SparkSession,
    files: Sequence[InputFile],
    decode: Callable[[Line], dict[str, Any]],
    schema: pa.Schema,
    max_line: int | None = None,
) -> DataFrame:
    """A row for each line of the files, with what `decode` makes of it.

    file       its path
    position   the number of the line, from 1
    text       the beginning of the line; its bytes need not be UTF-8
    …          the columns of the schema
    """
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    whole = pa.schema([*_PLACE, *schema])

    def read(split: Split) -> Iterator[pa.RecordBatch]:
        rows = ((line, decode(line)) for line in lines(split, max_line))
        return _batches(split, rows, schema)

    found = of_lines(spark, line_splits(files), read, from_arrow_schema(whole))
    return found.select("file", "position", F.col("text").cast("string"), *schema.names)


_PLACE = (
    pa.field("file", pa.string()),
    pa.field("position", pa.int64()),
    pa.field("text", pa.binary()),
)


def _batches(
    split: Split, rows: Iterable[tuple[Line, dict[str, Any]]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    found: list[tuple[int, bytes, dict[str, Any]]] = []
    held = 0
    for line, row in rows:
        found.append((line.number, line.text[:KEPT], row))
        held += len(line.text)
        if len(found) >= _ROWS or held >= _BYTES:
            yield _batch(split, found, schema)
            found, held = [], 0
    if found:
        yield _batch(split, found, schema)


def _batch(
    split: Split, found: Sequence[tuple[int, bytes, dict[str, Any]]], schema: pa.Schema
) -> pa.RecordBatch:
    numbers, texts, rows = zip(*found, strict=True)
    decoded = pa.RecordBatch.from_pylist(rows, schema)
    place = [pa.repeat(split.path, len(rows)), pa.array(numbers, pa.int64())]
    return pa.RecordBatch.from_arrays(
        [*place, pa.array(texts, pa.binary()), *decoded.columns],
        schema=pa.schema([*_PLACE, *schema]),
    )


def quarantine(refused: DataFrame) -> DataFrame:
    """The quarantine rows of refused records: file (a path), position (from 1; 0 = the file as a
    whole), text, reason.
    """
    from pyspark.sql import functions as F

    return refused.select(
        "file",
        F.greatest(F.col("position"), F.lit(1)).alias("line"),
        "reason",
        F.substring(F.make_valid_utf8("text"), 1, TEXT_LIMIT).alias("text"),
    )
