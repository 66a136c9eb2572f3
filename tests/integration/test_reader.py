"""Lines that tasks read, and their numbers, against Python's own reading of the files."""

from __future__ import annotations

import gzip
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.few import few
from vizpub.ingest.inputs import reader
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    InputRow,
    InputSplit,
    RowKind,
    line_splits,
    lines,
    number_splits,
    read_in_tasks,
    refusal_row,
)

pytestmark = pytest.mark.spark

LIMIT = 200
PIECES = (10**6, 700, 64)
"""Bytes: files in one piece, in several, and lines that are longer than a piece."""
NAMES = (
    "plain.txt", "a b%20+.txt", "g[1]{x}*?\\.txt", "_hidden.txt", "colon:.txt", "ü.txt",
    "packed.txt.gz", "padded.txt.gz", "frames.txt.zst", "broken.txt.gz",
)  # fmt: skip


def read(split: InputSplit) -> Iterator[InputRow]:
    """A row for each line; `time` is its length."""
    for line in lines(split, LIMIT):
        if line.fault:
            yield refusal_row(split, line.number, line.fault, line.text)
        else:
            yield InputRow(RowKind.RECORD, "a", len(line.text), 0, split.file, line.number)


def content(name: str) -> bytes:
    """Lines of many lengths, some of them blank, not UTF-8, or longer than the limit."""
    kinds = (
        b"%d %s" % (n, name.encode() * (n % 7) + b"x" * (n % 40 // 39 * 500)) for n in range(300)
    )
    return b"\n".join(
        b"" if not n % 9 else line + b"\xff" * (n % 50 == 1) for n, line in enumerate(kinds)
    )


def write(path: Path) -> InputFile:
    data = BOM_UTF8 + content(path.name)
    if path.suffix == ".gz":
        packed = gzip.compress(data)
        if path.name.startswith("broken"):
            packed = packed[: len(packed) * 2 // 3]
        data = packed + b"\0" * 100_000 * path.name.startswith("padded")
    elif path.suffix == ".zst":
        data = pa.compress(data, codec="zstd", asbytes=True)
    path.write_bytes(data)
    return InputFile(str(path), "text", len(data), "")


def fault(line: bytes) -> str | None:
    if len(line) > LIMIT:
        return "longer than 200 bytes (--max-line)"
    return "not UTF-8" if b"\xff" in line else None


@pytest.mark.parametrize("size", few(PIECES, PIECES[1:]))
def test_lines_and_their_numbers_equal_those_of_the_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(reader, "SPLIT", size)
    files = [write(tmp_path / name) for name in NAMES]
    found = read_in_tasks(spark, number_splits(spark, line_splits(files)), read)
    numbers: dict[tuple[str, int], str] = {}
    damaged: dict[str, str] = {}
    sizes: dict[str, list[int]] = {}
    for row in found.orderBy("file", "line").collect():
        path = files[row.file].path
        if row.kind == RowKind.DAMAGED:
            damaged[path] = row.reason
            continue
        if row.kind == RowKind.REFUSED:
            numbers[path, row.line] = row.reason
        sizes.setdefault(path, []).append(-1 if row.kind == RowKind.REFUSED else row.time)
        assert len(sizes[path]) == row.line
    assert damaged == {str(tmp_path / "broken.txt.gz"): "truncated gzip"}
    for file in files:
        path = Path(file.path)
        expected = content(path.name).split(b"\n")
        mine = {line: why for (name, line), why in numbers.items() if name == file.path}
        if file.path in damaged:
            *whole, cut = expected[: len(sizes[file.path])]
            assert 10 < len(whole) < 299
            assert mine.pop(len(whole) + 1, None) is not None or not cut
            expected = whole
            sizes[file.path].pop()
        assert sizes[file.path] == [-1 if fault(line) else len(line) for line in expected]
        assert mine == {n: fault(line) for n, line in enumerate(expected, 1) if fault(line)}
