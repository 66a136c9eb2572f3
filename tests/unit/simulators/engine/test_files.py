"""Reading text that may be compressed, and saying what is wrong with it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.words import naming
from vizpub.model.errors import InputError
from vizpub.simulators.engine.files import find_file, lines, not_understood

TEXT = "# who\n0 1\n\n  2 3  \n% and\n4 5"


@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_numbered_and_comments_skipped(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "edges"  # what it is, is not told by the name
    path.write_bytes(gzip.compress(TEXT.encode()) if packed else TEXT.encode())
    assert list(lines(str(path))) == [(2, "0 1"), (4, "2 3"), (6, "4 5")]


def test_file_is_looked_for_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trace.avt").write_text("x")
    monkeypatch.setenv("VIZPUB_DATA", str(tmp_path))
    assert find_file("trace.avt") == tmp_path / "trace.avt"
    with pytest.raises(InputError, match=naming("none.avt", tmp_path / "none.avt")):
        find_file("none.avt")
    monkeypatch.delenv("VIZPUB_DATA")
    with pytest.raises(InputError, match=naming("trace.avt")):
        list(lines("trace.avt"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(TEXT.encode() * 100)[:-20], "cannot be read"),
        (gzip.compress(TEXT.encode())[:8] + b"garbage", "cannot be read"),
        (b"\xff\xfe0 1", "is not text"),
    ],
    ids=["cut off", "damaged", "not UTF-8"],
)
def test_unreadable_file_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "edges"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        list(lines(str(path)))


def test_error_names_file_and_line() -> None:
    assert str(not_understood("a.txt", 3, "no number")) == "a.txt:3: no number"
