"""Splits of files and their lines, against the whole content."""

from __future__ import annotations

import gzip
import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    InputRow,
    InputSplit,
    RowKind,
    as_batches,
    line_splits,
    lines,
)

SEED = 14


def file_of(path: Path) -> InputFile:
    return InputFile(str(path), "ndjson", path.stat().st_size, "")


def random_content(rng: random.Random) -> bytes:
    """Lines of any length, empty ones too; some files end without a line break."""
    made = [bytes(rng.choices(b"ab \r\xc3", k=rng.choice([0, 0, 1, 3, 9, 40]))) for _ in range(40)]
    return b"\n".join(made) + rng.choice([b"", b"\n"])


@pytest.mark.parametrize("size", [1, 2, 7, 50, 10_000])
def test_splits_have_every_line_once(tmp_path: Path, size: int) -> None:
    rng = random.Random(SEED)
    print("seed", SEED)
    for number in range(20):
        path = tmp_path / f"{number}.ndjson"
        path.write_bytes(content := random_content(rng))
        splits = line_splits([file_of(path)], size=size)
        found = [line.text for split in splits for line in lines(split)]
        wanted = content.split(b"\n")
        assert found == (wanted if wanted[-1] else wanted[:-1])
        assert len(splits) == max(1, -(-len(content) // size))


def test_line_numbers_go_on_from_split_to_split(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"".join(b"%d\n" % n for n in range(1, 1001)))
    edges = [*range(0, path.stat().st_size, 37), path.stat().st_size]
    content = path.read_bytes()
    for start, stop in pairwise(edges):
        split = InputSplit(0, str(path), start, stop, content[:start].count(b"\n") + 1)
        for line in lines(split):
            assert line.text == str(line.number).encode()


def test_packed_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n" * 1000))
    assert line_splits([file_of(path)], size=10) == [InputSplit(0, str(path))]
    assert [line.text for line in lines(InputSplit(0, str(path)))] == [b"one", b"two"] * 1000


@pytest.mark.parametrize(
    ("path", "is_whole"),
    [
        ("/in/get?file=a.ndjson.gz", True),
        ("/what?/a.ndjson.zst", True),
        ("/in/a.ndjson.gz?raw", False),
        ("s3://bucket/a.ndjson.gz?region=eu-west-1", True),
        ("s3://bucket/a.ndjson?scheme=x.gz", False),
    ],
)
def test_query_begins_with_a_question_mark_in_uris_only(path: str, is_whole: bool) -> None:
    splits = line_splits([InputFile(path, "ndjson", 100, "")], size=10)
    assert len(splits) == (1 if is_whole else 10)


def test_byte_order_mark_is_no_part_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n")
    for size in (4, 1000):
        splits = line_splits([file_of(path)], size=size)
        numbered = [split._replace(line=1) if split.start == 0 else split for split in splits]
        found = [line.text for split in numbered for line in lines(split)]
        assert found == [b"{}", b"{}"]


def test_batches_of_rows_are_bounded_by_rows_and_by_bytes() -> None:
    small = [InputRow(RowKind.RECORD, str(n), n, record=b"x") for n in range(10_000)]
    large = [InputRow(RowKind.RECORD, "a", n, record=b"x" * 2**20) for n in range(9)]
    for rows in (small, large):
        batches = list(as_batches(rows))
        assert len(batches) == 3
        table = pa.Table.from_batches(batches)
        assert table["time"].to_pylist() == [row.time for row in rows]
    assert list(as_batches([])) == []
