"""Files of saved views that an exported file brings along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.hostile import TAKEN
from tests.support.words import naming
from vizpub.explorer.offline.views import read_views
from vizpub.model.errors import UseError

VIEW = {"name": "heals", "note": "after the crash", "address": "overlay?t=50"}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(content: object) -> Path:
        file = tmp_path / "views.json"
        text = content if isinstance(content, str) else json.dumps(content)
        file.write_text(text, "utf-8")
        return file

    return write


def test_content_is_that_of_the_file(write: Any) -> None:
    hostile = [{"name": text[:200], "note": text[:2000], "address": "tables"} for text in TAKEN]
    views = [VIEW, *hostile]
    file = write({"run": "lab", "views": views})
    assert json.loads(read_views(file, "lab"))["views"] == views


@pytest.mark.parametrize(
    "content",
    [
        "no JSON",
        "[" * 100_000,
        "[]",
        {},
        {"run": "lab"},
        {"run": "lab", "views": {}},
        {"run": "lab", "views": [1]},
        {"run": "lab", "views": [{**VIEW, "note": None}]},
        {"run": "lab", "views": [{**VIEW, "name": "x" * 201}]},
        {"run": "lab", "views": [VIEW], "more": "x" * 1_000_000},
    ],
)
def test_other_content_is_refused(write: Any, content: object) -> None:
    file = write(content)
    with pytest.raises(UseError, match=naming(str(file))):
        read_views(file, "lab")


def test_views_of_another_run_are_refused(write: Any) -> None:
    with pytest.raises(UseError, match=naming("lab", "monday")):
        read_views(write({"run": "lab", "views": []}), "monday")


def test_lost_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UseError, match=naming("none.json")):
        read_views(tmp_path / "none.json", "lab")
