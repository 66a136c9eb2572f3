"""Reports in Parquet → records, as `read_records` gives them.

Arrow reads and judges whole columns in Python on the executors, a row group at a time; a
record's place is the number of its row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.report_arrow import arrow_type, reports_of, unfit_columns, unknown_columns
from ingest.report_fields import REPORT
from ingest.reports import parse
from ingest.sources.base import InputFile
from ingest.sources.reports_items import neighbor_items
from ingest.sources.reports_schema import HEADER_COLUMNS, RECORD, REPORT_COLUMNS
from model.columns import TRAFFIC_COLUMNS
from model.errors import InputError

ENCODING = "parquet"

_MAGIC = b"PAR1"
_AFTERWORDS = (b"vizpub.run", b"vizpub.end")
"""Where a file's own metadata may hold a run header and an end."""
_GROUPS = "path string, group int, first bigint"
_TEXTS = "file string, row bigint, text string"
_JUDGED = f"file string, row bigint, reason string, text string, header string, {RECORD}"
_BATCH = 16_384
_NO_BLOCK = -1
"""The block of all rows: their numbers are those to tell."""


def is_reports(path: str, head: bytes) -> bool:
    """Whether the file is Parquet with the columns peer and interval."""
    if not head.startswith(_MAGIC):
        return False
    try:
        return {"peer", "interval"} <= set(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return False


def read_rows(spark: SparkSession, files: Sequence[InputFile]) -> tuple[DataFrame, DataFrame]:
    """The records of the files, and file, position, text of every row.

    Raises: InputError where a column cannot be what the contract wants.
    """
    groups = [group for file in files for group in _row_groups(file.path)]
    judged = _read(spark, groups, _judged_rows, _JUDGED)
    records = judged.select(
        "file",
        _position(),
        "reason",
        "text",
        "unknown_fields",
        "format",
        "run",
        F.from_json("header", HEADER_COLUMNS).alias("header"),
        *REPORT_COLUMNS,
    )
    texts = _read(spark, groups, _texts, _TEXTS).select("file", _position(), "text")
    return records, texts


def _position() -> Column:
    return F.struct(F.lit(_NO_BLOCK).cast("bigint").alias("block"), "row").alias("position")


def of_rows(records: DataFrame) -> DataFrame:
    """Those of the records that are from Parquet."""
    return records.where(F.col("position.block") == _NO_BLOCK)


Group = tuple[str, int, int]
"""A file, one of its row groups, and the number of its first row, from 1."""


def _row_groups(path: str) -> Iterator[Group]:
    filesystem, inside = fs.FileSystem.from_uri(path)
    with filesystem.open_input_file(inside) as file, pq.ParquetFile(file) as parquet:
        for name, found, wanted in unfit_columns(parquet.schema_arrow):
            raise InputError(
                f"{path}: column '{name}' is {found}",
                f"of reports it is {wanted}; see docs/sources.md",
            )
        first = 1
        for group in range(parquet.num_row_groups):
            yield path, group, first
            first += parquet.metadata.row_group(group).num_rows
        if not parquet.num_row_groups:
            yield path, 0, first


def _read(
    spark: SparkSession,
    groups: Sequence[Group],
    read: Callable[[pq.ParquetFile, Group], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    tasks = min(len(groups), 8 * spark.sparkContext.defaultParallelism)
    found = spark.createDataFrame(list(groups), _GROUPS).repartition(tasks)
    return found.mapInArrow(partial(_read_each, read=read), schema)


def _read_each(
    batches: Iterable[pa.RecordBatch],
    read: Callable[[pq.ParquetFile, Group], Iterator[pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path, group, first in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            filesystem, inside = fs.FileSystem.from_uri(path)
            with filesystem.open_input_file(inside) as file:
                yield from read(pq.ParquetFile(file), (path, group, first))


def _judged_rows(parquet: pq.ParquetFile, group: Group) -> Iterator[pa.RecordBatch]:
    """Rows of _JUDGED; one that says why, where the rest of a group cannot be read."""
    path, number, row = group
    if number == 0:
        yield from _afterwords(parquet, path)
    unknown = unknown_columns(parquet.schema_arrow) or None
    try:
        for batch in _batches(parquet, number):
            yield _judged_batch(path, row, batch, unknown)
            row += len(batch)
    except (OSError, pa.ArrowException) as error:
        yield _alone(path, row, reason=f"cannot be read from here on: {error}")


def _batches(parquet: pq.ParquetFile, group: int) -> Iterator[pa.RecordBatch]:
    if group < parquet.num_row_groups:
        yield from parquet.iter_batches(_BATCH, row_groups=[group])


def _afterwords(parquet: pq.ParquetFile, path: str) -> Iterator[pa.RecordBatch]:
    """The run header and the end in a file's metadata, as its row 0."""
    told = parquet.schema_arrow.metadata or {}
    for text in (told[key] for key in _AFTERWORDS if key in told):
        value, wrong = parse(text)
        shown = text.decode("utf-8", "replace")
        if wrong:
            yield _alone(path, 0, reason="; ".join(wrong), text=shown)
        else:
            yield _alone(path, 0, format=value["format"], run=value.get("run"), header=shown)


def _alone(path: str, row: int, **told: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"file": path, "row": row, **told}], _schema())


def _schema() -> pa.Schema:
    """_JUDGED, as Arrow has it."""
    words = ("reason", "text", "header")
    fields = {name: arrow_type(kind) for name, kind in REPORT.fields.items()}
    fields |= {"neighbors": pa.list_(pa.string()), **dict.fromkeys(TRAFFIC_COLUMNS, pa.int64())}
    return pa.schema(
        [
            ("file", pa.string()),
            ("row", pa.int64()),
            *((name, pa.string()) for name in words),
            ("unknown_fields", pa.list_(pa.string())),
            ("format", pa.string()),
            ("run", pa.string()),
            *((name, fields[name]) for name in REPORT_COLUMNS),
        ]
    )


def _judged_batch(
    path: str, first: int, batch: pa.RecordBatch, unknown: list[str] | None
) -> pa.RecordBatch:
    rows, wrong = reports_of(batch)
    reasons = ["; ".join(wrong[row]) if row in wrong else None for row in range(len(batch))]
    columns = dict(zip(REPORT.fields, rows.flatten(), strict=True))
    columns |= {
        "file": pa.repeat(path, len(batch)),
        "row": pa.array(range(first, first + len(batch))),
        "reason": pa.array(reasons, pa.string()),
        "text": pa.array([reason and _as_text(batch, row) for row, reason in enumerate(reasons)]),
        "unknown_fields": pa.array([None if reason else unknown for reason in reasons]),
        "neighbors": neighbor_items(columns["neighbors"]),
        "left": pc.fill_null(columns["left"], False),
        **{name: _counter(columns, name) for name in TRAFFIC_COLUMNS},
    }
    nothing = pa.nulls(len(batch))
    # A number that is too large for its column is that of a refused row.
    arrays = [columns.get(f.name, nothing).cast(f.type, safe=False) for f in _schema()]
    return pa.RecordBatch.from_arrays(arrays, schema=_schema())


def _counter(columns: Mapping[str, pa.Array], name: str) -> pa.Array:
    """`control_messages_sent` stands in control.sent.messages."""
    kind, what, way = name.split("_")
    return pc.struct_field(columns[kind], [way, what])


def _texts(parquet: pq.ParquetFile, group: Group) -> Iterator[pa.RecordBatch]:
    """Rows of _TEXTS; of a group that cannot be read those before, as `_judged_rows` tells."""
    path, number, row = group
    with suppress(OSError, pa.ArrowException):
        for batch in _batches(parquet, number):
            texts = [_as_text(batch, at) for at in range(len(batch))]
            numbers, files = range(row, row + len(batch)), pa.repeat(path, len(batch))
            yield pa.record_batch({"file": files, "row": numbers, "text": texts})
            row += len(batch)


def _as_text(batch: pa.RecordBatch, row: int) -> str:
    """A row as JSON, without what is absent."""
    (told,) = batch.slice(row, 1).to_pylist()
    known = {name: value for name, value in told.items() if value is not None}
    return json.dumps(known, ensure_ascii=False, default=str)
