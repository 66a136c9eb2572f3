"""Lines and their numbers, against Python's own reading of the same files."""

from __future__ import annotations

import gzip
from codecs import BOM_UTF8
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ingest.sources import lines
from ingest.sources.base import InputFile
from ingest.sources.lines import quarantine, read_lines

pytestmark = pytest.mark.spark

SMALL_SPLITS = 700
NAMES = [
    "plain.ndjson",
    "a b%20+.ndjson",
    "g[1]{x}*?\\.ndjson",
    "_hidden.ndjson",
    ".dot.ndjson",
    "colon:.ndjson",
    "ü.ndjson",
    "packed.ndjson.gz",
    "frames.ndjson.zst",
    "broken.ndjson.gz",
]


def content(name: str) -> bytes:
    return b"".join(
        b"%d %s%s\n" % (n, name.encode() * (n % 7), b"" if n % 50 else b"\xff\r")
        if n % 9
        else b"\n"
        for n in range(300)
    )


def write(path: Path) -> InputFile:
    data, damage = BOM_UTF8 + content(path.name), None
    if path.suffix == ".gz":
        packed = gzip.compress(data)
        if path.name.startswith("broken"):
            packed, damage = packed[: len(packed) * 2 // 3], "truncated gzip"
        path.write_bytes(packed)
    elif path.suffix == ".zst":
        path.write_bytes(pa.compress(data, codec="zstd", asbytes=True))
    else:
        path.write_bytes(data)
    return InputFile(str(path), "ndjson", path.stat().st_size, "", damage)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[InputFile]:
    folder = tmp_path_factory.mktemp("lines")
    return [write(folder / name) for name in NAMES]


@pytest.fixture(scope="module")
def read(spark: SparkSession, files: list[InputFile]) -> dict[str, list[tuple[int, bytes]]]:
    """Line number and bytes of every line, by file name, read in many splits.

    A line that is cut off has an asterisk before its bytes.
    """
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", SMALL_SPLITS)
    try:
        lines = read_lines(spark, files)
        mark = F.when(F.col("cut"), "*").otherwise("")
        refused = lines.withColumn("reason", F.concat(mark, F.hex(F.col("text").cast("binary"))))
        rows = quarantine(refused.withColumn("text", F.lit("x")), lines).collect()
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    by_name: dict[str, list[tuple[int, bytes]]] = {name: [] for name in NAMES}
    for row in sorted(rows, key=lambda row: row.line):
        cut = b"*" if row.reason.startswith("*") else b""
        text = bytes.fromhex(row.reason.removeprefix("*"))
        by_name[Path(row.file).name].append((row.line, cut + text))
    return by_name


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_read_whole_with_their_numbers(
    read: dict[str, list[tuple[int, bytes]]], name: str
) -> None:
    expected = content(name).split(b"\n")[:-1]
    found = read[name]
    assert [line for line, _ in found] == list(range(1, len(found) + 1))
    texts = [text for _, text in found]
    if name.startswith("broken"):
        *whole, last = texts
        assert 0 < len(whole) < len(expected)
        assert whole == expected[: len(whole)]
        assert last.startswith(b"*")
        assert expected[len(whole)].startswith(last[1:])
    else:
        assert texts == expected


def test_quarantined_text_is_clipped_and_made_readable(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "bad.ndjson"
    path.write_bytes(b"\xff" + "é".encode() * 3000 + b"\n")
    file = InputFile(str(path), "ndjson", 0, "")
    lines = read_lines(spark, [file])
    (row,) = quarantine(lines.withColumn("reason", F.lit("why")), lines).collect()
    assert (row.file, row.line, row.reason) == (str(path), 1, "why")
    assert row.text == "\ufffd" + "é" * 1023


def test_lines_of_a_large_packed_file_are_spread(
    spark: SparkSession, files: list[InputFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = [file for file in files if file.path.endswith("packed.ndjson.gz")]
    # As digits: not every line is UTF-8.
    columns = ("file", "position", F.hex(F.col("text").cast("binary")).alias("text"), "cut")
    by_one = read_lines(spark, packed).select(*columns)
    monkeypatch.setattr(lines, "_LARGE", 1)
    spread = read_lines(spark, packed).select(*columns)
    assert (by_one.rdd.getNumPartitions(), spread.rdd.getNumPartitions()) == (1, 2)
    assert sorted(spread.collect()) == sorted(by_one.collect())
    refused = spread.where("position.row = 7").withColumn("reason", F.lit("wrong"))
    assert [row.line for row in quarantine(refused, spread).collect()] == [8]
