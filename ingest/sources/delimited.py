"""Tables in files: comma-separated text with a header, and Parquet; rows judged by column.

All values come as text, so that one set of rules judges both. A file's columns are part of
what it is recognised as: `csv(src,dst,vf,vt)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial, reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.reader import INVALID_UTF8, Line
from ingest.report_fields import INT64
from ingest.sources.base import InputFile
from ingest.sources.text import decoded, quarantine, read_each

_PARQUET = b"PAR1"
_ROW = "file string, row bigint, unread string"
_FIELD = rb'("(?:[^"]|"")*+"|[^",]*+)'
_FIELDS = re.compile(rb"%s(?:,%s)*+" % (_FIELD, _FIELD))
_NEXT = re.compile(rb"%s(?:,|\Z)" % _FIELD)

NO_ROWS = "the files have no rows, or all were refused: see the quarantine"

Rule = Callable[[str], Column]
"""What is wrong with a column's text, in words; null where nothing is."""


def recognised(path: str, head: bytes, headers: Collection[tuple[str, ...]]) -> str | None:
    """'csv(…)' or 'parquet(…)', if the file has just the columns of one of the headers."""
    if head.startswith(_PARQUET):
        kind, columns = "parquet", _parquet_columns(path)
    else:
        first = head.partition(b"\n")[0].removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")
        kind, columns = "csv", tuple(first.decode("utf-8", "replace").replace('"', "").split(","))
    return f"{kind}({','.join(columns)})" if columns in headers else None


def _parquet_columns(path: str) -> tuple[str, ...]:
    try:
        schema = pq.read_schema(path)
        for field in schema:
            _as_text(pa.nulls(0, field.type))
    except (OSError, pa.ArrowException):
        return ()
    return tuple(schema.names)


def columns_of(encoding: str) -> tuple[str, ...]:
    """The columns of a recognised file."""
    return tuple(encoding.partition("(")[2].rstrip(")").split(","))


def read_table(
    spark: SparkSession,
    files: Sequence[InputFile],
    rules: Mapping[str, Rule],
    max_line: int | None = None,
) -> tuple[DataFrame, DataFrame]:
    """Sound rows and the quarantine.

    The rows have file, position and, as text, the columns of `rules`; a column that a file
    does not have is null, and so is an empty value.
    """
    encodings = sorted({file.encoding for file in files})
    alike = [[file for file in files if file.encoding == encoding] for encoding in encodings]
    read = [
        _read_parquet if e.startswith("parquet") else partial(_read_csv, max_line=max_line)
        for e in encodings
    ]
    rows = [
        _judged(reader(spark, group), columns_of(encoding), rules)
        for reader, group, encoding in zip(read, alike, encodings, strict=True)
    ]
    judged = reduce(DataFrame.unionByName, rows)
    sound = judged.where("reason IS NULL").select("file", "position", *rules)
    refused = judged.where("reason <> ''").select("file", "position", "text", "reason")
    return sound, quarantine(refused)


def _read_csv(
    spark: SparkSession, files: Sequence[InputFile], max_line: int | None = None
) -> DataFrame:
    """file, position, text, fault and the columns. Headers and blank lines have the fault ''."""
    columns = columns_of(files[0].encoding)
    schema = pa.schema([("fault", pa.string()), *((name, pa.string()) for name in columns)])
    return decoded(spark, files, partial(_decode, columns=columns), schema, max_line)


def _decode(line: Line, columns: Sequence[str]) -> dict[str, str | None]:
    text = line.text.removesuffix(b"\r")
    if line.fault:
        return {"fault": line.fault}
    if not text.strip(b" ") or text.replace(b'"', b"") == ",".join(columns).encode():
        return {"fault": ""}
    fields = _fields(text)
    if fields is None:
        return {"fault": "a quote that is not around a whole field, or is not closed"}
    if len(fields) != len(columns):
        return {"fault": f"not {len(columns)} fields"}
    return {name: field.decode() or None for name, field in zip(columns, fields, strict=True)}


def _fields(text: bytes) -> list[bytes] | None:
    """The fields of a row as RFC 4180 has them; null where its quotes are not."""
    if b'"' not in text:
        return text.split(b",")
    if not _FIELDS.fullmatch(text):
        return None
    found = _NEXT.findall(text + b",")[:-1]
    return [f[1:-1].replace(b'""', b'"') if f.startswith(b'"') else f for f in found]


