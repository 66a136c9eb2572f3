"""Text records, one a line: reading them with Spark SQL, and refusing some of them.

Whole files are read by Spark's text reader, which splits large ones. Damaged ones, and
the few that it cannot open, are read by Python on the executors, up to the damage.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa

from ingest.compressed import Content, lines
from ingest.sources.base import InputFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

INVALID_UTF8 = "not UTF-8"
CUT_OFF = "cut off by the damage of the file"
TEXT_LIMIT = 1024
"""Characters of a refused record that are kept."""

_READ_IN_PYTHON = "file string, row bigint, text binary, cut boolean"
_BATCH = 4096
_LARGE = 2**23
"""Bytes of a packed file whose lines are worth moving to where there is time for them."""


def read_lines(spark: SparkSession, files: Sequence[InputFile]) -> DataFrame:
    r"""Every line of the files, without its `\n`, empty ones too.

    file       the file's URI (`file_name` makes a path of it)
    position   struct (block, row) that orders the lines of a file; not yet a line number
    text       the line; its bytes need not be UTF-8 (`is_valid_utf8`)
    cut        the damage of its file cuts this line off

        file:/data/17.ndjson      (0, 0)  {"format": "vizpub.report/1", "peer": …   false
        file:/data/18.ndjson.gz   (0, 1)  {"format": "vizpub.report/1", "pe         true
    """
    whole = [file for file in files if _spark_reads(file)]
    others = [file.path for file in files if not _spark_reads(file)]
    if not others:
        return _read_in_spark(spark, whole)
    if not whole:
        return _read_in_python(spark, others)
    return _read_in_spark(spark, whole).union(_read_in_python(spark, others))


def hadoop_path(path: str) -> str:
    """A file of this machine as Spark's readers take it: they see patterns in some names."""
    # Hadoop's configuration may say that a path without a scheme is elsewhere.
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def file_name(uri: Column) -> Column:
    """The path of a file, as the inventory has it, from `file` of `read_lines`."""
    from pyspark.sql import functions as F

    plain = F.regexp_replace(uri, r"^file:/+", "/")
    # url_decode is meant for forms, where a plus is a space.
    return F.url_decode(F.replace(plain, F.lit("+"), F.lit("%2B")))


def quarantine(refused: DataFrame, all_lines: DataFrame) -> DataFrame:
    """The quarantine rows of refused lines.

    `refused` has file, position, text, reason; `all_lines` is what `read_lines` gave. Line
    numbers come from how many lines each block of a file has: the lines are counted
    again, but never moved.

        file              line   reason        text
        /data/17.ndjson   3      not JSON      {"format": "vizpub.rep
        /data/18.ndjson   12     no 'peer'     {"format": "vizpub.report/1", …
    """
    from pyspark.sql import functions as F

    numbered = refused.withColumn("block", F.col("position.block")).join(
        F.broadcast(_blocks(all_lines)), ["file", "block"]
    )
    return numbered.select(
        file_name(F.col("file")).alias("file"),
        (F.col("position.row") - F.col("first") + F.col("before") + 1).alias("line"),
        "reason",
        _kept_text(),
    )


def numbered(refused: DataFrame) -> DataFrame:
    """The quarantine rows of refused records whose place in their file is known: `position.row`,
    0 for what is of the file as a whole. `file` is a path.
    """
    from pyspark.sql import functions as F

    return refused.select(
        "file",
        F.greatest(F.col("position.row"), F.lit(1)).alias("line"),
        "reason",
        _kept_text(),
    )


def _kept_text() -> Column:
    from pyspark.sql import functions as F

    return F.substring(F.make_valid_utf8("text"), 1, TEXT_LIMIT).alias("text")


def _blocks(all_lines: DataFrame) -> DataFrame:
    """file, block, its first row, and the lines before it in the file."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    earlier = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    return (
        all_lines.groupBy("file", F.col("position.block").alias("block"))
        .agg(F.min("position.row").alias("first"), F.count(F.lit(1)).alias("lines"))
        .withColumn("before", F.coalesce(F.sum("lines").over(earlier), F.lit(0)))
        .drop("lines")
    )


def _spark_reads(file: InputFile) -> bool:
    """Hadoop hides names with these beginnings, cannot open a colon, lacks zstandard, and
    knows few of the file systems that Arrow does.
    """
    name = PurePosixPath(file.path).name
    return (
        file.damage is None
        and "://" not in file.path
        and not name.startswith(("_", "."))
        and not (":" in name or name.endswith((".zst", ".zstd")))
    )


def _read_in_spark(spark: SparkSession, files: Sequence[InputFile]) -> DataFrame:
    from pyspark.sql import functions as F

    found = spark.read.text([hadoop_path(file.path) for file in files], lineSep="\n").select(
        F.col("_metadata.file_path").alias("file"),
        F.struct(
            F.col("_metadata.file_block_start").alias("block"),
            F.monotonically_increasing_id().alias("row"),
        ).alias("position"),
        F.col("value").alias("text"),
        F.lit(False).alias("cut"),
    )
    tasks = spark.sparkContext.defaultParallelism
    # A packed file is read by one task; what is done with its lines need not be.
    return found.repartition(tasks, "position.row") if _is_spread_badly(files, tasks) else found


def _is_spread_badly(files: Sequence[InputFile], tasks: int) -> bool:
    large = [file for file in files if file.path.endswith(".gz") and file.size >= _LARGE]
    return bool(large) and len(files) < tasks


def _read_in_python(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

    return read_each(spark, paths, _read_file, _READ_IN_PYTHON).select(
        "file",
        F.struct(F.lit(0).cast("bigint").alias("block"), "row").alias("position"),
        F.col("text").cast("string").alias("text"),
        "cut",
    )


def read_each(
    spark: SparkSession,
    paths: Sequence[str],
    read_file: Callable[[str], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """What `read_file` makes of each file, in Python on the executors: a task a file."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for path in chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            yield from read_file(path)

    found = spark.createDataFrame([(path,) for path in paths], "path string")
    return found.repartition(len(paths)).mapInArrow(read, schema)


def file_uri(path: str) -> str:
    """What `file` of `read_lines` is for a path."""
    return path if "://" in path else f"file:{quote(path)}"


def _read_file(path: str) -> Iterator[pa.RecordBatch]:
    from pyarrow import fs

    filesystem, inside = fs.FileSystem.from_uri(path)
    with filesystem.open_input_stream(inside, compression=None) as stream:
        content = Content(stream)
        numbered = _without_mark(enumerate(lines(content)))
        while batch := list(islice(numbered, _BATCH)):
            yield _record_batch(file_uri(path), batch, lambda: content.damage is not None)


def _without_mark(
    numbered: Iterable[tuple[int, tuple[bytes, bool]]],
) -> Iterator[tuple[int, tuple[bytes, bool]]]:
    """Without the byte order mark that a file may begin with; Spark's reader skips it, too."""
    for number, (text, ended) in numbered:
        yield number, (text if number else text.removeprefix(BOM_UTF8), ended)


def _record_batch(
    uri: str, batch: Sequence[tuple[int, tuple[bytes, bool]]], damaged: Callable[[], bool]
) -> pa.RecordBatch:
    rows, found = zip(*batch, strict=True)
    texts, ended = zip(*found, strict=True)
    # Whether the content is damaged is known once its last line has been read.
    cut = [not whole and damaged() for whole in ended]
    return pa.record_batch(
        {
            "file": pa.array([uri] * len(rows), pa.string()),
            "row": pa.array(rows, pa.int64()),
            "text": pa.array(texts, pa.binary()),
            "cut": pa.array(cut, pa.bool_()),
        }
    )
