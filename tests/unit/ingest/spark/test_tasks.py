"""Functions that run in Spark tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from vizpub.ingest.spark.tasks import _call_or_error
from vizpub.model.errors import UseError


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the worker, to which the test returns."""
    monkeypatch.chdir(tmp_path)


def test_call_reads_relative_paths_from_the_folder_of_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "command"
    folder.mkdir()
    (folder / "links.csv").write_text("0,1\n")
    assert _call_or_error(Path.read_text, folder, Path("links.csv")) == "0,1\n"


def test_call_stays_where_it_is_without_that_folder(tmp_path: Path) -> None:
    assert _call_or_error(lambda _: Path.cwd(), tmp_path / "absent", 0) == tmp_path


def test_error_of_ours_is_returned_and_any_other_raised(tmp_path: Path) -> None:
    error = UseError("no")

    def fail(reason: Exception) -> None:
        raise reason

    assert _call_or_error(fail, tmp_path, error) is error
    with pytest.raises(ZeroDivisionError):
        _call_or_error(fail, tmp_path, ZeroDivisionError())