def _read_parquet(spark: SparkSession, files: Sequence[InputFile]) -> DataFrame:
    """file, position, text, fault and the columns.

    Read in Python: Spark takes names for patterns, hides some, and wants one schema for all.
    """
    columns = columns_of(files[0].encoding)
    schema = ", ".join((_ROW, *(f"{name} binary" for name in columns)))
    paths = [file.path for file in files]
    rows = read_each(spark, paths, partial(_read_rows, columns=columns), schema)
    texts = rows.withColumns({name: F.col(name).cast("string") for name in columns})
    sound = [F.coalesce(F.is_valid_utf8(name), F.lit(True)) for name in columns]
    invalid = F.when(~reduce(Column.__and__, sound), F.lit(INVALID_UTF8))
    return texts.select(
        "file",
        (F.col("row") + 1).alias("position"),
        F.to_json(F.struct(*(F.make_valid_utf8(name).alias(name) for name in columns))).alias(
            "text"
        ),
        F.coalesce("unread", invalid).alias("fault"),
        *columns,
    )


def _read_rows(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file; one that says why, where the rest of it cannot be read."""
    filesystem, inside = fs.FileSystem.from_uri(path)
    row = 0
    with filesystem.open_input_file(inside) as file:
        try:
            for batch in _batches(pq.ParquetFile(file), columns):
                texts = {name: _as_text(batch[name]) for name in columns}
                yield _row_batch(path, row, batch.num_rows, texts)
                row += batch.num_rows
        except (OSError, pa.ArrowException) as error:
            nothing = dict.fromkeys(columns, pa.nulls(1, pa.binary()))
            yield _row_batch(path, row, 1, nothing, f"cannot be read from here on: {error}")


def _batches(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches that keep to one row group each, so that a damaged one spoils no other."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(row_groups=[group], columns=list(columns))


def _row_batch(
    path: str, first: int, rows: int, texts: Mapping[str, pa.Array], unread: str | None = None
) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "file": pa.array([path] * rows, pa.string()),
            "row": pa.array(range(first, first + rows), pa.int64()),
            "unread": pa.array([unread] * rows, pa.string()),
            **texts,
        }
    )


def _as_text(values: pa.Array) -> pa.Array:
    """As bytes, which need not be UTF-8. Raises: ArrowException for lists and the like."""
    kind = values.type
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return (values if is_binary else values.cast(pa.string())).cast(pa.binary())


def _judged(rows: DataFrame, columns: Sequence[str], rules: Mapping[str, Rule]) -> DataFrame:
    """Adds reason, null for a sound row, '' for what is none; and the columns that are lacking."""
    faults = [rule(name) for name, rule in rules.items() if name in columns]
    reasons = F.array_join(F.array_compact(F.array(*faults)), "; ")
    reason = F.coalesce("fault", F.when(reasons != "", reasons))
    lacking = {name: F.lit(None).cast("string") for name in rules if name not in columns}
    return rows.withColumns({"reason": reason, **lacking})


def key(name: str) -> Column:
    """A name: not empty, no control character."""
    return F.when(_missing(name), F.lit(f"no '{name}'")).otherwise(optional_key(name))


def optional_key(name: str) -> Column:
    """A name, or nothing."""
    return F.when(F.col(name).rlike(r"\p{Cc}"), F.lit(f"'{name}' has a control character"))


def whole(most: int = INT64) -> Rule:
    """A number from 0 to `most`."""

    def rule(name: str) -> Column:
        number = F.col(name).try_cast("bigint")
        return (
            F.when(_missing(name), F.lit(f"no '{name}'"))
            .when(~F.col(name).rlike(r"\A-?[0-9]+\z"), F.lit(f"'{name}' is not an integer"))
            .when(F.col(name).startswith("-"), F.lit(f"'{name}' is negative"))
            .when(number.isNull() | (number > most), F.lit(f"'{name}' is too large"))
        )

    return rule


def _missing(name: str) -> Column:
    return F.col(name).isNull() | (F.col(name) == "")
