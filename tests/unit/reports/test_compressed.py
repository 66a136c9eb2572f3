"""What can be read of a damaged file, against the original."""

from __future__ import annotations

import gzip
import io
import itertools
import random
import tracemalloc

import pyarrow as pa
import pytest

from vizpub.reports.compressed import KEPT, Content, LongLine, lines

SEED = 7
RAW = b"".join(b"%d\n" % random.Random(SEED + i).randrange(10**9) for i in range(40_000))
GZIP = gzip.compress(RAW, mtime=0)
ZSTD = pa.compress(RAW, codec="zstd", asbytes=True)


def read(data: bytes) -> tuple[bytes, str | None]:
    content = Content(io.BytesIO(data))
    return b"".join(content), content.damage


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", b""),
        (RAW, RAW),
        (GZIP, RAW),
        (GZIP + GZIP, RAW * 2),
        (GZIP + b"\0" * 200_000, RAW),
        (GZIP + b"\0" * 200_000 + GZIP, RAW * 2),
        (ZSTD, RAW),
        (ZSTD + ZSTD, RAW * 2),
    ],
    ids=["empty", "plain", "gzip", "members", "padded", "padding between", "zstd", "frames"],
)
def test_sound_content_is_read_in_full(data: bytes, expected: bytes) -> None:
    assert read(data) == (expected, None)


@pytest.mark.parametrize("cut", [2, 9, 10, 1000, len(GZIP) // 2, len(GZIP) - 8, len(GZIP) - 1])
def test_truncated_gzip_gives_a_prefix_and_reports_damage(cut: int) -> None:
    content, damage = read(GZIP[:cut])
    assert RAW.startswith(content)
    assert damage == "truncated gzip"
    assert cut < 1000 or content
    assert cut < len(GZIP) - 8 or content == RAW


def test_wrong_checksum_keeps_all_content_and_reports_damage() -> None:
    damaged = bytearray(GZIP)
    damaged[-6] ^= 0xFF
    content, damage = read(bytes(damaged))
    assert content == RAW
    assert damage is not None
    assert damage.startswith("damaged gzip")


def test_garbage_after_gzip_keeps_the_content_and_reports_damage() -> None:
    content, damage = read(GZIP + b"garbage")
    assert content == RAW
    assert damage is not None


def test_truncated_zstandard_gives_a_prefix_and_reports_damage() -> None:
    content, damage = read(ZSTD[: len(ZSTD) // 2])
    assert RAW.startswith(content)
    assert damage is not None
    assert damage.startswith("damaged zstandard")


@pytest.mark.parametrize("cut", [20, 1000])
def test_truncated_frames_of_zstandard_give_all_whole_ones(cut: int) -> None:
    parts = [RAW[at : at + 1000] for at in range(0, 30_000, 1000)]
    frames = [pa.compress(part, codec="zstd", asbytes=True) for part in parts]
    content, damage = read(b"".join(frames)[:-cut])
    assert RAW.startswith(content)
    assert len(content) >= 30_000 - 1000 * (1 + -(-cut // len(frames[-1])))
    assert damage is not None


def test_lines_are_joined_over_chunks() -> None:
    chunks = [b"a\nb", b"c", b"\n\n", b"d\r\n", b"e"]
    assert list(lines(chunks)) == [
        (b"a", True),
        (b"bc", True),
        (b"", True),
        (b"d\r", True),
        (b"e", False),
    ]


@pytest.mark.parametrize("size", [1, 7, 1000, 10**6])
def test_line_beyond_the_limit_is_told_and_not_held(size: int) -> None:
    text = b"a" * 9_999 + b"\n" + b"b" * 10_000 + b"\n\n" + b"c" * 10_001 + b"\nd\n" + b"e" * 20_000
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    found = list(lines(chunks, 10_000))
    assert [ended for _, ended in found] == [True, True, True, True, True, False]
    (first, second, blank, third, fourth, last) = (line for line, _ in found)
    assert (first, second, blank, fourth) == (b"a" * 9_999, b"b" * 10_000, b"", b"d")
    for long, letter, length in ((third, b"c", 10_001), (last, b"e", 20_000)):
        assert isinstance(long, LongLine)
        assert (long.size, long[:-1]) == (length, letter * KEPT)
        with pytest.raises(UnicodeDecodeError):
            long.decode()


def test_endless_line_is_read_in_bounded_memory() -> None:
    """Whoever joined its chunks to a longer text each time would copy 3 TB here."""
    chunk = b"x" * 2**16
    held = 2**20
    tracemalloc.start()
    try:
        ((found, ended),) = lines(itertools.repeat(chunk, 10_000), held)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(found, LongLine)
    assert (found.size, ended) == (len(chunk) * 10_000, False)
    assert most < 4 * held
