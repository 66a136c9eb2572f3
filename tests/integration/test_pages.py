"""Commands of the docs that only read a run are answered when they are typed in.

Tutorials have a test of their own; what is printed below a command is compared by test_printed.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.grouped import add_attributes
from tests.support.ingested import copied
from tests.support.printed import PAGES, RECIPES, typed_in
from vizpub.cli.main import app
from vizpub.runstore.store import StoredRun

pytestmark = [pytest.mark.spark, pytest.mark.long]

READING = re.compile(
    "(metrics|plot|sql|topic|path|message|compare|export (gexf|csv|html|bctrace)"
    r"|runs (show|summary|tables|path|files|check)) .*\b(monday|gossipsub)\b"
)
FILMS = (".gif", ".mp4")
"""They take long, or a program for videos; tests/unit/cli/commands/figures/ draws some."""
OWN = "core_number"
"""A metric of one's own, which the demo's run has not; test_own_metrics.py asks for such ones."""
NAMES = {"alice": "#0", "bob": "#3", "m17": "#17"}
"""Names that stand for those of one's own run → what the demo's run has."""


def commands(page: Path) -> Iterator[list[str]]:
    for words in typed_in(page.read_text("utf-8")):
        line = shlex.join(words)
        if READING.match(line) and OWN not in line and not line.endswith(FILMS):
            yield words


@pytest.fixture(scope="module")
def folder(gossipsub: StoredRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its workspace has the demo's run, and once more as `monday`, with attributes of peers."""
    folder = tmp_path_factory.mktemp("pages")
    workspace = folder / "vizpub-data"
    for name in ("gossipsub", "monday"):
        copied(gossipsub, workspace, name)
    add_attributes(workspace, "monday", client="ab" * 15, country="xyz" * 10)
    mend = ["--workspace", str(workspace), "runs", "check", "monday", "--mend"]
    assert CliRunner().invoke(app, mend).exit_code == 0
    (folder / "worst.sql").write_text("FROM metrics.messages ORDER BY hit_ratio LIMIT 5")
    return folder


def named(paths: Iterator[Path]) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in paths]


@pytest.mark.parametrize(
    "page", named(page for page in PAGES if page not in RECIPES and any(commands(page)))
)
def test_commands_that_read_are_answered(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    failed = {}
    for words in commands(page):
        own = NAMES if "monday" in words else {}
        done = CliRunner().invoke(app, [own.get(word, word) for word in words])
        if done.exit_code:
            failed[shlex.join(words)] = done.stderr
    assert failed == {}
