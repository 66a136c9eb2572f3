"""Atomic replacement of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.words import naming
from vizpub.machine.files import make_folder, replacing
from vizpub.model.errors import UseError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("old")
    return path


def test_file_is_replaced_when_the_block_ends(path: Path) -> None:
    with replacing(path) as new:
        new.write_text("new")
        assert path.read_text() == "old"
        assert (new.parent, new.suffix) == (path.parent, ".csv")
    assert [(found, found.read_text()) for found in path.parent.iterdir()] == [(path, "new")]


def test_failed_block_leaves_the_old_file_alone(path: Path) -> None:
    def fail() -> None:
        with replacing(path) as new:
            new.write_text("ne")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        fail()
    assert [(found, found.read_text()) for found in path.parent.iterdir()] == [(path, "old")]


def test_block_that_writes_nothing_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError), replacing(path):
        pass
    assert path.read_text() == "old"


def test_folder_is_made_once_and_one_below_a_file_is_refused(path: Path) -> None:
    folder = path.parent / "some" / "where"
    assert make_folder(make_folder(folder)).is_dir()
    with pytest.raises(UseError, match=naming("table.csv/below", "Not a directory")):
        make_folder(path / "below")


def test_writers_of_one_process_do_not_share_a_new_file(path: Path) -> None:
    with replacing(path) as one, replacing(path) as other:
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"
    assert [*path.parent.iterdir()] == [path]
